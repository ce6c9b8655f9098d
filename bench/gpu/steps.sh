#!/bin/sh
# Time of a training step, alternating with PyTorch's on the same GPU: eager,
# compiled with max-autotune, and in the ways that suit a model best.  Both
# augment on the GPU, channels last, in the precision of the model.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
# shellcheck disable=SC2153 # gpu.sh sets it
until=$(($(date +%s) + LIMIT - 5))
models=$MODELS
[ -n "$SMALL" ] || models="$MODELS gpt_nano"

# ours MODEL
ours() {
    step_ms "$1" "$1" >ms || return
    cat ms >>"$1.ours"
    echo >>"$1.ours"
}

# their_steps SECONDS MODEL OPTION...: output in the file output, errors in err.
their_steps() {
    limit=$1
    shift
    set -- "$@" --device "$DEVICE"
    if [ -n "$SMALL" ]; then
        shift
        set -- resnet9 "$@" --batch 2 --width 8 --steps 2 --rounds 1 \
            --device cpu --precision f32
    fi
    timeout --foreground "$limit" "$PYTHON" "$ROOT/bench/pytorch/step.py" "$@" \
        >output 2>err
    status=$?
    [ $status -ne 124 ] || echo "stopped after $limit s" >>err
    return $status
}

# theirs MODEL NAME SECONDS OPTION...
theirs() {
    model=$1 name=$2 limit=$3
    shift 3
    [ -n "$PYTHON" ] || return
    their_steps "$limit" "$model" "$@" || {
        tail -n 3 err
        row "$model: $name" "not run" "" "$(tail -n 1 err | tr '\t' ' ')"
        return
    }
    ms=$(sed -n 's/.*"ms": \([0-9.]*\).*/\1/p' output)
    row "$model: $name" "$ms" ms "$(sed -n 's/.*"rounds": \[\([^]]*\)\].*/\1/p' output)"
    ours "$model" || return
    row "$model: sinter / $name" \
        "$(ratio "$(median <"$model.ours")" "$ms")"
}

for model in $models; do
    build "$model" "$model" && untuned=$(step_ms "$model" "$model") || exit
    row "$model: sinter, untuned" "$untuned" ms
    tuned "$model" "$model" && ours "$model" || exit
done
for model in $models; do
    row "$model: sinter, tuned" "$(median <"$model.ours")" ms \
        "$(paste -sd ' ' "$model.ours")"
done
for model in $models; do
    theirs "$model" "PyTorch eager" $((LIMIT / 10))
done
# Compilation takes all available time: each gets its share of the rest.
# compiled RUNS MODEL NAME OPTION...: with so many runs to come, this one too.
compiled() {
    each=$(((until - $(date +%s)) / $1))
    shift
    model=$1 name=$2
    shift 2
    theirs "$model" "$name" $((each > 1 ? each : 1)) --compile "$@"
}
if [ -z "$SMALL" ]; then
    compiled 5 airbench94 "torch.compile, max-autotune"
    compiled 4 resnet9 "torch.compile, max-autotune"
    compiled 3 gpt_nano "torch.compile, max-autotune"
    compiled 2 airbench94 "torch.compile, half, with its optimizer" \
        --precision half --compile-optimizer
    compiled 1 gpt_nano "torch.compile, with its optimizer" --compile-optimizer
fi
