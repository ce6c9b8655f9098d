#!/bin/sh
# Builds and tests sinter on a minimal Debian, and installs its package on
# another one, which has nothing but the package's dependencies.
#
#   debian.sh FOLDER [RELEASE...]    by default, bookworm and trixie
#
# FOLDER gets both systems of each release, of 0.5 GB.  Needs root and the package
# mmdebstrap.
set -eu
source=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- bookworm trixie

# within ROOT COMMAND: runs it there as root, with the sources in /source.  All
# mounts end with the command.
# shellcheck disable=SC2016 # the inner shell expands its arguments
within() {
    mkdir -p "$1/source"
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        DEBIAN_FRONTEND=noninteractive unshare --mount sh -euc '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        mount --bind -o ro "$2" "$1/source"
        exec chroot "$1" sh -euc "$3"' sh "$1" "$source" "$2"
}

# The mirror from which this machine takes its own packages.
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/$' |
    head -n 1)

# system RELEASE ROOT [PACKAGE...]: a minimal system.
system() {
    release=$1 root=$2
    shift 2
    [ -d "$root" ] || mmdebstrap --variant=apt --components=main \
        "$release" "$root" "$mirror"
    within "$root" "apt-get update -q
        apt-get install -y -q --no-install-recommends $*"
}

# Words of the call of .ci/packages in quickstart, and those of the tests below.
packages=$(sed -n '/\.ci\/packages/,/[^\\]$/p' "$source/quickstart" |
    sed 's/.*\.ci\/packages"//' | tr -d '\\\n')
tests='base|ir|frontend|passes|replay|runtime|golden|command|limit'
tests="$tests|package|end_to_end_(emit|train|resume)|losses_(mlp|lenet|resnet9)"

# build RELEASE: builds, tests and packs it in the system built.
build() {
    # shellcheck disable=SC2086 # words
    system "$1" built $packages check dpkg-dev file pkg-config python3 \
        python3-numpy tcc
    within built "
        cmake -S /source -B /build -G Ninja -DCMAKE_BUILD_TYPE=Release
        cmake --build /build --target sinter runtime plain manual golden \
            test_base test_ir test_frontend test_passes test_replay test_runtime
        ctest --test-dir /build --output-on-failure -R '^($tests)\$'
        cd /build && cpack -G DEB -B /package"
}

# install RELEASE: installs the package in the system clean, and trains there.
install() {
    system "$1" clean
    cp built/package/sinter_*.deb clean/tmp/sinter.deb
    within clean '
        apt-get install -y -q --no-install-recommends /tmp/sinter.deb
        cd /tmp
        rm -rf runs model
        sinter new model
        sinter train model/model.net --set classes=3 --data=synthetic:64 --steps=2
        ls runs/*/001/step-00000002.safetensors
        sinter doctor | grep -E "^(C compiler|oneDNN)"'
}

for release; do
    mkdir -p "$folder/$release"
    cd "$folder/$release"
    build "$release"
    install "$release"
done
