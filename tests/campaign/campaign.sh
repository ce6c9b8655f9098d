#!/bin/sh
# Runs tests in their long form, of which run-tests has a short one, at low
# priority.  The last line says how many failed.
#
#   campaign.sh BUILD SECONDS [PART...]    parts, or all of them
#
# Each part gets an equal share of the time; the time that a part leaves is for
# those after it.  A part that does not end in its share is stopped and says so.
# BUILD is a build folder such as build/tests; the one with sanitizers and fuzz
# targets is beside it, build/sanitized.
#
#   nvrtc     all models for four GPU architectures, merged kernels of all
#   tile      tile kernels of all models for four GPU architectures; a model
#             takes minutes
#   cudnn     all models on three described GPUs
#   cost      the cost model against machine code of all models
#   bound     text and plans of each of the worst files
#   bench     bench/gpu.sh in its small form, on the stand-in
#   ptx       warp instructions of a step of every model, and its bits
#   dependent 10,000 orders in which kernels start early
#   races     every model under the race checker, which misses each barrier of
#             the prelude that is taken away
#   traffic   bytes that kernels access, of all cases
#   codegen   all cases, every fused one in f32 optimised
#   learning  models that are like others against PyTorch's losses, and masks
#             that a U-Net learns
#   ulp       the error of the host's functions for each float
#   cuda      every model on the stand-in, with library calls and with tile
#             kernels, and each call of a library fails once
#   compare   networks whose roundings were once taken for mistakes
#   export    all models, exported, against their trainers for 100 inputs
#   pairs     every optimizer, loss and augmentation in each trial of pairs
#   faults    each planted fault is found
#   rank_faults  one of four ranks is killed, stopped or cut off
#   random    random programs, from a seed that the day gives
#   tiled     random programs in 16 bits whose contractions are tile kernels
#   ranks     random models with shards, as one process and as ranks
#   machine   random programs on the stand-in with NVIDIA's compiler
#   fuzz      the three fuzz targets
#   sanitized passes, golden tests, the command line, names that would control
#             a terminal, limits, and cases that judge numbers and times, with
#             sanitizers
#   outside   editors, trackers, Jupyter, Perfetto and Hugging Face's GPT-2, if
#             installed; all but editors are packages of SINTER_PYTHON, or else
#             of python3
set -u
build=$(cd "$1" && pwd) end=$(($(date +%s) + $2))
shift 2
[ $# -gt 0 ] ||
    set -- nvrtc tile cudnn cost bound bench ptx dependent races traffic codegen \
        learning ulp cuda compare export pairs faults rank_faults random tiled ranks \
        machine fuzz sanitized outside
source=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
export SINTER="$build/bin/sinter" SINTER_SOURCE="$source"
export SINTER_LIB="$build/lib/sinter" SINTER_INCLUDE="$build/include/sinter"
export SINTER_PYTHON="${SINTER_PYTHON:-python3}"
export OMP_WAIT_POLICY=passive CK_TIMEOUT_MULTIPLIER=100
failed=0

# long SECONDS NAME VARIABLE=VALUE: a test in its long form.
long() {
    env "$3" timeout "$1" nice -n 10 ctest --test-dir "$build" -R "^$2\$" \
        --timeout "$1" --output-on-failure
}

# random SECONDS WORD...: 20 programs at a time, after these words.
random() {
    first=$(($(date +%Y%j) * 1000)) until=$(($(date +%s) + $1))
    shift
    while [ "$(date +%s)" -lt $until ]; do
        nice -n 10 "$@" $first 20 || return 1
        first=$((first + 20))
    done
}

# machine SECONDS: NVIDIA's libraries are where the build found them.
machine() {
    nvrtc=$(sed -n 's/^NVRTC_LIBRARY:[A-Z]*=//p' "$build/CMakeCache.txt")
    random "$1" env LD_LIBRARY_PATH="$build/double" XDG_CACHE_HOME=/dev/null \
        SINTER_DOUBLE_PTX=1 SINTER_DOUBLE_NVRTC="${nvrtc%/*}" \
        "$build/bin/random" --gpu
}

# tile SECONDS: models after one another, in the recipe's precision.
tile() {
    until=$(($(date +%s) + $1))
    for model in "$source"/models/*.net "$source/tests/tile/attention.net"; do
        left_here=$((until - $(date +%s)))
        [ $left_here -gt 0 ] || return 124
        echo "$model"
        timeout $left_here nice -n 10 "$source/tests/tile/tile.sh" "$model" \
            sm_80,sm_90,sm_100,sm_120
        case $? in
        0) ;;
        77) echo "tile: not installed" && return 0 ;;
        124) return 124 ;;
        *) return 1 ;;
        esac
    done
}

# fuzz SECONDS: each target for a third.
fuzz() {
    for name in language graph files; do
        nice -n 10 "$source/tests/fuzz/run.sh" $name \
            "$build/../sanitized/bin/fuzz_$name" $(($1 / 3)) . || return 1
    done
}

# sanitized SECONDS
sanitized() {
    cmake -DSINTER_FUZZ_ALL=ON "$build/../sanitized" >/dev/null &&
        timeout "$1" nice -n 10 cmake --build "$build/../sanitized" \
            --target manual golden test_frontend test_passes test_runtime &&
        timeout "$1" nice -n 10 ctest --test-dir "$build/../sanitized" \
            -R '^(frontend|passes|runtime|runtime_1|golden|command|terminal|limit)$' \
            --output-on-failure
}

# outside SECONDS: sinter in other programs; a script skips those not there.
outside() {
    for name in tree_sitter neovim trackers notebook perfetto gpt2; do
        timeout "$1" "$source/tests/campaign/$name.sh"
        case $? in
        0) echo "$name: good" ;;
        77) echo "$name: not installed" ;;
        *) return 1 ;;
        esac
    done
}

part() {
    case $2 in
    nvrtc) long "$1" nvrtc NVRTC_ALL=1 ;;
    cudnn) long "$1" cudnn CUDNN_ALL=1 ;;
    cost) long "$1" cost COST_ALL=1 ;;
    bound) long "$1" bound BOUND_ALL=1 ;;
    bench) long "$1" cuda_bench SINTER_SOURCE="$source" ;;
    ptx) long $(($1 / 2)) ptx_warps PTX_ALL=1 &&
        long $(($1 / 2)) ptx_bits BITS_ALL=1 ;;
    dependent) long "$1" ptx_dependent DEPENDENT_STEPS=10000 ;;
    races) long $(($1 / 2)) races RACES_MODEL=all &&
        long $(($1 / 2)) random_planted PLANTED_ALL=1 ;;
    traffic) long "$1" traffic TRAFFIC_ALL=1 ;;
    codegen) long "$1" codegen AGREE_ALL=1 ;;
    learning) long "$1" '(losses_.*|end_to_end_(busy|masks))' SINTER_SOURCE="$source" ;;
    ulp) long "$1" ulp ULP_ALL=1 ;;
    cuda) long $(($1 / 3)) cuda_models CUDA_ALL=1 &&
        CUDA_TILE=1 long $(($1 / 3)) cuda_models CUDA_ALL=1 &&
        long $(($1 / 3)) cuda_faults FAULTS_EVERY=1 ;;
    compare) long "$1" compare COMPARE_ALL=1 ;;
    export) long "$1" export EXPORT_ALL=1 ;;
    pairs) long "$1" end_to_end_pairs PAIRS_ALL=1 ;;
    faults) long "$1" faults FAULTS=all ;;
    rank_faults) long "$1" end_to_end_rank_faults RANK_FAULTS=$(($1 / 2)) ;;
    random) random "$1" env CC=tcc "$build/bin/random" ;;
    tiled) random "$1" env CC=tcc "$build/bin/random" --tiled ;;
    ranks) random "$1" python3 "$source/tests/campaign/ranks.py" ;;
    tile | machine | fuzz | sanitized | outside) "$2" "$1" ;;
    *) echo "no part $2" >&2 && return 2 ;;
    esac
}

left=$#
for name; do
    share=$(((end - $(date +%s)) / left))
    left=$((left - 1))
    echo "$name: at most $share s"
    part $share "$name"
    status=$?
    case $status in
    0) ;;
    124) echo "$name: stopped after $share s" ;;
    *) failed=$((failed + 1)) ;;
    esac
done
echo "$failed failed"
[ $failed -eq 0 ]
