#!/bin/sh
# Builds sinter's tests of NVRTC and cuDNN with the newest Python packages of
# them, and runs these.
#
#   nvidia.sh FOLDER
#
# FOLDER gets the packages, of 2 GB, and the build.  Needs no GPU.
set -eu
source=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
build=$folder/build

python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet --upgrade nvidia-cudnn-cu13 \
    nvidia-cuda-nvrtc nvidia-cuda-runtime
packages=$(echo "$folder"/python/lib/python3*/site-packages/nvidia)
cuda=$packages/cu13 cudnn=$packages/cudnn

# cuDNN's compiling engines are linked with the driver, of which planning needs
# nothing but the name.
mkdir -p "$folder/driver"
nm -D --undefined-only "$cudnn"/lib/*.so.9 |
    sed -n 's/^ *U \(cu[A-Z][A-Za-z0-9]*\)$/int \1(void) { return 100; }/p' |
    sort -u >"$folder/driver.c"
cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$folder/driver/libcuda.so.1" \
    "$folder/driver.c"

cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCUDA_INCLUDE_DIR="$cuda/include" -DNVRTC_INCLUDE_DIR="$cuda/include" \
    -DNVRTC_LIBRARY="$cuda/lib/libnvrtc.so.13" \
    -DCUDNN_INCLUDE_DIR="$cudnn/include" \
    -DCUDNN_LIBRARY="$cudnn/lib/libcudnn.so.9"
cmake --build "$build" --target sinter runtime nvrtc nvrtc_header cudnn_plan \
    cudnn_report cudnn_refused cudnn_loaded cudnn_numbers
export LD_LIBRARY_PATH="$cuda/lib:$cudnn/lib:$folder/driver"
"$build/bin/sinter" doctor | grep -E '^(NVRTC|cuDNN) '
ctest --test-dir "$build" --output-on-failure -R '^(nvrtc|cudnn.*)$'
