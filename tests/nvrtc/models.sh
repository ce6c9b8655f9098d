#!/bin/sh
# Kernels compile with NVRTC: those of a network of each kind for one GPU
# generation, of two for all.  usage: models.sh NVRTC
set -eu
nvrtc=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for model in resnet9 lenet airbench94 unet_small; do
    "$SINTER" build "$SINTER_SOURCE/models/$model.net" --emit=c -o "$work"
done
# Its layers are alike, so one of each is enough.
"$SINTER" build "$SINTER_SOURCE/models/gpt_nano.net" --set 'layers=[1]' \
    --emit=c -o "$work"
"$nvrtc" "$SINTER_INCLUDE" sm_90 "$work"/*.cu
"$nvrtc" "$SINTER_INCLUDE" sm_80,sm_100,sm_120 \
    "$work"/resnet9.cu "$work"/lenet.cu
