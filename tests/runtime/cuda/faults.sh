#!/bin/sh
# A trainer on the stand-in for a GPU whose libraries fail: each function at its
# first and its last call, and the compiler's at the last, with its first and
# last error; with FAULTS_EVERY=N at every N-th, with every error that it may
# return.  It ends with the promised status and a sentence, or goes on as if
# nothing had been.  It never hangs.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
export SINTER_DOUBLE_THREADS=1

# As base/exits.h has them.
DEVICE=4
MEMORY=5
FAULT=70

# errors FUNCTION: its possible results, without equivalent ones.
errors() {
    case $1 in
    cuMemAlloc_v2 | cuMemHostAlloc | cuGraphInstantiate*) echo 2 999 700 ;;
    cuDevicePrimaryCtxRetain) echo 2 46 999 ;;
    cuModuleLoadDataEx) echo 2 200 209 222 ;;
    cuInit) echo 100 803 999 ;;
    cuEventQuery | cuStreamQuery) echo 600 700 ;;
    cuStreamEndCapture) echo 901 2 ;;
    cuLaunch*) echo 701 719 ;;
    cuOccupancy*) echo 1 ;;
    cudnnBackendFinalize) echo 3000 4000 ;;
    cudnn*) echo 5001 ;;
    cublasLt*) echo 14 ;;
    nvrtcCompileProgram) echo 6 11 ;;
    nvrtc*) echo 1 ;;
    run) echo 700 719 ;;
    *) echo 999 700 ;;
    esac
}

runs=0

# train NAME=VALUE...: the trainer with these variables; out, err and status.
train() {
    runs=$((runs + 1))
    rm -rf run
    env "$@" timeout 60 ./much --out run --device=cuda:0 >out 2>err
    status=$?
}

wrong=0

# broken WHAT: says so, and goes on to the next.
broken() {
    echo "FAILED: $*" >&2
    wrong=$((wrong + 1))
}

# judge CASE: the last run ended as promised.
judge() {
    if grep -q '^double: ' err; then
        broken "$1: $(cat err)"
        return
    fi
    case $1/$status in
    */0)
        grep '^test accuracy' out >result
        [ -s result ] || broken "$1: no result"
        # Another way through a library rounds elsewhere.
        case $1 in
        cudnn* | cublas*) ;;
        *) cmp -s result right || broken "$1: $(cat result), $(cat right)" ;;
        esac
        ;;
    */"$DEVICE" | */"$MEMORY" | nvrtcCompileProgram:*:6/"$FAULT")
        grep -q '^error: ' err || broken "$1: status $status, and no sentence"
        ;;
    *) broken "$1: status $status: $(cat err)" ;;
    esac
}

# fail_once FUNCTION NUMBER ERROR
fail_once() {
    [ -n "$fresh" ] && rm -rf "$XDG_CACHE_HOME"
    train SINTER_DOUBLE_FAIL="$1:$2:$3"
    judge "$1:$2:$3"
}

# fail_each CALLS: calls of the functions in CALLS, lines with a count and a
# name.
fail_each() {
    calls=$1
    while read -r count function; do
        n=1
        # Without a cache all kernels compile in each run.
        [ -z "$fresh" ] || [ -n "${FAULTS_EVERY-}" ] || n=$count
        while [ "$n" -le "$count" ]; do
            # shellcheck disable=SC2046 # a list
            set -- $(errors "$function")
            [ -n "${FAULTS_EVERY-}" ] || [ "$n" -eq "$count" ] || set -- "$1"
            [ -n "${FAULTS_EVERY-}" ] || [ "$n" -eq 1 ] || [ -n "$fresh" ] ||
                shift $(($# - 1))
            for error; do
                fail_once "$function" "$n" "$error"
            done
            if [ -n "${FAULTS_EVERY-}" ]; then
                n=$((n + FAULTS_EVERY))
            elif [ "$n" -lt "$count" ]; then
                n=$count
            else
                break
            fi
        done
    done <"$calls"
}

# counts PATTERN FILE: how often functions that match were called.
counts() {
    awk -v want="$1" '$2 ~ want { n[$2]++ } END { for (f in n) print n[f], f }' \
        "$2" | sort -k 2
}

expect 0 "$SINTER" build "$SINTER_SOURCE/tests/runtime/cuda/much.net" -o much

# Without a cache, the compiler's functions.
train SINTER_DOUBLE_LOG="$work/cold"
[ "$status" = 0 ] || fail "without faults: $(cat err)"
grep '^test accuracy' out >right
[ -s right ] || fail "no result"
counts '^nvrtc' cold >calls
fresh=yes
fail_each calls

# With one, all others.
train
train SINTER_DOUBLE_LOG="$work/warm"
counts '^cu' warm >calls
echo "40 run" >>calls
fresh=
fail_each calls

# The arena is taken first, and images are kept only where there is more.  Too
# little memory is found out, by however little it is too little.
needed=$(sed -n 's/.* cuMemAlloc_v2 bytes=//p' warm | head -n 1)
for bytes in 1 100000 $((needed - 1)); do
    train SINTER_DOUBLE_MEMORY=$bytes
    judge "memory:$bytes"
    [ "$status" = "$MEMORY" ] || broken "$bytes bytes: status $status"
done
train SINTER_DOUBLE_MEMORY=$((needed + 4096))
judge memory:enough
[ "$status" = 0 ] || broken "$needed bytes are not enough: $(cat err)"
# The code that libraries load when a step first runs is not in the plan.
train SINTER_DOUBLE_MEMORY=$((needed + 65536)) SINTER_DOUBLE_CODE=16384
judge memory:code
[ "$status" = "$MEMORY" ] || broken "no memory for code: status $status"
grep -q 'MiB of memory are free, and the library' err ||
    broken "no memory for code: $(cat err)"
# A library that is not there is found out, too; NVIDIA's own cannot stand in
# for it.
for missing in libcuda.so.1 libnvrtc.so.13 libcudnn.so.9 libcublasLt.so.13; do
    rm -rf few
    cp -R "$SINTER_DOUBLE" few
    echo "no library" >"few/$missing.text"
    mv "few/$missing.text" "few/$missing"
    train LD_LIBRARY_PATH="$work/few"
    judge "no $missing"
    [ "$status" = "$DEVICE" ] || broken "no $missing: status $status"
    grep -q "${missing%%.*}" err || broken "no $missing: $(cat err)"
done
echo "$runs runs, $wrong of them wrong"
[ "$wrong" = 0 ]
