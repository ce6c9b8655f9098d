#!/bin/sh
# Compiling takes time in proportion to the model: the instructions that check
# takes are counted, which a busy machine does not change.
set -u

[ -z "${SINTER_SANITIZED:-}" ] || exit 77
command -v valgrind >/dev/null || exit 77
work=$(mktemp -d "${TMPDIR:-/tmp}/linear-XXXXXX")
trap 'rm -rf "$work"' EXIT

# instructions FILE: millions of them in check.
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$SINTER" check "$1" 2>&1 >/dev/null |
        sed -n 's/,//g; s/.*refs: *\([0-9]*\)[0-9]\{6\}$/\1/p'
}

# resnet LAYERS: those of a ResNet for CIFAR-10.
resnet() {
    sh "$SINTER_SOURCE/bench/compile/resnet.sh" "$1" >"$work/resnet.net"
    instructions "$work/resnet.net"
}

# What each layer takes may grow by a quarter: arrays of a power of two, and orders
# of buffers that are tried up to a limit.
few=26 many=98
less=$(resnet $few) more=$(resnet $many)
echo "ResNet-$few: $less M instructions; ResNet-$many: $more M"
if ! [ $((100 * more * few)) -le $((125 * less * many)) ]; then
    echo "linear: a layer of $many takes more than one of $few" >&2
    exit 1
fi

# 212 M in a release build, 0.04 s; with 600 M it would be near 0.1 s.
large=$(instructions "$SINTER_SOURCE/models/resnet50.net")
echo "resnet50: $large M instructions"
if ! [ "$large" -le 600 ]; then
    echo "linear: check of resnet50 takes $large M instructions" >&2
    exit 1
fi
