#!/bin/sh
# A step as one CUDA graph, and as single launches.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
for model in $MODELS mlp; do
    build "$model" "$model" &&
        against "$model" graph "$model" launches "$model --without=graph" || exit
done
