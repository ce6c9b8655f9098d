#!/bin/sh
# The rows of a GPU have every step's loss to the digits that they show, as the
# host's have, and after an interruption too.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

expect 0 "$SINTER" build "$here/flat.net" -o flat

# train DEVICE NAME OPTION...: writes the rows of a run without the columns of
# time.
train() {
    device=$1 name=$2
    shift 2
    expect 0 ./flat --device="$device" --data=synthetic:400 --out="$name.run" \
        --metrics="$name.jsonl" --log-every=1 --quiet "$@"
    sed -n '/"split":"time"/d; s/,"samples_per_second.*//p; /"step",/p' \
        "$name.jsonl" >"$name.rows"
}

train host host
[ "$(grep -c '"loss":1.44000006,' host.rows)" -eq 402 ] ||
    fail "not all rows have the loss: $(cat host.rows)"
train cuda:0 cuda
expect_equal host.rows cuda.rows
train cuda:0 parts --steps=133
train cuda:0 parts --resume
expect_equal host.rows parts.rows

# Rows that an evaluation ranks come from the device's memory, batch by batch;
# their area steers the rate, the checkpoints and the end of the run.
sed 's/metrics = .*\]/metrics = [accuracy, auc]/
    s/best accuracy keep 9/best auc/
    s/improvement of loss/improvement of auc/
    s/patience=2 epoch/&, metric=auc/' \
    "$SINTER_SOURCE/tests/end_to_end/monitor.net" >ranked.net
expect 0 "$SINTER" build ranked.net -o ranked
for device in host cuda:0; do
    expect 0 ./ranked --device="$device" --out="ranked-$device" --threads=1
    expect_says "stopped at step .*: auc has not improved since step"
    expect_says "auc has not improved for 40 steps: plateau"
    expect_says "best auc, .*/best-.*safetensors"
    sed -n 's/.*"auc":\([0-9.]*\).*/\1/p' "ranked-$device/metrics.jsonl" \
        >"ranked-$device.auc"
done
paste ranked-host.auc ranked-cuda:0.auc | awk '
    $1 <= 0 || $1 > 1 || $1 - $2 > 2e-3 || $2 - $1 > 2e-3 { exit bad = 1 }
    END { exit bad || NR < 6 }' || fail "$(paste ranked-*.auc)"
