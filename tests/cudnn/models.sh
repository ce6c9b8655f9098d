#!/bin/sh
# cuDNN has a plan for every convolution of a few networks, and for what rides
# on them where ir/library.def says so.  usage: models.sh PLAN.o
set -eu
plan=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# plans MODEL DEVICE...: asks for those of a model.
plans() {
    model=$1
    shift
    "$SINTER" build "$SINTER_SOURCE/models/$model.net" --emit=c -o "$work"
    # shellcheck disable=SC2086 # flags
    "$CC" ${CFLAGS:-} -O0 -std=c11 -w -I"$work" -I"$SINTER_INCLUDE" \
        -o "$work/$model" "$work/$model.c" "$plan" -L"$SINTER_LIB" -lsinter_rt -lm -ldl
    for device; do
        set -- "$@" "$SINTER_SOURCE/devices/$device.json"
        shift
    done
    "$work/$model" "$@"
}

plans resnet9 h200 a100 b200 t4
plans airbench94 h200 b200
plans resnet50 h200
