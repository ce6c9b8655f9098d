#!/bin/sh
# --tensorboard: the tensorboard package reads the rows of metrics.jsonl, the
# histograms of the parameters, the graph and images of the training set, of a
# run that was interrupted, too.  Histograms of gradients are those of the
# change of the weights by a step of plain SGD, and training is the same.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

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

# The images are those of the data set.
for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, PIL' 2>/dev/null || continue
    $candidate -c '
import numpy as np
from PIL import Image
with open("data/train-images-idx3-ubyte", "rb") as file:
    wanted = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 12, 12)
for i in range(8):
    assert np.array_equal(np.asarray(Image.open(f"image_{i}.png")), wanted[i])
' || fail "other images"
    break
done
# gradients RATE SETTING...
gradients() {
    rate=$1
    shift
    set -- "$@" "optimizer=sgd(lr=$rate)"
    for setting; do
        set -- "$@" --set "$setting"
        shift
    done
    expect 0 "$SINTER" build tiny.net --gradients -o gradients "$@"
    for steps in 1 2; do
        rm -rf "step$steps" board$steps
        expect 0 ./gradients --steps=$steps --out=step$steps --quiet \
            --tensorboard=board$steps
    done
    "$python" "$here/events.py" board2 "$(newest step1)" "$(newest step2)" \
        "$rate" || fail "other gradients: $*"
    rm -rf unseen
    expect 0 ./gradients --steps=2 --out=unseen --quiet
    expect_equal "$(newest step2)" "$(newest unseen)"
}
gradients 1 batch=32 accumulate=2
gradients 0.0078125 batch=32 accumulate=2 'precision=mixed(f16)' \
    'loss=sum(cross_entropy(output, label))'

# Training is the same without.
expect 0 ./tiny --out=plain --quiet
expect_equal "$(newest run)" "$(newest plain)"
expect 0 ./tiny --eval-only --out=run --tensorboard=other --quiet
[ -s "$(find other/test -type f)" ] || fail "an evaluation writes no events"
echo >file
expect 74 ./tiny --out=again --tensorboard=file/board --quiet
expect_says "file"
