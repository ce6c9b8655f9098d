#!/bin/sh
# NVTX ranges, by a stand-in: steps, phases and launches with lines of the model,
# nested; none without a profiler.  They change no result.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export SINTER_DOUBLE_THREADS=1

expect 0 "$SINTER" build "$here/tiny.net" -o tiny

# train NAME [VARIABLE=VALUE...] -- [OPTION...]: runs two steps; calls are in
# NAME.log, and ranges, indented by depth, in NAME.ranges.
train() {
    name=$1
    shift
    variables=
    while [ "$1" != -- ]; do
        variables="$variables $1"
        shift
    done
    shift
    rm -rf run
    # shellcheck disable=SC2086 # words
    expect 0 env $variables SINTER_DOUBLE_LOG="$name.log" ./tiny \
        --device=cuda:0 --data=synthetic:128 --steps=3 --out=run \
        --metrics="$name.rows" "$@"
    sed 's/,"samples_per_second".*/}/' "$name.rows" >"$name.loss"
    awk '/ nvtxRangePushA / { sub(/.* nvtxRangePushA /, "")
                              printf "%*s%s\n", 2 * depth++, "", $0 }
         / nvtxRangePop / { depth-- }
         END { exit depth != 0 }' "$name.log" >"$name.ranges" ||
        fail "$name: ranges do not end"
}

# has TEXT: a range that is so.
has() {
    grep -q -e "$1" asked.ranges || {
        cat asked.ranges >&2
        fail "no range like '$1'"
    }
}

train alone --
[ -s alone.ranges ] && fail "a range where nobody asks"
train asked NVTX_INJECTION64_PATH=/nowhere.so -- --without=graph
has '^step 1'
has '^  forward'
has '^    k[0-9]*_.*  tiny.net:[0-9,]*  '
has '^    conv  tiny.net:4  first.conv_1'
has '^  update'
has '^checkpoint'
expect_equal alone.loss asked.loss

# A graph is one launch; its launches have ranges when it is captured.
train graph -- --nvtx
grep -q '^step 3' graph.ranges || fail "no third step"
awk '/^[^ ]/ { third = /^step 3/ } third && /^  / { bad = 1 }
     END { exit bad }' graph.ranges || fail "what is in a step of one launch"
expect_equal alone.loss graph.loss

# A missing library is reported if a profiler named it.
mkdir some
for library in "$SINTER_DOUBLE"/*; do
    case $library in
    *nvtx*) ;;
    *) ln -s "$library" some ;;
    esac
done
echo "no library" >some/libnvtx3interop.so.1
expect 4 env LD_LIBRARY_PATH="$work/some" ./tiny --device=cuda:0 --nvtx
expect_says "ranges for a profiler need libnvtx3interop.so.1"
rm -rf run
expect 0 env LD_LIBRARY_PATH="$work/some" NVTX_INJECTION64_PATH=/nowhere.so \
    ./tiny --device=cuda:0 --data=synthetic:64 --steps=1 --out=run
exit 0
