#!/bin/sh
# Builds the compiler and the test programs for a GPU in build/gpu.
set -eu
cmake=cmake
command -v cmake >/dev/null || cmake="$PYTHON -m cmake"
ninja=''
! command -v ninja >/dev/null || ninja='-G Ninja'
# shellcheck disable=SC2086 # words
$cmake -S "$ROOT" -B "$BUILD" $ninja -DCMAKE_BUILD_TYPE=Release \
    -DSINTER_TESTS=gpu -DSINTER_WERROR=OFF
$cmake --build "$BUILD" --parallel "$JOBS"
