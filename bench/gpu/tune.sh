#!/bin/sh
# Steps with the libraries' heuristics, and with tuned choices.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
for model in $MODELS; do
    build "$model" "$model" || exit
    rm -rf "$XDG_CACHE_HOME/sinter"
    untuned=$(step_ms "$model" "$model") || exit
    train "$model" "$model" --tune >output 2>&1 || { cat output && exit 1; }
    tuned=$(step_ms "$model" "$model") || exit
    row "$model: untuned" "$untuned" ms
    row "$model: tuned" "$tuned" ms "$(grep -m 1 'one after the other' output)"
    row "$model: tuned / untuned" "$(ratio "$tuned" "$untuned")"
done
