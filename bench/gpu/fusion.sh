#!/bin/sh
# The gain of fusion: against one kernel per operation, and against library
# calls without fusion.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
for model in $MODELS; do
    build fused "$model" && build unfused "$model" -O0 &&
        against "$model" fused fused unfused unfused &&
        against "$model" "library fusions" fused without \
            "fused --without=library-fusions" || exit
done
