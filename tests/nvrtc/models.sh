#!/bin/sh
# Every kernel of every model compiles with NVRTC.  usage: models.sh NVRTC
set -eu
nvrtc=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for model in "$SINTER_SOURCE"/models/*.net; do
    "$SINTER" build "$model" --emit=c -o "$work"
done
"$nvrtc" "$SINTER_INCLUDE" "$work"/*.cu
