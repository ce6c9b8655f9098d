#!/bin/sh
# NVIDIA's compilers take the emitted tile kernels: each has tensor core
# instructions, and none spills registers or has an atomic.
# usage: tile.sh [MODEL ARCHITECTURES [OPTION...]]
set -u
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

for nvidia in "${SINTER_PYTHON%/bin/python}"/lib/python3*/site-packages/nvidia/cu13; do
    [ -x "$nvidia/bin/tileiras" ] && [ -x "$nvidia/bin/nvdisasm" ] || exit 77
done
model=${1-$SINTER_SOURCE/tests/tile/small.net}
archs=${2-sm_90}
if [ $# -lt 2 ]; then
    any='[1-9]'
else
    any='[0-9]'
    shift 2
fi
export XDG_CACHE_HOME="${XDG_CACHE_HOME-$work/cache}"
export LD_LIBRARY_PATH="$nvidia/lib"
expect 0 "$SINTER" doctor
expect_says "^Tile IR *13[.][0-9]*: .*bin/tileiras"
expect 0 "$SINTER" build "$model" "$@" --emit=c --target="cuda:$archs" \
    --tile=all -o emitted
expect 0 python3 "$SINTER_SOURCE/tests/tile/sass.py" "$nvidia/bin/nvdisasm" \
    emitted/*.bin
expect_says "^$any[0-9]* tile kernels, 0 bad"
cat out
