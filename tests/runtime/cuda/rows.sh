#!/bin/sh
# The rows of a GPU have every step's loss to the digits that they show, as the
# host's have, and after an interruption too.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
export CFLAGS="${CFLAGS:-} -O0"

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
