#!/bin/sh
# Every kernel of every model compiles with NVRTC for one GPU generation, and
# those of two models for all.  usage: models.sh NVRTC
set -eu
nvrtc=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for model in "$SINTER_SOURCE"/models/*.net; do
    "$SINTER" build "$model" --emit=c -o "$work"
done
"$nvrtc" "$SINTER_INCLUDE" sm_90 "$work"/*.cu
"$nvrtc" "$SINTER_INCLUDE" sm_80,sm_100,sm_120 \
    "$work"/resnet9.cu "$work"/lenet.cu
