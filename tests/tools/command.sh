#!/bin/sh
# The command line: what it offers for what is mistyped, pages and modules, and
# diagnostics for programs from every command that reads a file.
set -u

. "$SINTER_SOURCE/tests/end_to_end/folder.sh"

expect 2 "did you mean check?" chek
expect 0 "sinter COMMAND --help lists a command's options" -h
expect 0 "usage: sinter check" check -h
expect 0 "usage: sinter train" train -h
expect 3 "there is no folder runs here: sinter train makes it" runs
expect 2 "did you mean --target?" check --targte=host x.net
expect 2 "see sinter check --help" check --zzzzzzz x.net
expect 2 "and --set KEY=VALUE for a key of the recipe" build --zzzzzzz x.net
expect 2 "has no option '--lr=3'; use --set optimizer.lr=3" build --lr=3 x.net
expect 2 "has no option '--batch'; use --set batch=VALUE" train --batch 3 x.net
expect 2 "has no option '--batch=3'" fmt --batch=3 x.net
expect 2 "did you mean fused?" show fusd x.net
expect 2 "-a or -b has no option '-Z7'; see sinter compare --help" \
    compare -a -Z7 "$SINTER_SOURCE/models/lenet.net"
expect 2 "--level is one of 0|1, not '7'" compare -a -O7 "$SINTER_SOURCE/models/lenet.net"
expect 2 "no diagnostic has the code 'foo'" explain foo
expect 0 "E0312: incompatible shapes" explain e0312
expect 0 "E0312: incompatible shapes" explain 312
expect 2 "no diagnostic has the code '31234'" explain 31234
expect 2 "no diagnostic has the code 'E9'" explain E9
expect 0 "fn flip_lr(x, p=0.5) = native" show std/vision.net
expect 2 "usage: sinter show" show graph
expect 2 "usage: sinter check [option...] FILE.net" check
expect 2 "unexpected 'y.net'" check x.net y.net
expect 2 "no pass 'fus'" opt --run=fus "$SINTER_SOURCE/tests/random/barriers.ir"
expect 2 "needs a graph after pass memory" \
    opt --emit=cu "$SINTER_SOURCE/tests/random/barriers.ir"
expect 2 "--rewrite-limit needs a number, not '-1'" check --rewrite-limit=-1 x
lenet=$SINTER_SOURCE/models/lenet.net
expect 0 "because a reduction over blocks is complete only when its launch ends" \
    show fusion "$lenet"
expect 0 "because the optimization level or the rewrite limit leaves it unfused" \
    show fusion -O0 "$lenet"
expect 2 "no graph 'tain'" show fusion --graph=tain "$lenet"
expect 5 "no batch would fit" check --memory=1KiB "$lenet"
expect 0 "LeNet, batch 2 x 128, plan" check --set accumulate=2 "$lenet"
expect 1 "the cost of a step of 2147483647 batches overflows a counter" \
    check --set accumulate=2147483647 "$SINTER_SOURCE/models/resnet50.net"

# What is computed of parameters alone has sizes, too.
{
    printf 'model LeNet(image: u8[N, 28, 28, 1]) {\n  flatten(image)'
    printf ' @ transpose(parameter([10, 784]), [1, 0])\n}\n'
    sed '1,/^}/d' "$lenet"
} >turned.net
expect 0 "transpose_1  [784, 10] " check turned.net

# A layer's row has what it gives: a mean over samples has none, and of halves
# of two batches in one each is a batch.
{
    printf 'model LeNet(image: u8[N, 28, 28, 1]) {\n'
    printf '  both = concat([image - mean(image, [batch, height]), image]'
    printf ', axis=batch)\n'
    printf '  slice(conv(both, 3, 3), batch, 0, 128) |> flatten |> linear(10)\n'
    printf '}\n'
    sed '1,/^}/d' "$lenet"
} >halves.net
expect 0 "mean_1     [28, 1] " check halves.net
expect 0 "conv_1     [256, 28, 28, 3] " check halves.net
expect 0 "slice_1    [N, 28, 28, 3] " check halves.net

expect 74 "No such file or directory" build -o nowhere/lenet "$lenet"
expect 2 "would be overwritten" build -o "$lenet" "$lenet"

# Nor is a model by another name, nor what is no file.
cp "$lenet" own.net
ln own.net other
for out in ./own.net "$PWD/own.net" other; do
    expect 2 "would be overwritten" build -o "$out" own.net
    expect 2 "would be overwritten" report -o "$out" own.net
done
cmp -s own.net "$lenet" || fail "own.net was overwritten"

