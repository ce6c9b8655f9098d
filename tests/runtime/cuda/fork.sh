#!/bin/sh
# Gradients of filters run on a side stream, concurrently with later launches, in a graph
# whose nodes run in any order that their edges allow: losses are those of one
# stream, to the bit.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"

# train NAME SEED OPTION...: four steps, of which the graph runs two.
train() {
    name=$1 seed=$2
    shift 2
    expect 0 env SINTER_DOUBLE_SEED="$seed" SINTER_DOUBLE_LOG="$work/$name.log" \
        ./forked --device=cuda:0 --data=synthetic:64 --steps=4 --log-every=1 \
        --metrics=metrics --out=run "$@"
    sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' metrics >"$name"
    rm -rf run metrics
}

# second NAME: calls of cuDNN on its second handle.
second() {
    handle=$(sed -n 's/.* cudnnSetStream \(0x[0-9a-f]*\) .*/\1/p' "$1.log" |
        sed -n 2p)
    grep -c "cudnnBackendExecute $handle" "$1.log"
}

small_cache h200 |
    sed 's/\("multiProcessorCount": \)[0-9]*/\12/' >two.json
export SINTER_DOUBLE_DEVICE="$work/two.json"
model=$SINTER_SOURCE/tests/runtime/cuda/fork.net
expect 0 "$SINTER" build "$model" --device-file=two.json -o forked
expect 0 "$SINTER" show plan "$model" --device-file=two.json
expect_says "# fork of g[0-9]*, joined before g"
forks=$(grep -c "^# fork" out)
train one 1 --without=forks,library-fusions
[ "$(wc -l <one)" -eq 4 ] || fail "no losses"
for seed in 0 2; do
    train two $seed --without=library-fusions
    expect_equal one two
done
# The graph and that with timing events are captured once; the latter has one
# stream.
[ "$(second two)" -eq "$forks" ] || fail "$(second two) forks, not $forks"
# A fusion with a gradient of filters keeps it on the main stream.
train fused 2 --without=forks
train both 3
expect_equal fused both
