#!/bin/sh
# A run's peak GPU memory by nvidia-smi, beside the trainer's plan: its arena,
# other memory of a step, and the images.  A small model measures the driver's
# context and the libraries' code, which nvidia-smi includes.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
command -v nvidia-smi >/dev/null || not_here "there is no nvidia-smi"
ordinal=${DEVICE#cuda}
used() {
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits \
        --id="${ordinal#:}"
}

# planned: in MiB, from the trainer's output.
planned() {
    sed -n 's/^memory: \([0-9.]*\) MiB on.*/\1/p
            s/^images stay on [^ ]*: \([0-9.]*\) MiB.*/\1/p' output |
        awk '{ sum += $1 } END { if (NR == 0) exit 1; printf "%.1f", sum }'
}

beside=''
for model in mlp $MODELS; do
    build "$model" "$model" || exit
    before=$(used) || exit
    train "$model" "$model" --epochs="$EPOCHS" >output 2>&1 &
    child=$!
    : >samples
    while kill -0 $child 2>/dev/null; do
        used >>samples
        sleep 0.1
    done
    wait $child || { cat output && exit 1; }
    plan=$(planned) || exit
    took=$(($(sort -n samples | tail -n 1) - before))
    row "$model: planned" "$plan" MiB
    row "$model: measured" "$took" MiB "$before MiB before"
    if [ -z "$beside" ]; then
        beside=$(awk -v a="$took" -v b="$plan" 'BEGIN { print a - b }')
        row "driver and libraries" "$beside" MiB "$model beside its plan"
    else
        less=$(awk -v a="$took" -v b="$beside" 'BEGIN { print a - b }')
        row "$model: measured / planned" "$(ratio "$less" "$plan")" "" \
            "without driver and libraries"
    fi
done
