#!/bin/sh
# cuDNN has a plan for every convolution of a few networks, and for what rides
# on them where ir/library.def says so.  usage: models.sh PLAN.o
set -eu
plan=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# plans FILE DEVICE...: asks for those of a model.
plans() {
    model=$(basename "$1" .net)
    "$SINTER" build "$SINTER_SOURCE/$1" --emit=c -o "$work"
    shift
    # shellcheck disable=SC2086 # flags
    "$CC" ${CFLAGS:-} -O0 -std=c11 -w -I"$work" -I"$SINTER_INCLUDE" \
        -o "$work/$model" "$work/$model.c" "$plan" -L"$SINTER_LIB" -lsinter_rt -lm -ldl
    for device; do
        set -- "$@" "$SINTER_SOURCE/devices/$device.json"
        shift
    done
    "$work/$model" "$@"
}

plans models/resnet9.net h200 a100 b200 t4
plans models/airbench94.net h200 b200
plans models/resnet50.net h200
plans tests/golden/launches/stride.net h200 a100
plans tests/golden/launches/wide.net h200 a100
