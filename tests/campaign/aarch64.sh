#!/bin/sh
# Builds sinter for aarch64, and runs its tests and some trainers with qemu.
#
#   aarch64.sh FOLDER
#
# FOLDER gets Debian's arm64 libraries, unpacked but not installed, and the build.
# Needs the packages gcc-aarch64-linux-gnu, qemu-user and mmdebstrap.
set -eu
source=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
root=$folder/root build=$folder/build
release=bookworm libraries=libc6-dev,libgomp1,libgcc-12-dev,libdnnl-dev
libraries=$libraries,libjpeg62-turbo-dev,libpcre2-dev,libpng-dev,libxxhash-dev

[ -d "$root" ] || mmdebstrap --variant=extract --architectures=arm64 \
    --include="$libraries,check" "$release" "$root"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_TOOLCHAIN_FILE="$source/tests/campaign/aarch64.cmake" \
    -DSINTER_ROOT="$root"
programs='base ir frontend passes replay runtime'
# shellcheck disable=SC2046,SC2086 # a list
cmake --build "$build" \
    --target sinter plain golden $(printf 'test_%s ' $programs)

# script NAME COMMAND: a program of one word.  The kernel starts no program of
# another processor, so sinter, its compiler and qemu are scripts.
script() {
    printf '#!/bin/sh\nexec %s "$@"\n' "$2" >"$folder/$1"
    chmod +x "$folder/$1"
}
script qemu "qemu-aarch64 -L $root"
script sinter "$folder/qemu $build/bin/sinter"
script cc "aarch64-linux-gnu-gcc --sysroot=$root"
export SINTER="$folder/sinter" CC="$folder/cc" EMULATOR="$folder/qemu"
export SINTER_SOURCE="$source" SINTER_MARCH=portable
export OMP_WAIT_POLICY=passive CK_TIMEOUT_MULTIPLIER=50
# shellcheck disable=SC2046,SC2086 # a list
for name in golden $(printf 'test_%s ' $programs); do
    echo "testing: $name"
    "$EMULATOR" "$build/bin/$name"
done
for model in mlp lenet gpt_nano resnet9; do
    "$source/tests/end_to_end/losses.sh" $model
done
