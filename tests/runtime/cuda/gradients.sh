#!/bin/sh
# --tensorboard on a GPU: histograms of gradients are those of the change of the
# weights, and training is the same without.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for candidate in "${SINTER_PYTHON:-}" python3; do
    LD_LIBRARY_PATH='' $candidate -c 'import numpy, tensorboard' 2>/dev/null &&
        python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
cp "$here/tiny.net" .
mkdir data
idx_data data 128
expect 0 "$SINTER" build tiny.net --gradients -o tiny --set batch=32 \
    --set accumulate=2 --set 'optimizer=sgd(lr=1)'
for steps in 1 2; do
    expect 0 ./tiny --device=cuda --steps=$steps --out=step$steps --quiet \
        --tensorboard=board$steps
done
LD_LIBRARY_PATH='' "$python" "$here/events.py" board2 "$(newest step1)" \
    "$(newest step2)" 1 || fail "other gradients"
expect 0 ./tiny --device=cuda --steps=2 --out=unseen --quiet
expect_equal "$(newest step2)" "$(newest unseen)"
