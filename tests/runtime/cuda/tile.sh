#!/bin/sh
# Tile kernels: sinter build compiles them for the GPUs of --target, and the
# trainer launches them there.  The stand-in runs them with the meaning that
# runtime/prelude/tile gives their text.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/runtime/cuda/tile_train.sh"

command -v "${CXX-c++}" >/dev/null || exit 77
model=$SINTER_SOURCE/tests/runtime/cuda/tile.net
small_cache h200 >h200.json
small_cache a100 >a100.json
export SINTER_DOUBLE_DEVICE="$work/h200.json"

# Without NVRTC 13.3 and tileiras, contractions are library calls.
expect 0 "$SINTER" doctor
expect_says "^Tile IR *absent: .*nvidia-cuda-tileiras"
expect 4 "$SINTER" build "$model" --target=cuda:sm_90 --tile=all -o tile
expect_says "nvidia-cuda-nvrtc, nvidia-cuda-tileiras, nvidia-nvvm and"

# with COMMAND...: with NVRTC 13.5 and the programs beside it.
with() {
    env LD_LIBRARY_PATH="$SINTER_DOUBLE/tile/lib:$SINTER_DOUBLE" "$@"
}

expect 0 with "$SINTER" doctor
expect_says "^Tile IR *13.5: .*/tile/bin/tileiras"
expect 0 with SINTER_DOUBLE_PTXAS=13.4 "$SINTER" doctor
expect_says "^Tile IR *absent: .*ptxas is of release 13.4, but NVRTC of 13.5"

expect 0 with SINTER_DOUBLE_LOG="$work/first" \
    "$SINTER" build "$model" --target=cuda:sm_90 --tile=all -o tile
grep -q enable-tile first || fail "no tile kernel was compiled"
grep -q "t[0-9][0-9]*_conv" tile || fail "no tile kernel in the trainer"
# Equal texts are compiled once.
expect 0 with SINTER_DOUBLE_LOG="$work/again" \
    "$SINTER" build "$model" --target=cuda:sm_90 --tile=all -o tile
grep -q enable-tile again && fail "a cached tile kernel was compiled again"
# Another patch version of a program makes them anew.
cp -RLp "$SINTER_DOUBLE/tile" patched
echo "# another version" >>patched/bin/tileiras
expect 0 env LD_LIBRARY_PATH="$work/patched/lib:$SINTER_DOUBLE" \
    SINTER_DOUBLE_LOG="$work/patched.log" \
    "$SINTER" build "$model" --target=cuda:sm_90 --tile=all -o tile
grep -q enable-tile patched.log || fail "code of another tileiras was taken"
expect 0 with "$SINTER" build "$model" --target=cuda:sm_90 --tile=none -o none
grep -q "t[0-9][0-9]*_conv" none && fail "--tile=none has tile kernels"

SINTER_DOUBLE_SEED=1 train tiles 64
SINTER_DOUBLE_SEED=5 train again 64
train library 64 --without=tile-kernels
expect_equal tiles again
near tiles library 1024
[ "$(grep -c "cuLaunchKernel t[0-9][0-9]*_" tiles.log)" -ge 8 ] ||
    fail "no tile kernel was launched"
grep -q "cuLaunchKernel t[0-9][0-9]*_.*_sum" tiles.log ||
    fail "no weight gradient is split"
grep -q "cuLaunchKernel t[0-9][0-9]*_" library.log &&
    fail "--without=tile-kernels launches one"
# All contractions are tile kernels, so that no library is needed.
grep -q "cudnn\|cublas" tiles.log &&
    fail "a library is used: $(grep "cudnn\|cublas" tiles.log | head -3)"
grep -q cudnnBackendExecute library.log || fail "no library call"
# Nor are cuDNN and cuBLASLt opened, so that they need not be there.
cp -R "$SINTER_DOUBLE" few
for missing in libcudnn.so.9 libcublasLt.so.13; do
    rm "few/$missing"
    echo "no library" >"few/$missing"
done
LD_LIBRARY_PATH="$work/few" train alone 64
expect_equal tiles alone

# Code that the driver refuses, and a GPU of another generation.
SINTER_DOUBLE_FAIL=cuModuleLoadDataEx:1:200 train refused 64
expect_says "tile kernel .*a library call does its work"
near refused library 1024
SINTER_DOUBLE_DEVICE="$work/a100.json" train earlier 64
near earlier library 1024
# A merged launch with a kernel that a tile kernel replaces is one where the tile
# kernel cannot run.
merged() {
    grep -c cuLaunchCooperativeKernel "$1.log"
}
[ "$(merged earlier)" -gt "$(merged tiles)" ] ||
    fail "$(merged tiles) merged launches with tile kernels, $(merged earlier) without"
[ "$(merged earlier)" -eq "$(merged library)" ] ||
    fail "$(merged library) merged launches without tile kernels, $(merged earlier) here"
grep -q "cuLaunchKernel t[0-9][0-9]*_" earlier.log &&
    fail "a tile kernel for another GPU was launched"
exit 0