# Nor is what the model imports, nor another file that is read.
mkdir part
printf 'fn head(x) = x |> flatten |> linear(10)\n' >part/head.net
{
    printf 'import "part/head.net" { head }\n'
    sed 's/|> flatten$/|> head/; /|> linear/d' "$lenet"
} >imports.net
ln part/head.net same
for out in part/head.net part/../part/head.net same; do
    expect 2 "would be overwritten" build -o "$out" imports.net
    expect 2 "would be overwritten" report -o "$out" imports.net
    expect 2 "would be overwritten" tune -o "$out" imports.net
done
grep -q "^fn head" part/head.net || fail "part/head.net was overwritten"
cp "$SINTER_SOURCE/tools/devices/h200.json" own.json
expect 2 "would be overwritten" \
    report --device-file=own.json -o own.json imports.net
expect 2 "would be overwritten" tune -o own.net own.net
expect 2 "is a trainer, but compiler options" tune --set batch=2 "$SINTER"
expect 2 "/bin/true is not a trainer: it exited with status 0 but reported no tuning" \
    tune /bin/true
cp own.net own.c
expect 2 "would be overwritten" build --emit=c -o . own.c
cmp -s own.c own.net || fail "own.c was overwritten"

# A copy, which would have nothing to build.
cp "$SINTER_SOURCE/quickstart" .
./quickstart nowhere 2>said
[ $? -eq 3 ] && grep -q "there is no folder nowhere" said ||
    fail "quickstart looks late whether its folder is there"

# A recipe of another file's model has its own file's name.
{
    printf 'import "own.net" { LeNet }\n'
    sed -n '/^train/,$p' "$lenet"
} >recipe.net
expect 0 "" build --emit=c -o written recipe.net
[ -f written/recipe.c ] || fail "recipe.net is written by another name"

mkfifo pipe
expect 74 "is not a regular file" build -o pipe own.net
mkdir own
expect 74 "own is a folder; name a file with --out=PATH" build own.net
rmdir own
[ -p pipe ] || fail "build -o pipe: the pipe is gone"

# What has the name of a part is somebody's.
echo mine >lenet.part
umask 022
expect 0 "" build -o lenet own.net
[ "$(stat -c %a lenet)" = 755 ] || fail "lenet is not for all to run"
[ "$(cat lenet.part)" = mine ] || fail "lenet.part was overwritten"
[ -z "$(find . -name '.*.part')" ] || fail "build leaves a part"

# A compiler that is named is the one that is meant.
named=${CC:-}
export CC=./nowhere
expect 4 "CC=./nowhere cannot be run" build -o by-nowhere own.net
CC=$named

# Fusing twice would assign twice.
cat >grouped.ir <<'END'
graph train (primitive, typed, grouped; act = f32) {
  %0 = param {name = "w"} : f32[8]
  %1 = neg %0 : f32[8] !g0
  %2 = assign %0, %1 : f32[8] !g0
}
END
expect 2 "has already run on this graph" opt --run=fuse grouped.ir

# The page of commands has those of --help, each once, and --help has no line
# that is wider than a terminal.
"$SINTER" --help >help
sed -n 's/^  \([a-z]*\)  *[A-Z].*/\1/p' help | sort >known
sed -n 's/^| \[\{0,1\}`\([a-z]*\)[ `].*/\1/p' \
    "$SINTER_SOURCE/docs/commands.md" | sort >paged
[ "$(wc -l <known)" -ge 19 ] || fail "--help: $(cat help)"
diff known paged >&2 || fail "docs/commands.md and --help differ"
awk 'length($0) > 80 || / $/ { exit 1 }' help || fail "--help: $(cat help)"

# The C compiler has nothing to say about the emitted text; build says what it
# wrote, in one line.
expect 0 "MiB; train with ./mlp, whose options --help lists" \
    build -o mlp "$SINTER_SOURCE/models/mlp.net"
if [ "$(wc -l <out)" -ne 1 ] || [ ! -x mlp ]; then
    echo "sinter build models/mlp.net:" >&2
    cat out >&2
    failed=1
fi

# What passes make of a graph is limited, too: of each line, a dozen.
{
    echo 'graph g {'
    echo '  %0 = input {name = "x"} : f32[8,8]'
    awk 'BEGIN {
        for (i = 1; i < 180000; i++)
            printf "  %%%d = log_softmax %%%d : f32[8,8]\n", i, i - 1
        printf "  %%%d = output %%%d {name = \"y\"} : f32[8,8]\n}\n", i, i - 1
    }'
} >many.ir
expect 1 "error[E0318]: the model has more than 1000000 operations" \
    opt --run=expand many.ir
expect 1 '"code":"E0318"' opt --run=expand --diagnostics=json many.ir

# Devices: by name, by a file, and what a description lacks.
lenet=$SINTER_SOURCE/models/lenet.net
expect 2 "no device 'h20'; did you mean h200?" check --device=h20 "$lenet"
expect 2 "no device 'tpu'; there are h200, h100, a100" check --device=tpu "$lenet"
for name in host cpu; do
    expect 2 "sinter check and sinter show plan take --target=host" \
        report --device=$name "$lenet"
