#!/bin/sh
# What a step takes longer for what is not training: events for the time budget,
# and loading, from images on the GPU and from streamed ones.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"

# cost MODEL WHAT WORDS_WITH WORDS_WITHOUT
cost() {
    against "$1" "with $2" "$1 $3" "without $2" "$1 $4"
}

for model in $MODELS; do
    build "$model" "$model" && tuned "$model" "$model" &&
        cost "$model" "time budget" "" "--without=marks" &&
        cost "$model" loading "" "--repeat-batch" &&
        cost "$model" streaming "--resident=no" "--resident=no --repeat-batch" ||
        exit
done
