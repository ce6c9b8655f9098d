#!/bin/sh
# Time of a training step beside PyTorch's, in turn on the same GPU: eager, and
# compiled with max-autotune.  Both augment on the GPU, channels last, in mixed
# precision.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"

# ours MODEL
ours() {
    step_ms "$1" "$1" >ms || return
    cat ms >>"$1.ours"
    echo >>"$1.ours"
}

# theirs MODEL NAME SECONDS OPTION...
theirs() {
    model=$1 name=$2 limit=$3
    shift 3
    [ -n "$PYTHON" ] || return
    set -- "$@" --device "$DEVICE"
    same=$model
    [ -z "$SMALL" ] || same=resnet9
    [ -z "$SMALL" ] || set -- --batch 2 --width 8 --steps 2 --rounds 1 \
        --device cpu --precision f32
    timeout --foreground "$limit" "$PYTHON" "$ROOT/bench/pytorch/step.py" "$same" "$@" \
        >said 2>err || {
        tail -n 3 err
        row "$model: $name" "not run" "" "$(tail -n 1 err | tr '\t' ' ')"
        return
    }
    ms=$(sed -n 's/.*"ms": \([0-9.]*\).*/\1/p' said)
    row "$model: $name" "$ms" ms "$(sed -n 's/.*"rounds": \[\([^]]*\)\].*/\1/p' said)"
    ours "$model" || return
    row "$model: sinter / $name" \
        "$(ratio "$(median <"$model.ours")" "$ms")" "" "the goal is 0.75"
}

for model in $MODELS; do
    build "$model" "$model" && train "$model" "$model" --tune && ours "$model" || exit
done
# shellcheck disable=SC2153 # gpu.sh has it
for model in $MODELS; do
    theirs "$model" "PyTorch eager" $((LIMIT / 8))
done
for model in $MODELS; do
    [ -n "$SMALL" ] || theirs "$model" "torch.compile, max-autotune" \
        $((LIMIT / 3)) --compile
done
for model in $MODELS; do
    row "$model: sinter, tuned" "$(median <"$model.ours")" ms \
        "$(paste -sd ' ' "$model.ours")"
done
