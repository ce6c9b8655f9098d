#!/bin/sh
# The most that a run takes of the GPU's memory, by nvidia-smi, beside the plan.
# What is measured holds the driver's context and the libraries' code too, so
# that it is told for a small model as well.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
command -v nvidia-smi >/dev/null || not_here "there is no nvidia-smi"
ordinal=${DEVICE#cuda}
used() {
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits \
        --id="${ordinal#:}"
}

for model in mlp $MODELS; do
    build "$model" "$model" || exit
    before=$(used) || exit
    train "$model" "$model" --epochs="$EPOCHS" --quiet >said 2>&1 &
    child=$!
    : >samples
    while kill -0 $child 2>/dev/null; do
        used >>samples
        sleep 0.1
    done
    wait $child || { cat said && exit 1; }
    most=$(sort -n samples | tail -n 1)
    planned=$("$SINTER" check "$ROOT/models/$model.net" --json \
        --set batch="$(batch_of "$model")" |
        sed -n 's/.*"arena_bytes": *\([0-9]*\).*/\1/p')
    row "$model: planned" "$((planned >> 20))" MiB
    row "$model: measured" "$((most - before))" MiB "$before MiB before"
done
