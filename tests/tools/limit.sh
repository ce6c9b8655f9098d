#!/bin/sh
# Limits of memory: what fits, what is said of what does not, and the largest
# batch, with which the model fits while it does not with one more.
set -u

cd "$SINTER_SOURCE/models" || exit 1
failed=0

fail() {
    echo "limit: $*" >&2
    failed=1
}

# status STATUS TEXT WORD...: runs sinter check; its output holds TEXT.
status() {
    want=$1
    text=$2
    shift 2
    found=$("$SINTER" check --target=cuda "$@" 2>&1)
    got=$?
    if [ $got -ne "$want" ]; then
        fail "status $got, not $want: check $*"
    fi
    case $found in
    *"$text"*) ;;
    *) fail "no '$text' from check $*: $found" ;;
    esac
}

for size in 8Gib GiB -1 0 0.2 1e9 0x10 '' 9999999999TiB '8 GiB x'; do
    status 2 "needs a size as 8GiB or 500MB" lenet.net "--memory=$size"
done
for size in 8GiB '8 GiB' 1.5GB 500MB 99999999B 1TiB 88888888; do
    status 0 "" lenet.net "--memory=$size"
done

json=$(mktemp)
trap 'rm -f "$json"' EXIT

# checked WORD...: number reads what sinter check --json says.
checked() {
    "$SINTER" check --target=cuda --json "$@" >"$json" 2>/dev/null
}

# number KEY: of the last check.
number() {
    grep -o "\"$1\": [0-9]*" "$json" | head -n 1 | sed 's/.* //'
}

# largest FILE SIZE SETTING...: the largest batch fits, the next does not.
largest() {
    file=$1
    memory=--memory=$2
    shift 2
    checked "$file" "$memory" --max-batch "$@"
    batch=$(number max_batch) kept=$(number max_batch_kept)
    status 0 "" "$file" "$memory" "$@" --set "batch=$batch"
    status 5 "would fit" "$file" "$memory" "$@" --set "batch=$((batch + 1))"
    [ "$kept" -le "$batch" ] || fail "$file: $kept without, $batch with"
    never=--set=recompute=none
    status 0 "" "$file" "$memory" "$@" $never --set "batch=$kept"
    status 5 "with \`recompute = none\`" "$file" "$memory" "$@" $never \
        --set "batch=$((kept + 1))"
}

largest lenet.net 4MiB
largest lenet.net 4MiB --target=host
largest resnet9.net 64MiB --set width=16
largest mlp.net 12MB --set precision=f32
largest lenet.net 4MiB --device=h200
# Ghost batches of 16 samples divide it.
checked resnet9_tricks.net --memory=64MiB --max-batch --set width=16
batch=$(number max_batch)
status 0 "" resnet9_tricks.net --memory=64MiB --set width=16 \
    --set "batch=$batch"
status 5 "would fit" resnet9_tricks.net --memory=64MiB --set width=16 \
    --set "batch=$((batch + 16))"
# Shards divide it.
checked lenet.net --memory=4MiB --max-batch --set shards=4
batch=$(number max_batch)
status 0 "" lenet.net --memory=4MiB --set shards=4 --set "batch=$batch"
status 5 "would fit" lenet.net --memory=4MiB --set shards=4 \
    --set "batch=$((batch + 4))"
moved=$SINTER_SOURCE/tests/tools/moved.net
divides() {
    batch=$1 next=$2
    shift 2
    checked "$moved" --max-batch "$@"
    [ "$(number max_batch)" = "$batch" ] ||
        fail "max_batch $(number max_batch), not $batch: $*"
    status 0 "" "$moved" "$@" --set "batch=$batch"
    status 5 "would fit" "$moved" "$@" --set "batch=$next"
}
divides 1250 2000 --memory=20MiB
divides 5000 10000 --memory=50MiB --set shards=2
checked "$moved" --max-batch --memory=1GiB
[ "$(number max_batch)" = 10000 ] || fail "$(number max_batch) of 10000 images"
status 5 "no batch would fit" lenet.net --memory=1KiB
status 5 "the limit is 10 bytes; no batch would fit" lenet.net --memory=10
status 0 "largest batch" lenet.net --max-batch --memory=8MiB
status 0 "largest batch     0 in" lenet.net --max-batch --memory=1KiB

# An arena is at most a hundredth larger than what lives in it at once; golden
# reports have the arenas of all models.
for name in airbench94 gpt_nano lenet llama_nano mlp multitask resnet9 unet_seg; do
    file=$name.net
    checked "$file"
    arena=$(number arena_bytes) bound=$(number bound_bytes)
    [ $((arena * 100)) -le $((bound * 101)) ] ||
        fail "$file: an arena of $arena, $bound live at once"
done

exit $failed
