#!/bin/sh
# gpu.sh: tests and figures that need a GPU, in one run of at most ten minutes
# on a machine with a driver, a CUDA toolkit or its Python packages, a C
# compiler and CMake.
#
#   bench/gpu.sh [OPTION...] [PART...]
#
#   --out=DIR          folder of results (bench/results/NAME-OF-GPU)
#   --packages=DIR     output of bench/carry.sh, for a machine without packages
#                      (build/carry)
#   --build=DIR        an existing build folder; default: builds build/gpu
#   --data=DIR         CIFAR-10's binary files
#   --unpack=PROGRAM   makes them, in the folder of its argument
#   --device=NAME      cuda:0
#   --seconds=N        total time (590)
#   --small            a short run of everything, as a check
#
# Parts, in this order by default:
#
#   tile       tile kernels beside library calls: losses, steps, launches, and
#              each contraction also beside PyTorch
#   first      whether a step runs, and without which features if not
#   tests      all operations and narrow models, against the graph in double
#   models     losses of all models, against the host device
#   random     2,000 random programs
#   sanitizer  two models under compute-sanitizer
#   steps      time of a step beside PyTorch
#   accuracy   CIFAR-10, resnet9 and airbench94 to the end
#   start      a trainer's first step, from a cold and a warm cache, by phase
#   memory     planned and measured
#   costs      cost of loading and of the time budget
#   tune       gain of tuning
#   graph      a step as one CUDA graph, and as single launches
#   fusion     fused and unfused kernels, and library calls without fusion
#   merging    merged and separate launches
#   decode     JPEG files by nvJPEG and by libjpeg: pixels, images a second
#   shards     a step in shards, and as several ranks
#
# The goals in bench/gpu/goals.tsv come first, then explanations.  Parts share
# the remaining time: a part that ends early leaves more to the next, and none
# stops the others.  After each part DIR/results.json and DIR/results.md have
# all results so far, the goals met and the output of sinter doctor, and DIR/log
# has the output of the parts. build/inductor keeps PyTorch's compiled code: if
# time was short, a second run of the part steps continues from there.  Exit
# status 1: a part has failed.
set -u

ROOT=$(CDPATH='' cd "$(dirname "$0")/.." && pwd)
all="tile first tests models random sanitizer steps accuracy start"
all="$all memory costs tune graph fusion merging decode shards"
out='' packages=$ROOT/build/carry data='' unpack='' seconds=590
DEVICE=cuda:0 SMALL='' BUILD=''
parts=''

complain() {
    echo "gpu.sh: $*" >&2
    exit 2
}

for word in "$@"; do
    case $word in
    --out=*) out=${word#*=} ;;
    --packages=*) packages=${word#*=} ;;
    --build=*) BUILD=${word#*=} ;;
    --data=*) data=${word#*=} ;;
    --unpack=*) unpack=${word#*=} ;;
    --device=*) DEVICE=${word#*=} ;;
    --seconds=*) seconds=${word#*=} ;;
    --small) SMALL=1 ;;
    --help)
        sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    -*) complain "no option $word; see --help" ;;
    *)
        case " $all " in
        *" $word "*) parts="$parts $word" ;;
        *) complain "no part $word; there are $all" ;;
        esac
        ;;
    esac
done
parts=${parts:-$all}
end=$(($(date +%s) + seconds))

# ---- paths ----

