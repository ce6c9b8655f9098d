#!/bin/sh
# Builds sinter with oneDNN of a Python package, and tests it.
#
#   onednn.sh FOLDER [KIND...]
#
#   openmp    the last one whose threads are OpenMP's, like Debian's
#   sycl      the newest one, whose threads are TBB's, on a device of SYCL
#
# FOLDER gets the packages, the build and the runs; sycl's packages have 1.4 GB.
# The last line of each kind has the version that was linked.
set -eu
source=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- openmp sycl
tests='runtime|compare|end_to_end_(emit|train|resume|link)'
models='mlp|lenet|resnet9|gpt_nano'

packages() {
    case $1 in
    openmp) echo onednn-cpu-gomp onednn-devel-cpu-gomp ;;
    sycl) echo onednn onednn-devel ;;
    *) echo "no kind $1" >&2 && return 2 ;;
    esac
}

# trained NAME OPTION...: the checkpoint of a short run.
trained() {
    name=$1
    shift
    rm -rf "$name"
    "$SINTER" train "$source/models/resnet9.net" --set width=8 --set batch=64 \
        --data=synthetic:256 --steps=4 --quiet --out="$name" "$@" >&2
    echo "$name"/*.safetensors
}

# repeats: equal runs with equal threads give equal weights.
repeats() {
    for threads in 1 2; do
        cmp "$(trained first --threads=$threads)" \
            "$(trained second --threads=$threads)" || return 1
    done
}

for kind; do
    wanted=$(packages "$kind")
    python=$folder/$kind/python build=$folder/$kind/build
    python3 -m venv "$python"
    # shellcheck disable=SC2086 # names
    "$python/bin/pip" install --quiet $wanted
    # The linker and trainers find oneDNN and the libraries below it here, and
    # SYCL its device.
    export LIBRARY_PATH="$python/lib" LD_LIBRARY_PATH="$python/lib"
    export OCL_ICD_FILENAMES="$python/lib/libintelocl.so"
    cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DDNNL_INCLUDE_DIR="$python/include" \
        -DDNNL_LIBRARY="$python/lib/libdnnl.so" >"$build.log"
    cmake --build "$build" --target sinter runtime plain test_runtime \
        >>"$build.log"
    ctest --test-dir "$build" --output-on-failure \
        -R "^($tests|losses_($models))\$"
    export SINTER="$build/bin/sinter" OMP_WAIT_POLICY=passive
    cd "$folder/$kind"
    repeats
    "$SINTER" doctor | grep oneDNN
done
