#!/bin/sh
# shellcheck disable=SC2154 # here and work are of expect.sh
# sinter train: builds once, then runs what it has built; output, status and
# signals are the trainer's.  Commands that compile look for data and device
# first.
export OPTIMISATION=-O0
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
unset HOME
export XDG_CACHE_HOME="$work/cache" TMPDIR="$work/tmp"
mkdir tmp changed
cache=$XDG_CACHE_HOME/sinter/trainers
cp "$here/micro.net" micro.net

# A C compiler that counts what it compiles; sinter asks it for its version too.
cat >counted <<'END'
#!/bin/sh
[ "$*" = --version ] || echo "$*" >>"$COUNTED"
exec "$REAL_CC" "$@"
END
chmod +x counted
export REAL_CC="${CC:-cc}" CC="$work/counted" COUNTED="$work/calls"
: >calls

# compiles yes|no: whether the C compiler has run since it was asked last.
compiles() {
    ran=no
    [ -s calls ] && ran=yes
    : >calls
    [ $ran = "$1" ] || fail "compiled: $ran, not $1: $(cat out err)"
}

train() {
    want=$1
    shift
    expect "$want" "$SINTER" train "$@"
}

# ---- the same run as by hand ----

expect 0 "$SINTER" build micro.net -o micro
expect 0 ./micro --data synthetic --steps 3 --out by-hand --threads=1
compiles yes
train 0 micro.net --data synthetic --steps 3 --out first --threads=1
compiles yes
expect_says "^sinter: building micro \.\.\. [0-9.]* s$"
expect_equal "$(newest by-hand)" "$(newest first)"
train 0 micro.net --data=synthetic --out=again --threads=1 --steps 3 \
    --metrics=-
compiles no
expect_says "^sinter: micro is up to date$"
expect_equal "$(newest by-hand)" "$(newest again)"
grep -qv '^{' out && fail "not the trainer's rows alone: $(cat out)"
train 0 micro.net --data synthetic --steps=1 --quiet --out quiet
grep -q sinter err && fail "--quiet: $(cat err)"
compiles no

# ---- each thing that decides what is built ----

# anew WORD...: is built, and then no more.
anew() {
    train 0 "$@" --version
    compiles yes
    train 0 "$@" --version
    compiles no
}

anew micro.net --set batch=8
anew micro.net -O0
anew micro.net --memory=1GiB --set seed=3
sed 's/linear(8)/linear(9)/' micro.net >changed/micro.net
anew changed/micro.net
CFLAGS="${CFLAGS:-} -DNOTHING" anew micro.net
ln -s counted counted-2
CC=$work/counted-2 anew micro.net
CC=./counted anew micro.net
for variable in CPATH C_INCLUDE_PATH LIBRARY_PATH LD_RUN_PATH COMPILER_PATH; do
    eval "$variable=$work/tmp anew micro.net"
done
mkdir part
printf 'fn head(x) = x |> flatten |> linear(10)\n' >part/head.net
{
    printf 'import "part/head.net" { head }\n'
    sed 's/|> flatten$/|> head/; /|> linear/d' "$models/lenet.net"
} >imports.net
anew imports.net
sed -i 's/linear(10)/linear(10, bias=false)/' part/head.net
anew imports.net
train 0 micro.net --version
compiles no
touch -d yesterday counted # is replaced, and says the same version
anew micro.net
CC=counted PATH=$work:$PATH anew micro.net
touch counted
CC=counted PATH=$work:$PATH anew micro.net

# ---- a cache that others can write to is not read ----

rm -rf "$cache"
train 0 micro.net --version
compiles yes
kept=$(find "$cache" -type f)
chmod g+w "$kept"
train 0 micro.net --version
expect_says "others can write to it"
compiles yes
[ "$(find "$cache" -type f -perm -g+w)" = "" ] || fail "it is still there"
mv "$kept" elsewhere
ln -s "$work/elsewhere" "$kept"
train 0 micro.net --version
expect_says "it is a symbolic link"
compiles yes
[ ! -L "$kept" ] || fail "it is still a link"
chmod g+w "$cache"
for again in first second; do
    train 0 micro.net --version
    expect_says "others can write to it"
    compiles yes
done
chmod g-w "$cache"
: >"$kept"
train 0 micro.net --version
compiles yes

# Nor does a umask that lets others write make such a file.
(
    umask 002
    rm -rf "$cache"
    train 0 micro.net --version
    compiles yes
    train 0 micro.net --version
    compiles no
    grep -q "others can write" err && fail "umask 002: $(cat err)"
    [ "$(stat -c %a "$cache"/*)" = 700 ] || fail "$(ls -l "$cache")"
    train 0 micro.net --data synthetic --steps=1 --out masked
    [ "$(stat -c %a masked)" = 775 ] || fail "the trainer has another umask"
) || exit 1
kept=$(find "$cache" -type f)

# Without a cache it is built each time, and nothing stays.
for again in first second; do
    XDG_CACHE_HOME=/dev/null train 0 micro.net --data synthetic --steps=1 \
        --out "none-$again"
    compiles yes
