#!/bin/sh
# A few steps at full size: two convolutional models and an attention model with
# all features of the CUDA device, without each optional one, unfused, and
# without convolutions that add to their results.  If nothing runs, this finds
# the feature to disable.  Losses are equal to the bit, except where library
# fusions, kernels or sums differ and round differently.  More models, which use
# other engines of cuDNN, run as a CUDA graph and as single launches.
set -u
. "$ROOT/bench/gpu/rows.sh"
. "$ROOT/bench/gpu/trainer.sh"
ways='graph timing-events merged-launches programmatic-launches forks step-groups resident library-fusions all'
# shellcheck disable=SC2153 # trainer.sh sets it
main="$MODELS gpt_nano"
engines='mobilenetv2 resnet18 vit_tiny lenet'
[ -z "$SMALL" ] || main=lenet engines=
# A run that hangs leaves time for the others; the first reads libraries from
# disk.
each=$((LIMIT / 3))
# The first two losses agree to this where roundings differ, as in
# tests/runtime/cuda/models.sh.
rounding=2e-3

# options_of WAY
options_of() {
    case $1 in
    nothing) ;;
    resident) echo --resident=no ;;
    all) echo --resident=no --without=graph,timing-events,merged-launches,programmatic-launches,forks,step-groups,library-fusions ;;
    *) echo "--without=$1" ;;
    esac
}

# run WAY TRAINER: its losses in WAY.TRAINER, empty on failure.
run() {
    name=$1.$2 model=${2%-*}
    # shellcheck disable=SC2046 # words
    timeout --foreground -k 1 $each "./$2" --device="$DEVICE" \
        --data="synthetic:$((2 * $(batch_of "$model")))" --steps=6 \
        --log-every=1 --metrics="$name.metrics" --out="$name.run" --quiet \
        $(options_of "$1") >"$name.log" 2>&1
    status=$?
    case $status in
    0)
        sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' \
            "$name.metrics" >"$name"
        ;;
    124 | 137) echo "error: it was stopped after $each s" >>"$name.log" ;;
    *) echo "exit status $status" >>"$name.log" ;;
    esac
}

# near A B: whether the first two losses differ by roundings.
near() {
    paste "$1" "$2" | head -n 2 | awk -v most=$rounding '
        function size(x) { return x < 0 ? -x : x }
        !(size($1 - $2) <= most * size($1)) { bad = 1 }
        END { exit bad || NR < 2 }'
}

# compared WAY TRAINER: whether its losses are those of the model as it is.
compared() {
    as_it_is=nothing.${2%-*}
    [ -s "$as_it_is" ] || return 0
    case $1.$2 in
    *-* | library-fusions.* | all.*) near "$as_it_is" "$1.$2" ;;
    *) cmp -s "$as_it_is" "$1.$2" ;;
    esac
}

# report_of WAY TRAINER: a row of the result, with the losses or the error.
report_of() {
    name=$1.$2 result=runs label="$2 without $1"
    [ "$1" != nothing ] || label="$2 as it is"
    note=$(grep -m 1 -e '^warning: ' "$name.log")
    if [ ! -s "$name" ]; then
        result=fails note=$(grep -m 1 -e '^error: ' "$name.log" ||
            tail -n 1 "$name.log")
    elif ! compared "$1" "$2"; then
        result="has other losses"
    fi
    [ "$result" = runs ] || {
        : >failed
        echo "==== $label $result"
        tail -n 5 "$name.log"
    }
    row "$label" "$result" "" "${note:-$(paste -sd ' ' "$name")}"
}

# each_run COMMAND: for every run but the first ones, with a way and a trainer.
each_run() {
    do=$1
    for model in $main; do
        for way in $ways; do
            $do "$way" "$model"
        done
        $do nothing "$model-unfused"
        $do nothing "$model-separate"
    done
    for model in $engines; do
        $do graph "$model"
    done
}

in_parallel() {
    run "$@" &
}

for model in $main $engines; do
    build "$model" "$model" &
done
for model in $main; do
    build "$model-unfused" "$model" --level=0 &
    build "$model-separate" "$model" --without=inplace &
done
wait
# The first runs fill the caches for the others.
for model in $main $engines; do
    in_parallel nothing "$model"
done
wait
each_run in_parallel
wait
for model in $main $engines; do
    report_of nothing "$model"
done
each_run report_of
[ ! -e failed ]
