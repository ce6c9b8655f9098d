#!/bin/sh
# From the start of a trainer to the end of its first step, with the checkpoint
# after it: nothing compiled yet, and all that an earlier run has kept.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"

# seconds TRAINER MODEL: of a run of one step.
seconds() {
    began=$(date +%s%N)
    train "$1" "$2" --steps=1 --quiet >&2 || return
    ended=$(date +%s%N)
    awk -v ns=$((ended - began)) 'BEGIN { printf "%.3f", ns / 1e9 }'
}

for model in $MODELS; do
    build "$model" "$model" || exit
    seconds "$model" "$model" >/dev/null || exit # libraries come from the disk
    rm -rf "$XDG_CACHE_HOME/sinter"
    cold=$(seconds "$model" "$model") && warm=$(seconds "$model" "$model") || exit
    row "$model: cold start" "$cold" s
    row "$model: warm start" "$warm" s
done
