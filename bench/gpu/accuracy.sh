#!/bin/sh
# CIFAR-10 to the end of the recipe, with five seeds.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
[ -n "$DATA" ] || [ -n "$SMALL" ] || not_here "there is no CIFAR-10; see --data"

# training: seconds of the epochs, without evaluation.
training() {
    sed -n 's/.*"split":"train".*"step":\([0-9]*\).*"samples_per_second":\([^,}]*\).*/\1 \2/p' \
        metrics | awk -v batch="$1" '
        { seconds += ($1 - last) * batch / $2; last = $1 }
        END { printf "%.3f", seconds }'
}

# seen MODEL SEED NAME VALUE UNIT: a row, also kept for the median of the seeds.
seen() {
    row "$1, seed $2: $3" "$4" "$5"
    echo "$4" >>"$1.$3"
}

# middle MODEL NAME UNIT
middle() {
    row "$1: $2" "$(median <"$1.$2")" "$3" \
        "the median of $(wc -l <"$1.$2" | tr -d ' ')"
}

# accuracy_of MODEL SEED
accuracy_of() {
    began=$(date +%s%N)
    train "$1" "$1" --seed="$2" ${SMALL:+--epochs=2} >output 2>&1 || {
        cat output
        return 1
    }
    ended=$(date +%s%N)
    wall=$(awk -v ns=$((ended - began)) 'BEGIN { printf "%.3f", ns / 1e9 }')
    accuracy=$(sed -n 's/.*accuracy \([0-9.]*\) %.*/\1/p' output | tail -n 1)
    seen "$1" "$2" "test accuracy" "$accuracy" %
    seen "$1" "$2" training "$(training "$(batch_of "$1")")" s
    seen "$1" "$2" "whole process" "$wall" s
}

models=$MODELS
[ -n "$SMALL" ] || models="airbench94 airbench94_muon resnet9"
for model in $models; do
    build "$model" "$model" && tuned "$model" "$model" || exit
    for seed in 0 1 2 3 4; do
        accuracy_of "$model" "$seed" || exit
        [ -z "$SMALL" ] || break
    done
    middle "$model" "test accuracy" %
    middle "$model" training s
    middle "$model" "whole process" s
done
