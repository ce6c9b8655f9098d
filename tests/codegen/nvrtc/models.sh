#!/bin/sh
# Kernels of all models compile with NVRTC and do not spill: those are compiled
# that the golden reports do not know.  For one GPU generation there is a report
# of each model, and some that are known are compiled again.  Joined ones are
# those of two models for that generation.  With NVRTC_ALL=1 everything is
# compiled for all of them.
# usage: models.sh NVRTC
set -eu
nvrtc=$1
golden=$SINTER_SOURCE/tests/golden/nvrtc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for model in "$SINTER_SOURCE"/models/*.net; do
    "$SINTER" build "$model" --emit=c -o "$work" 2>"$work/log" || {
        cat "$work/log"
        exit 1
    }
done
failed=0
"$nvrtc" "$SINTER_INCLUDE" sm_90 --golden="$golden" --known="$golden" \
    "$work"/*.cu || failed=1
for arch in sm_80 sm_100 sm_120; do
    "$nvrtc" "$SINTER_INCLUDE" "$arch" --known="$golden" "$work"/*.cu ||
        failed=1
done
"$nvrtc" "$SINTER_INCLUDE" sm_90 --joined --golden="$golden" \
    --known="$golden" "$work/resnet9.cu" "$work/gpt_nano.cu" || failed=1
if [ -n "${NVRTC_ALL:-}" ]; then
    for arch in sm_80 sm_90 sm_100 sm_120; do
        "$nvrtc" "$SINTER_INCLUDE" "$arch" --joined "$work"/*.cu || failed=1
    done
fi
exit $failed
