#!/bin/sh
# cuDNN has a plan for every convolution of models unlike one another on a
# described H200, and of one model on two more devices; with CUDNN_ALL=1 or
# BLESS=1 of every model on all.
# The plans are those that tests/golden/cudnn keeps: BLESS=1 writes them anew.
# Library fusions are planned where passes/plan/library.def lists them.
# usage: models.sh PLAN.o REPORT.o
set -eu
plan=$1
report=$2
golden=$SINTER_SOURCE/tests/golden/cudnn
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# tables FILE OBJECT OUT: the tables of a trainer, without its kernels, linked
# to an OBJECT that reads them.
tables() {
    name=$(basename "$1" .net)
    "$SINTER" build "$SINTER_SOURCE/$1" --emit=c -o "$work"
    {
        echo '#define HOST_KERNEL(...)'
        echo '#define HOST_FAMILY(...)'
        echo '#define HOST_LIKE(...)'
        echo '#define MERGED_KERNEL(...)'
        echo '#define MERGED_HOST(name) NULL'
        sed -e "/^#include \"$name.cu\"/d" \
            -e 's/, k[0-9a-z_]*_host,/, NULL,/' "$work/$name.c"
    } >"$work/tables.c"
    # shellcheck disable=SC2086 # flags
    "$CC" ${CFLAGS:-} -O0 -std=c11 -w -I"$work" -I"$SINTER_INCLUDE" \
        -o "$3" "$work/tables.c" "$2" -L"$SINTER_LIB" -lsinter_rt -lm -ldl
}

# on PROGRAM DEVICE...: runs it with their descriptions.
on() {
    program=$1
    shift
    for device; do
        set -- "$@" "$SINTER_SOURCE/tools/devices/$device.json"
        shift
    done
    "$program" "$@"
}

# fusions FILE DEVICE...: the library offers exactly those that may be planned.
fusions() {
    tables "$1" "$plan" "$work/fusions"
    shift
    on "$work/fusions" "$@"
}

# plans FILE DEVICE...: its reports equal the golden ones.  Another version of
# the library chooses others, but must have one for each call.
plans() {
    name=$(basename "$1" .net)
    tables "$1" "$report" "$work/plans"
    shift
    for device; do
        kept=$golden/$name.$device
        on "$work/plans" "$device" >"$work/now" || {
            status=$?
            cat "$work/now"
            return $status
        }
        if [ -n "${BLESS:-}" ]; then
            mkdir -p "$golden"
            cp "$work/now" "$kept"
        elif [ "$(head -n 1 "$work/now")" != "$(head -n 1 "$kept")" ]; then
            echo "$name: $(head -n 1 "$work/now"); kept: $(head -n 1 "$kept")"
        elif ! diff -u "$kept" "$work/now"; then
            echo "FAILED $name: BLESS=1 keeps these plans"
            failed=1
        fi
    done
}

case ${CUDNN_MODEL:-} in
"")
    fusions models/resnet9.net h200 a100 b200 t4
    fusions models/airbench94.net h200 b200
    fusions models/resnet50.net h200
    fusions tests/golden/launches/stride.net h200 a100
    fusions tests/golden/launches/wide.net h200 a100
    if [ -n "${BLESS:-}${CUDNN_ALL:-}" ]; then
        for file in "$SINTER_SOURCE"/models/*.net; do
            plans "models/$(basename "$file")" h200 a100 b200
        done
    else
        for name in airbench94_muon gpt_nano gru_text mlp mobilenetv2 multitask \
            resnet50 unet_seg vit_tiny; do
            plans models/$name.net h200
        done
        plans models/resnet9.net h200 a100 b200
    fi
    ;;
*)
    plans "models/$CUDNN_MODEL.net" h200 a100 b200
    ;;
esac
exit $failed
