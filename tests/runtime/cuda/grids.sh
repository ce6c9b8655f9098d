#!/bin/sh
# A trainer for a described GPU fills its multiprocessors: no launch has more
# than four blocks for each, some kernel has one for each, and the losses are
# those of the host.  The numbers are those of an A100, RTX 4090, H200, B200 and
# RTX PRO 6000.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"

# train DEVICE: its losses.
train() {
    rm -rf run metrics
    expect 0 ./grids --device="$1" --data=synthetic:66 --steps=2 --log-every=1 \
        --metrics=metrics --out=run --threads=1
    sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' metrics
}

for count in 108 128 132 148 188; do
    sed 's/\("multiProcessorCount": \)[0-9]*/\1'$count/ \
        "$SINTER_SOURCE/tools/devices/h200.json" >device.json
    expect 0 "$SINTER" build "$SINTER_SOURCE/tests/runtime/cuda/grids.net" \
        --device-file=device.json -o grids
    SINTER_DOUBLE_DEVICE=$work/device.json SINTER_DOUBLE_LOG=$work/log \
        train cuda:0 >cuda
    train host >host
    # Sums in another order.
    paste host cuda | awk '
        { d = $1 - $2 }
        !(d * d <= 1e-10 * $1 * $1) { bad = 1 }
        END { exit bad || NR != 2 }' || fail "$count: $(paste host cuda)"
    sed -n 's/.*cuLaunch[A-Za-z]* \([a-z][0-9][^ ]*\) grid=\([0-9]*\) .*/\2/p' log |
        sort -n | uniq >blocks
    [ "$(tail -n 1 blocks)" -le $((4 * count)) ] ||
        fail "$count: a launch of $(tail -n 1 blocks) blocks"
    grep -qx $count blocks || fail "$count: no launch of as many blocks"
    rm log
done