# absolute PATH
absolute() {
    case $1 in
    /*) echo "$1" ;;
    *) echo "$PWD/$1" ;;
    esac
}

. "$ROOT/bench/gpu/toolchain.sh"
packages=${packages:+$(absolute "$packages")}
places_find "$packages"
OUT=$(absolute "${out:-$ROOT/bench/results/$(gpu_slug)}")
mkdir -p "$OUT" || exit 2
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sinter-gpu-XXXXXX") || exit 2
reader=''
trap 'kill $reader 2>/dev/null; rm -rf "$WORK"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
ROWS=$OUT/rows.tsv LOG=$OUT/log
: >"$ROWS"
: >"$LOG"
XDG_CACHE_HOME=$WORK/cache
TMPDIR=$WORK
JOBS=$(nproc)
SINTER_MARCH=native # compiles three times as fast as portable
TORCHINDUCTOR_CACHE_DIR=${TORCHINDUCTOR_CACHE_DIR:-$ROOT/build/inductor}
export ROOT BUILD OUT WORK ROWS DEVICE SMALL JOBS XDG_CACHE_HOME TMPDIR \
    SINTER_MARCH \
    TORCHINDUCTOR_CACHE_DIR

. "$ROOT/bench/gpu/rows.sh"
failed=''

# publish: writes the report of all rows so far.
publish() {
    for form in json md; do
        awk -f "$ROOT/bench/gpu/report.awk" -v form=$form \
            -v doctor="$WORK/doctor.$form" "$ROOT/bench/gpu/goals.tsv" "$ROWS" \
            >"$WORK/results.$form" &&
            mv "$WORK/results.$form" "$OUT/results.$form"
    done
}

# left: remaining seconds.
left() {
    echo $((end - $(date +%s)))
}

# limited PART SECONDS COMMAND...: runs it with a time limit, and adds a row
# with its result.
limited() {
    PART=$1 LIMIT=$2
    shift 2
    [ "$LIMIT" -le "$(left)" ] || LIMIT=$(left)
    export PART LIMIT
    if [ "$LIMIT" -lt 3 ]; then
        row status "not run" "" "too little time was left"
        publish
        failed="$failed $PART"
        echo "$PART: not run: too little time was left"
        return 1
    fi
    began=$(date +%s)
    mkdir -p "$WORK/$PART"
    (cd "$WORK/$PART" && exec timeout -k 5 "$LIMIT" "$@") \
        >"$WORK/output" 2>&1 </dev/null
    status=$?
    took=$(($(date +%s) - began))
    case $status in
    0) result=passed ;;
    77) result="not run" ;;
    124 | 137) result="stopped after $LIMIT s" ;;
    *) result=failed ;;
    esac
    note=
    [ $status -eq 0 ] || note=$(tail -n 1 "$WORK/output" | tr '\t' ' ')
    { echo "==== $PART: $result, $took s" && cat "$WORK/output"; } >>"$LOG"
    row status "$result" "" "$note"
    row time "$took" s
    publish
    [ $status -eq 0 ] || [ $status -eq 77 ] || failed="$failed $PART"
    echo "$PART: $result, $took s${note:+: $note}"
    rm -rf "${WORK:?}/$PART"
    return $status
}

# share_of PART: its share of the time, relative to the others.
share_of() {
    case $1 in
    steps) echo 24 ;;
    first) echo 12 ;;
    accuracy) echo 8 ;;
    models | random | costs | tile) echo 6 ;;
    tests | sanitizer) echo 5 ;;
    *) echo 3 ;;
    esac
}

# limit_of PART PART...: seconds for the first, with the others to follow.
limit_of() {
    shares=0
    for part in "$@"; do
        shares=$((shares + $(share_of "$part")))
    done
    echo $(($(left) * $(share_of "$1") / shares))
}

# ---- run ----

PART=machine
describe_machine "$packages"
[ -z "$SMALL" ] || row small "" "" "little of everything: no figure tells anything"
# Reads the libraries during the build, so that the first parts find a warm
# disk.
libraries_read >/dev/null 2>&1 &
reader=$!
if [ -n "$BUILD" ]; then
    BUILD=$(absolute "$BUILD")
else
    BUILD=$ROOT/build/gpu
    limited build $((seconds * 2 / 5)) sh "$ROOT/bench/gpu/build.sh" || {
        tail -n 20 "$LOG" >&2
        exit 1
    }
fi
timeout 20 "$BUILD/bin/sinter" doctor --json >"$WORK/doctor.json"
timeout 20 "$BUILD/bin/sinter" doctor >"$WORK/doctor.md"
if [ -z "$data" ] && [ -n "$unpack" ]; then
    data=$ROOT/build/cifar10
    # shellcheck disable=SC2016 # the inner shell expands
    [ -d "$data" ] ||
        limited data 60 sh -c '"$0" "$1.part" && mv "$1.part" "$1"' \
            "$(absolute "$unpack")" "$data" || data=''
fi
DATA=${data:+$(absolute "$data")}
export DATA
PART=data
from=${DATA:+CIFAR-10}
row from "${from:-drawn}"
# shellcheck disable=SC2086 # words
set -- $parts
while [ $# -gt 0 ]; do
    if grep -q '"devices": 0,' "$WORK/doctor.json"; then
        PART=$1
        row status "not run" "" "there is no GPU"
        publish
        echo "$PART: not run: there is no GPU"
        shift
        continue
    fi
    limited "$1" "$(limit_of "$@")" sh "$ROOT/bench/gpu/$1.sh"
    shift
done
echo "results: $OUT/results.md"
[ -z "$failed" ] || {
    echo "failed:$failed" >&2
    exit 1
}
