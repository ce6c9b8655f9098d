#!/bin/sh
# Kernels compile with NVRTC and do not spill: those of all models for one GPU
# generation, of two for the others, and joined ones of two, or with NVRTC_ALL=1
# of all.
# usage: models.sh NVRTC
set -eu
nvrtc=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for model in "$SINTER_SOURCE"/models/*.net; do
    "$SINTER" build "$model" --emit=c -o "$work" 2>"$work/log" || {
        cat "$work/log"
        exit 1
    }
done
"$nvrtc" "$SINTER_INCLUDE" sm_90 \
    --golden="$SINTER_SOURCE/tests/golden/nvrtc" "$work"/*.cu
"$nvrtc" "$SINTER_INCLUDE" sm_90 --joined \
    --golden="$SINTER_SOURCE/tests/golden/nvrtc" \
    "$work/resnet9.cu" "$work/gpt_nano.cu"
if [ -n "${NVRTC_ALL:-}" ]; then
    set -- "$work"/*.cu
else
    set -- "$work/resnet9.cu" "$work/lenet.cu"
fi
for arch in sm_80 sm_100 sm_120; do
    "$nvrtc" "$SINTER_INCLUDE" "$arch" "$@"
done
if [ -n "${NVRTC_ALL:-}" ]; then
    for arch in sm_80 sm_90 sm_100 sm_120; do
        "$nvrtc" "$SINTER_INCLUDE" "$arch" --joined "$@"
    done
fi
