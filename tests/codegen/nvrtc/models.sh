#!/bin/sh
# Kernels of models compile with NVRTC for sm_90 and do not spill, and so do
# those of two models for three other GPU architectures, and merged ones of one.
# Models whose kernels are like those of another are left out; BLESS=1 compiles
# them for sm_90 too and five models for the others, NVRTC_ALL=1 all for all.
# tests/golden/nvrtc.txt has the totals.  FOLDER keeps the facts of kernels,
# which are compiled once, and a list of them for each architecture.
# usage: models.sh NVRTC FOLDER
set -eu
nvrtc=$1 folder=$2
here=$SINTER_SOURCE/tests/codegen/nvrtc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
failed=0

# totals COLUMN ARCHITECTURE [--merged] FILE...: compares a column of the table.
totals() {
    column=$1 arch=$2 merged=
    shift 2
    [ "$1" != --merged ] || { merged=$1 && shift; }
    # shellcheck disable=SC2086 # an option or nothing
    "$nvrtc" "$SINTER_INCLUDE" "$arch" $merged --known="$folder/known" \
        "$@" >"$folder/$column.kernels" || failed=1
    python3 "$here/totals.py" "$column" "$folder/$column.kernels" || failed=1
}
models="gpt_nano gru_text lenet mlp resnet9 unet_seg"
[ -z "${BLESS:-}${NVRTC_ALL:-}" ] || models=$(
    cd "$SINTER_SOURCE/models" && ls ./*.net | sed 's|./\(.*\).net|\1|'
)
for model in $models; do
    "$SINTER" build "$SINTER_SOURCE/models/$model.net" --emit=c -o "$work" \
        2>"$work/log" || {
        cat "$work/log"
        exit 1
    }
done
set -- "$work"/*.cu
totals sm_90 sm_90 "$@"
set -- "$work/gpt_nano.cu"
[ -z "${BLESS:-}${NVRTC_ALL:-}" ] || set -- "$work/resnet9.cu" "$@"
totals merged sm_90 --merged "$@"

# Kernels of the other models differ from these in shapes more than in kind.
set -- "$work/lenet.cu" "$work/mlp.cu"
[ -z "${BLESS:-}" ] ||
    set -- "$@" "$work/gpt_nano.cu" "$work/resnet9.cu" "$work/vit_tiny.cu"
[ -z "${NVRTC_ALL:-}" ] || set -- "$work"/*.cu
for arch in sm_80 sm_100 sm_120; do
    totals $arch $arch "$@"
done
if [ -n "${NVRTC_ALL:-}" ]; then
    for arch in sm_80 sm_90 sm_100 sm_120; do
        "$nvrtc" "$SINTER_INCLUDE" "$arch" --merged \
            --known="$folder/known" "$work"/*.cu >/dev/null || failed=1
    done
fi
exit $failed
