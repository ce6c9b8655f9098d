#!/bin/sh
# What fusing saves: against a kernel for each operation, and against calls of
# the library that do nothing else on the way.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
for model in $MODELS; do
    build fused "$model" && build unfused "$model" -O0 &&
        against "$model" fused fused unfused unfused &&
        against "$model" "with rides" fused "without" "fused --without=rides" ||
        exit
done
