#!/bin/sh
# Estimates of the cost model against machine code of NVRTC for sm_90:
# instructions, registers and bytes in flight of all kernels of four models, or
# with COST_ALL=1 of all models, for four architectures.  FOLDER has the facts of
# kernels that are compiled.
# usage: cost.sh NVRTC FOLDER
set -eu
nvrtc=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
models="gpt_nano lenet resnet9 unet_seg"
[ -z "${COST_ALL:-}" ] || models=$(
    cd "$SINTER_SOURCE/models" && ls ./*.net | sed 's|./\(.*\).net|\1|'
)
for model in $models; do
    file=$SINTER_SOURCE/models/$model.net
    "$SINTER" build "$file" --emit=c -o "$work" >"$work/log" 2>&1 || {
        cat "$work/log"
        exit 1
    }
    "$SINTER" show kernels --json "$file" >"$work/$model.json"
done
for arch in sm_90 ${COST_ALL:+sm_80 sm_100 sm_120}; do
    "$nvrtc" "$SINTER_INCLUDE" $arch --known="$folder/known" "$work"/*.cu \
        >"$work/$arch"
    python3 "$SINTER_SOURCE/tests/codegen/cost/compare.py" \
        "$work/$arch" "$work"/*.json
done
