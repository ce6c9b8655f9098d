#!/bin/sh
# A step in shards: its time beside the whole batch, and its weights, which are
# the same to the bit in a second run, as two ranks on one GPU, and as ranks with
# a GPU each where there are several.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
shards=8
[ -z "$SMALL" ] || shards=2

# steps_of OUT OPTION...: some updates, recorded and again.
steps_of() {
    out=$1
    shift
    ./sharded --data="synthetic:$((6 * $(batch_of "$model")))" --epochs=2 \
        --quiet --out="$out" "$@"
}

# ranks COUNT OUT OPTION...: as torchrun starts them.
ranks() {
    count=$1 out=$2
    shift 2
    processes='' good=0
    for rank in $(seq 0 $((count - 1))); do
        RANK=$rank WORLD_SIZE=$count LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$count \
            TORCHELASTIC_RUN_ID=$$.$out steps_of "$out" "$@" &
        processes="$processes $!"
    done
    for process in $processes; do
        wait "$process" || good=1
    done
    return $good
}

weights() {
    find "$1" -name '*.safetensors' | sort | tail -n 1
}

# judge OUT NAME COMMAND...: a row that tells whether its weights are those of
# the folder one.
judge() {
    out=$1 name=$2 result=fails
    shift 2
    if "$@" >"$out.log" 2>&1; then
        result=other
        cmp "$(weights one)" "$(weights "$out")" && result=same
    else
        tail -n 5 "$out.log"
    fi
    [ $result = same ] || : >failed
    row "$model: weights $name" $result "" "$(grep -m 1 '^error: ' "$out.log")"
}

gpus=$(nvidia-smi --query-gpu=name --format=csv,noheader | wc -l)
most=1
while [ $((2 * most)) -le "$gpus" ] && [ "$most" -lt $shards ]; do
    most=$((2 * most))
done
for model in $MODELS; do
    build whole "$model" && build sharded "$model" --set shards=$shards || exit
    against "$model" "$shards shards" sharded "one batch" whole || exit
    rm -rf one
    steps_of one --device="$DEVICE" || exit
    judge again "of a second run" steps_of again --device="$DEVICE"
    judge shared "of two ranks on a GPU" ranks 2 shared --device="$DEVICE" \
        --collectives=shared
    [ "$most" -lt 2 ] ||
        judge nccl "of $most GPUs" ranks "$most" nccl --device=cuda \
            --collectives=nccl
done
[ ! -e failed ]
