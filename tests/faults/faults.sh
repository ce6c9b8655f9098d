#!/bin/sh
# Each fault of tests/faults, planted in a copy of the sources, is found by the
# judge that its patch names.  FAULTS="NAME ..." plants those, FAULTS=all all of
# them; as each is a build, without it patches are only shown to fit.
#
#   judge: compare [SETTING...]   sinter compare of small.net ends with 7
#   judge: verifier               planning it ends with a report of ours
#   judge: FOLDER SUITE           a suite of tests/FOLDER fails
#
# The copy is built anew, unless FAULTS_TREE names one that has been, in build.
set -u
source=${SINTER_SOURCE:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v patch >/dev/null || exit 77
cd "$source" || exit 1
if [ -z "${FAULTS:-}" ]; then
    for patch in tests/faults/*.patch; do
        patch -s -F0 -p1 --dry-run <"$patch" || exit 1
    done
    exit 0
fi
tree=${FAULTS_TREE:-$work/tree}
if [ ! -d "$tree" ]; then
    mkdir "$tree"
    tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$tree"
fi
cd "$tree" || exit 1
net=$source/tests/faults/small.net
export CFLAGS="${CFLAGS:-} -O0" CCACHE_BASEDIR="$tree" CCACHE_NOHASHDIR=1
launcher=
command -v ccache >/dev/null && launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache

build() {
    cmake --build build --target "$@" >"$work/log" 2>&1
}

compares() {
    build sinter runtime || return 1
    for setting; do
        set -- "$@" --set "$setting"
        shift
    done
    build/bin/sinter compare "$net" --steps=1 "$@" >"$work/log" 2>&1
    [ $? -eq 7 ]
}

verifies() {
    build sinter || return 1
    build/bin/sinter check "$net" >"$work/log" 2>&1
    [ $? -ge 128 ] && grep -q '^sinter: ' "$work/log"
}

# The suite must pass without the fault, which other tests see to.
tests() {
    build sinter runtime "test_$1" || return 1
    if [ "$1" = cuda ]; then
        build double double_nvrtc double_cublaslt double_cudnn || return 1
    fi
    SINTER=$PWD/build/bin/sinter SINTER_LIB=$PWD/build/lib/sinter \
        SINTER_INCLUDE=$PWD/build/include/sinter SINTER_VIEW=$PWD/build/view \
        LD_LIBRARY_PATH=$PWD/build/double SINTER_SOURCE=$PWD CK_RUN_SUITE=$2 \
        "build/bin/test_$1" >"$work/log" 2>&1 && return 1
    grep -q 'Failures: [1-9]\|Errors: [1-9]' "$work/log"
}

judge() {
    case $1 in
    compare) shift && compares "$@" ;;
    verifier) verifies ;;
    *) tests "$@" ;;
    esac
}

[ -d build ] || cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Debug $launcher >"$work/build.log" 2>&1 ||
    { cat "$work/build.log"; exit 1; }
case $FAULTS in
all) names=$(find tests/faults -name '*.patch' -exec basename {} .patch \; | sort) ;;
*) names=$FAULTS ;;
esac
missed=0
for name in $names; do
    patch=$source/tests/faults/$name.patch
    patch -s -F0 -p1 <"$patch" || exit 1
    # shellcheck disable=SC2046 # words
    if judge $(sed -n 's/^judge: //p' "$patch"); then
        echo "$name: found by $(sed -n 's/^judge: //p' "$patch")"
    else
        echo "$name: nobody finds it"
        tail -n 20 "$work/log"
        missed=1
    fi
    patch -s -F0 -R -p1 <"$patch" || exit 1
done
exit $missed
