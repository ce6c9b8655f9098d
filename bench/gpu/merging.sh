#!/bin/sh
# Consecutive kernels as one cooperative launch, and as separate launches.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
for model in $MODELS; do
    build "$model" "$model" &&
        against "$model" merged "$model" separate \
            "$model --without=merged-launches" || exit
done
