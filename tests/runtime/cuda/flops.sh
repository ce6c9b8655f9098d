#!/bin/sh
# On a GPU whose peak is known, a run says which share of it was used.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export SINTER_DOUBLE_THREADS=1

# share GPU PEAK OPTION...: of a model that is built so, in operations a second;
# 0: it has none.
share() {
    export SINTER_DOUBLE_DEVICE="$1"
    peak=$2
    shift 2
    expect 0 "$SINTER" build "$here/tiny.net" "$@" -o tiny
    rm -rf run
    expect 0 ./tiny --device=cuda:0 --data=synthetic:128 --steps=2 \
        --epochs=1 --out=run --metrics=rows --time
    expect_says "FLOP/s of library calls in training"
    grep '"split":"time"' rows | tr -d '"}' | tr ',:' '\n ' |
        awk -v peak="$peak" '{ is[$1] = $2 }
        END {
            if (!(is["flops_per_second"] > 0)) exit 1
            if (peak == 0) exit "of_peak" in is ? 2 : 0
            off = is["flops_per_second"] / is["of_peak"] / peak - 1
            if (off < -1e-8 || off > 1e-8) exit 3
        }' || fail "$?: $(cat rows)"
}

h200=$SINTER_SOURCE/tools/devices/h200.json
share "$h200" $((132 * 256 * 1980000))000
expect_says "% of the GPU's peak, 66.91 TFLOP/s"
share "$h200" $((132 * 4096 * 1830000))000 --set precision=f16
expect_says "% of the GPU's peak, 989.4 TFLOP/s"
share "$h200" $((132 * 4096 * 1830000))000 --set precision=bf16
sed 's/"deviceVer": 900/"deviceVer": 870/' "$h200" >board.json
share "$work/board.json" 0
grep -q "peak" out && fail "a share of no peak"

# A GPU that does not tell its clock trains as any other.
export SINTER_DOUBLE_DEVICE="$h200"
train() {
    rm -rf run
    expect 0 env "$1" ./tiny --device=cuda:0 --data=synthetic:128 --steps=2 \
        --epochs=1 --out=run --time
}
train SINTER_DOUBLE_LOG=log
clock=$(awk '/ cuDeviceGetAttribute / { asked++ }
    / cuDeviceGetAttribute 13 / { print asked }' log)
train "SINTER_DOUBLE_FAIL=cuDeviceGetAttribute:$clock:801"
expect_says "FLOP/s of library calls in training"
grep -q "peak" out && fail "a share of no peak"
exit 0