done
waited=0
while [ -n "$(ls tmp)" ] && [ $waited -lt 50 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
[ -z "$(ls tmp)" ] || fail "tmp has $(ls tmp)"

# ---- the cache has an end ----

i=0
while [ $i -lt 40 ]; do
    touch -d "$((i + 1)) hours ago" "$cache/old-$i"
    i=$((i + 1))
done
touch -d "31 days ago" "$cache/ancient"
touch -d "32 days ago" "$kept"
train 0 micro.net --version # is used now
compiles no
[ "$(find "$cache" -type f | wc -l)" -eq 42 ] || fail "trimmed for nothing"
anew micro.net --set seed=5
[ "$(find "$cache" -type f | wc -l)" -eq 32 ] || fail "$(ls "$cache")"
[ -e "$kept" ] || fail "what was used last is gone"
[ -e "$cache/old-29" ] || fail "the newest are gone"
[ ! -e "$cache/old-30" ] || fail "the oldest are there"
rm "$cache"/old-*
touch -d "31 days ago" "$cache/ancient"
anew micro.net --set seed=6
[ ! -e "$cache/ancient" ] || fail "what nobody used for a month is there"

# ---- an error has a line of its own ----

CC=nowhere train 4 micro.net --set seed=7
expect_says "^sinter: building a trainer needs a C compiler"
CFLAGS=-fnothing train 70 micro.net --version
expect_says "^sinter: building micro \.\.\. $"
expect_says "^sinter: .* cannot compile"
: >calls

# ---- options ----

train 2 micro.net --batch=64
expect_says "train has no option '--batch=64'; use --set batch=64"
train 2 micro.net --dat=x
expect_says "did you mean --data?"
train 2 micro.net --seed=x
expect_says "^sinter: --seed x: expected a whole number"
train 2 micro.net --data
expect_says "data needs a value: DIR"
train 2 micro.net --data synthetic -- --nothing
expect_says "unknown option --nothing"
# shellcheck disable=SC2046 # many words
train 2 micro.net -- $(printf -- '--quiet %.0s' $(seq 200)) --nothing
expect_says "unknown option --nothing"
# shellcheck disable=SC2046
train 2 micro.net $(printf -- '--seed=1 %.0s' $(seq 200)) --seed=x
expect_says "seed x: expected"
train 2 micro.net -- --without=nothing
expect_says "expected a comma-separated list of graph, library-fusions"
train 2 micro.net --without=nothing
expect_says "no pass 'nothing'"
compiles no
train 0 --help
expect_says "^  --set=KEY=VALUE "
expect_says "^  --epochs=X "
expect_says "^  --resume\[=PATH\] "
train 1 micro.net --set nothing=1
train 74 nowhere.net

# ---- status and signals ----

train 3 micro.net --data synthetic --init=/nowhere
expect_says "^error: .*/nowhere"
"$SINTER" train micro.net --data synthetic --epochs 100000 --out long \
    >long.out 2>&1 &
trainer=$!
waited=0
until [ -s long/settings.json ]; do
    sleep 0.1
    waited=$((waited + 1))
    [ $waited -le 300 ] || fail "no run has begun: $(cat long.out)"
done
[ "$(readlink "/proc/$trainer/exe")" != "$SINTER" ] ||
    fail "sinter has not become the trainer"
kill -TERM $trainer
wait $trainer
got=$?
[ $got -eq 143 ] || fail "SIGTERM: status $got: $(cat long.out)"
[ -n "$(newest long)" ] || fail "SIGTERM: no checkpoint"
: >calls

# ---- data, weights and device are looked for first ----

for option in --init=/nowhere "--predict x.npy --weights=/nowhere"; do
    # shellcheck disable=SC2086 # several words
    train 3 micro.net --set seed=9 $option
    expect_says "cannot open /nowhere: No such file"
    compiles no
done
idx_data digits 64
mkdir empty
lenet=$models/lenet.net
for command in train lrfind repeat bench compare "compare --ablate" bisect; do
    # shellcheck disable=SC2086 # it may be two words
    expect 3 "$SINTER" $command "$lenet" --data=/nowhere
    expect_says "^sinter: no data in /nowhere; name its folder"
    # shellcheck disable=SC2086
    expect 3 "$SINTER" $command "$lenet" --data=empty
    expect_says "^sinter: no file train-images-idx3-ubyte in empty"
    # shellcheck disable=SC2086
    expect 3 "$SINTER" $command "$lenet" --data=digits
    expect_says "digits/.* 12x12"
    compiles no
done
expect 3 "$SINTER" lrfind "$lenet"
expect_says "no data in data/mnist"
expect 3 "$SINTER" repeat "$lenet"
expect 2 "$SINTER" repeat "$lenet" --data=random --validation=x
expect_says "validation x: expected a number of samples"
expect 2 "$SINTER" lrfind "$lenet" --data=random --device=gpu
expect_says "device gpu: expected auto, host, cuda or cuda:N"
expect 2 "$SINTER" tune "$lenet" --device=gpu
compiles no

# In the words of the trainer itself.
if ! ls /dev/nvidia* >/dev/null 2>&1; then
    expect 0 "$SINTER" build "$lenet" -o lenet
    : >calls
    expect 4 ./lenet --data synthetic --device=cuda:0
    said=$(sed 's/^error: //' err)
    for command in train lrfind repeat bench compare tune; do
        expect 4 "$SINTER" $command "$lenet" --data=synthetic --device=cuda:0
        [ "$(sed 's/^sinter: //' err)" = "$said" ] || fail "$(cat err)"
        compiles no
    done
fi
