#!/bin/sh
# --tensorboard: the tensorboard package reads the rows of metrics.jsonl and the
# histograms of the parameters, of a run that was interrupted, too.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

for candidate in "${SINTER_PYTHON:-}" python3; do
    $candidate -c 'import numpy, tensorboard' 2>/dev/null &&
        python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
cp "$here/tiny.net" .
mkdir data
idx_data data 128
expect 0 "$SINTER" build tiny.net -o tiny
expect 0 ./tiny --out=run --tensorboard=board --log-every=1 --steps=4 --quiet
expect 0 ./tiny --resume --out=run --tensorboard=board --log-every=1 --quiet
"$python" "$here/events.py" board run/metrics.jsonl "$(newest run)" ||
    fail "the event files differ"
expect 0 ./tiny --eval-only --out=run --tensorboard=other --quiet
[ -s "$(find other/test -type f)" ] || fail "an evaluation writes no events"
echo >file
expect 74 ./tiny --out=again --tensorboard=file/board --quiet
expect_says "file"
