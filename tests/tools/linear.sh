#!/bin/sh
# Compiling takes time in proportion to the model: the instructions of planning it
# and of writing its text are counted, which a busy machine does not change.
set -u

[ -z "${SINTER_SANITIZED:-}" ] || exit 77
command -v valgrind >/dev/null || exit 77
work=$(mktemp -d "${TMPDIR:-/tmp}/linear-XXXXXX")
trap 'rm -rf "$work"' EXIT

# instructions WORD...: millions of them in sinter.
instructions() {
    valgrind --tool=cachegrind --cache-sim=no \
        --cachegrind-out-file=/dev/null "$SINTER" "$@" 2>&1 >/dev/null |
        sed -n 's/,//g; s/.*refs: *\([0-9]*\)[0-9]\{6\}$/\1/p'
}

# count LAYERS WORD...: those of a ResNet for CIFAR-10.
count() {
    model=$work/resnet$1.net
    sh "$SINTER_SOURCE/bench/compile/resnet.sh" "$1" >"$model"
    shift
    instructions "$@" "$model"
}

# linear PERCENT MANY WORD...: each layer takes at most so much of what it takes
# where there are few.
few=14
linear() {
    most=$1 many=$2
    shift 2
    less=$(count $few "$@") more=$(count "$many" "$@")
    echo "$1: ResNet-$few: $less M instructions; ResNet-$many: $more M"
    if ! [ $((100 * more * few)) -le $((most * less * many)) ]; then
        echo "linear: $1: a layer of $many takes more than one of $few" >&2
        exit 1
    fi
}

# Arrays of a power of two, and orders of buffers that are tried up to a limit,
# may add a quarter.  The text has parts that any model has, so that a layer of
# many takes 86 % of one of few.
linear 125 98 check --target=cuda
linear 95 38 build --emit=c --out="$work/text"

# 310 M in a release build, 0.03 s.
large=$(instructions check --target=cuda "$SINTER_SOURCE/models/resnet50.net")
echo "resnet50: $large M instructions"
if ! [ "$large" -le 600 ]; then
    echo "linear: check of resnet50 takes $large M instructions" >&2
    exit 1
fi
