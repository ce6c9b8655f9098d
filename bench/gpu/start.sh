#!/bin/sh
# From the start of a trainer to the end of its first step, by phase: with empty
# caches, and with those of an earlier run.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"

# once MODEL: runs one step, which ends with the time budget; prints the total
# time in seconds.
once() {
    began=$(date +%s%N)
    train "$1" "$1" --epochs=1e-6 --quiet >&2 || return
    ended=$(date +%s%N)
    awk -v ns=$((ended - began)) 'BEGIN { printf "%.3f", ns / 1e9 }'
}

# of_budget PART: seconds.
of_budget() {
    sed -n 's/.*"split":"time".*"'"$1"'":\([0-9.]*\).*/\1/p' metrics
}

# phases NAME: rows of the phases before the step, in order, and of the step.
phases() {
    sed -n 's/.*"split":"time",//p' metrics | tr ',' '\n' |
        sed -n 's/^"start_\([a-z]*\)":\([0-9.]*\).*/\1 \2/p' >parts
    while read -r part seconds; do
        row "$1, $part" "$seconds" s
    done <parts
    row "$1, first step" "$(awk -v a="$took" -v b="$(of_budget start)" \
        'BEGIN { printf "%.6f", a - b }')" s
}

# start MODEL NAME: a row of such a run, and those of its phases.
start() {
    wall=$(once "$1") || return
    took=$(awk -v a="$(of_budget total)" -v b="$(of_budget evaluation)" \
        -v c="$(of_budget checkpoints)" 'BEGIN { printf "%.6f", a - b - c }')
    row "$1: $2" "$took" s "$(of_budget start) s before the step, $wall s \
with evaluation, checkpoint and end"
    phases "$1: $2"
}

for model in $MODELS; do
    build "$model" "$model" || exit
    once "$model" >/dev/null || exit # reads libraries from disk
    rm -rf "$XDG_CACHE_HOME/sinter"
    start "$model" "cold start" && start "$model" "warm start" || exit
done
