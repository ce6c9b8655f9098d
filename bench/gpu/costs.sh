#!/bin/sh
# Overheads of a step: events for the time budget, and loading, with images on
# the GPU and with streamed ones.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"

# cost MODEL NAME OPTIONS_WITH OPTIONS_WITHOUT
cost() {
    against "$1" "with $2" "$1 $3" "without $2" "$1 $4"
}

for model in $MODELS; do
    build "$model" "$model" && tuned "$model" "$model" &&
        cost "$model" "time budget" "" "--without=timing-events" &&
        cost "$model" loading "" "--repeat-batch" &&
        cost "$model" streaming "--resident=no" "--resident=no --repeat-batch" ||
        exit
done