done
expect 2 "take --target=cuda" show launches --device=cuda:0 "$lenet"
expect 0 '"device": "NVIDIA A100-SXM4-40GB"' \
    check --json --device=a100 "$lenet"
gpt=$SINTER_SOURCE/models/gpt_nano.net
expect 1 'gpt_nano.net:13): the libraries have no matmul in bf16 for Tesla T4' \
    check --device=t4 "$gpt"
expect 74 "none.json" check --device-file=none.json "$lenet"
grep -v l2CacheSize "$SINTER_SOURCE/tools/devices/h200.json" >device.json
expect 2 'device.json: no "l2CacheSize", the number of bytes of L2 cache' \
    check --device-file=device.json "$lenet"
sed 's/"totalGlobalMem": *[0-9]*/"totalGlobalMem": 1e300/' \
    "$SINTER_SOURCE/tools/devices/h200.json" >device.json
expect 2 'device.json: no "totalGlobalMem", the number of bytes of memory' \
    check --device-file=device.json "$lenet"
printf '{"deviceName": "X", "deviceVer": 9}' >device.json
expect 2 'no "deviceVer", the compute capability times 100' \
    check --device-file=device.json "$lenet"
described=$SINTER_SOURCE/tools/devices/h200.json
sed 's/: 132/: 1e400/' "$described" >device.json
expect 2 'no "multiProcessorCount", the number of multiprocessors, from 1' \
    check --device-file=device.json "$lenet"
sed 's/NVIDIA/\xff/' "$described" >device.json
expect 2 'no "deviceName"' check --device-file=device.json "$lenet"
grep -v '}' "$described" >device.json
expect 2 "not a JSON object" check --device-file=device.json "$lenet"
mkfifo device.fifo
expect 74 "a pipe or a device, not a file" check --device-file=device.fifo "$lenet"
expect 74 "is a directory" check --device-file=. "$lenet"
expect 2 "give only one" \
    check --device=h200 --device-file="$described" "$lenet"
expect 2 "level is one of 0|1, not '2'" check -O2 "$lenet"
expect 2 "no --act=f16, only --act=recipe: store activations on the host in" \
    build --act=f16 "$lenet"
expect 0 '"device": "NVIDIA H200"' \
    check --json --device-file="$SINTER_SOURCE/tools/devices/h200.json" "$lenet"

sed 's/"supportCoopLaunch": 1/"supportCoopLaunch": 0/' "$described" >device.json
resnet9=$SINTER_SOURCE/models/resnet9.net
expect 0 "65 unmerged" check --target=cuda "$resnet9"
for without in "--device-file=device.json" "--target=host"; do
    "$SINTER" check "$without" "$resnet9" | grep -q joined && failed=1
done

printf 'let  a=1\n' >loose.net
printf 'let a = (\n' >broken.net
printf 'graph g {\n%%0 = nothing\n' >broken.ir
expect 1 "loose.net" fmt --check loose.net
expect 0 "" fmt loose.net
expect 0 "" fmt --check loose.net
[ "$(cat loose.net)" = "let a = 1" ] || failed=1
expect 1 "E0110" fmt broken.net loose.net
[ "$(cat broken.net)" = "let a = (" ] || failed=1

for command in check build "show graph" fmt; do
    # shellcheck disable=SC2086 # a command and its operand
    expect 1 '"code":"E0110"' $command --diagnostics=json broken.net
    # shellcheck disable=SC2086
    expect 74 '"code":"E0105"' $command --diagnostics=json missing.net
done
expect 1 '"line":2,' opt --diagnostics=json broken.ir
expect 74 '"code":"E0105"' opt --diagnostics=json missing.ir

# What is no file is answered at once, a file that is too long, and a program.
mkfifo pipe.net
mkdir folder.net
head -c 1048577 /dev/zero | tr '\0' ' ' >long.net
printf '# a\rlet b = (\r' >mac.net
for command in check fmt; do
    expect_fault() {
        got=$(timeout 5 "$SINTER" $command "$1" 2>&1)
        case $got in
        *"$2"*) ;;
        *) echo "sinter $command $1: $got" >&2 && failed=1 ;;
        esac
    }
    expect_fault pipe.net "it is a pipe or a device, not a file"
    expect_fault /dev/zero "it is a pipe or a device, not a file"
    expect_fault folder.net "it is a directory"
    expect_fault long.net "it is longer than 1048576 bytes"
    expect_fault "$SINTER" "it is not text"
    expect_fault mac.net "mac.net:1:4"
done
expect 1 "error[E0105]: cannot read pipe.net" check pipe.net
expect 1 "error[E0105]: cannot read long.net" check long.net
"$SINTER" fmt - <broken.net >/dev/null 2>&1 && failed=1

exit $failed
