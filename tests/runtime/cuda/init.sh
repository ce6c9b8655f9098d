#!/bin/sh
# Weights of a file reach a GPU unchanged, also the copies in f16, and a run
# that started with them resumes to the same bits.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

expect 0 "$SINTER" build "$here/tiny.net" --set precision=f16 -o tiny
expect 0 ./tiny --device=host --data=synthetic:192 --out=a --epochs=1
weights=$(newest a)

# on_gpu OPTION...
on_gpu() {
    ./tiny --device=cuda:0 --data=synthetic:192 --init="$weights" "$@"
}

expect 0 ./tiny --device=host --data=synthetic:192 --out=h --init="$weights" \
    --init-only
expect 0 on_gpu --out=g --init-only
expect_equal "$(newest h)" "$(newest g)"

# The first step has the weights that were loaded in f16 too, as one has that
# goes on from them.
expect 0 on_gpu --out=whole
expect 0 ./tiny --device=cuda:0 --data=synthetic:192 --out=again \
    --resume="$(newest g)"
expect_equal "$(newest whole)" "$(newest again)"

expect 0 ./tiny --device=cuda:0 --data=synthetic:192 --out=a --eval-only
grep '^test accuracy' out >right
expect 0 on_gpu --eval-only
grep '^test accuracy' out >found
expect_equal right found

expect 0 on_gpu --out=parts --steps=4
expect 0 ./tiny --device=cuda:0 --data=synthetic:192 --out=parts --resume
expect_equal "$(newest whole)" "$(newest parts)"
exit 0
