#!/bin/sh
# Every model, narrow and with small batches: its losses on the GPU equal those
# on the host.
set -u
. "$ROOT/bench/gpu/rows.sh"
export SINTER="$BUILD/bin/sinter" SINTER_SOURCE="$ROOT" CC="${CC:-cc}"
names() {
    if [ -n "$SMALL" ]; then
        echo lenet
    else
        sed -n 's/^model \([a-z0-9_]*\) .*/\1/p' "$ROOT/tests/runtime/cuda/models.sh"
    fi
}

# Results so far count when time is up.
trap 'report; exit 124' TERM
report() {
    cat models
    row "models that agree" "$(grep -c '^agrees ' models)"
    row "models that differ" "$(grep -c '^differs ' models)" "" \
        "$(sed -n 's/^differs //p' models | paste -sd ' ')"
    row "models that were stopped" "$(grep -c '^stopped ' models)" "" \
        "$(sed -n 's/^stopped //p' models | paste -sd ' ')"
}

# shellcheck disable=SC2016 # the inner shell expands
names |
    xargs -P "$JOBS" -I NAME sh -c '
        CUDA_MODEL=NAME sh "$0/bench/gpu/limit.sh" $((LIMIT * 3 / 4)) \
            "$0/tests/runtime/cuda/models.sh" "" >NAME.log 2>&1
        status=$?
        result=differs
        [ $status -ne 0 ] || ! grep -q ": " NAME.log || result=agrees
        case $status in
        124 | 137) result=stopped ;;
        esac
        echo "$result NAME"
        [ $result = agrees ] || tail -n 5 NAME.log' "$ROOT" >models &
wait $!
report
! grep -q '^differs \|^stopped ' models && grep -q '^agrees ' models
