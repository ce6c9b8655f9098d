#!/bin/sh
# The most that a run takes of the GPU's memory, by nvidia-smi, beside what the
# trainer has planned: its arena with all else that it takes for a step, and the
# images.  What is measured holds the driver's context and the libraries' code
# too, which is told by a small model.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
command -v nvidia-smi >/dev/null || not_here "there is no nvidia-smi"
ordinal=${DEVICE#cuda}
used() {
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits \
        --id="${ordinal#:}"
}

# planned: in MiB, by what the trainer has said.
planned() {
    sed -n 's/^memory: \([0-9.]*\) MiB on.*/\1/p
            s/^images stay on [^ ]*: \([0-9.]*\) MiB.*/\1/p' said |
        awk '{ sum += $1 } END { if (NR == 0) exit 1; printf "%.1f", sum }'
}

beside=''
for model in mlp $MODELS; do
    build "$model" "$model" || exit
    before=$(used) || exit
    train "$model" "$model" --epochs="$EPOCHS" >said 2>&1 &
    child=$!
    : >samples
    while kill -0 $child 2>/dev/null; do
        used >>samples
        sleep 0.1
    done
    wait $child || { cat said && exit 1; }
    plan=$(planned) || exit
    took=$(($(sort -n samples | tail -n 1) - before))
    row "$model: planned" "$plan" MiB
    row "$model: measured" "$took" MiB "$before MiB before"
    if [ -z "$beside" ]; then
        beside=$(awk -v a="$took" -v b="$plan" 'BEGIN { print a - b }')
        row "driver and libraries" "$beside" MiB "what $model takes beside its plan"
    else
        less=$(awk -v a="$took" -v b="$beside" 'BEGIN { print a - b }')
        row "$model: measured / planned" "$(ratio "$less" "$plan")" "" \
            "without driver and libraries"
    fi
done
