#!/bin/sh
# bench/gpu.sh in its small form, with the stand-in for NVIDIA's driver and
# libraries for a GPU and stand-ins for nvidia-smi and compute-sanitizer: every
# part runs and has its findings in both reports, each goal is judged by an
# existing row, and the other parts are reported after one that fails or hangs
# and after the end of the time.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"

command -v python3 >/dev/null || exit 77
unset TCC # a machine with a GPU has none
for PYTHON in /usr/bin/python3 python3; do
    $PYTHON -c 'import PIL, numpy' 2>/dev/null && break
done
export PYTHON
export SINTER_DOUBLE_THREADS=1 SINTER_DOUBLE_DEVICES=2 TMPDIR="$work"
small_cache h200 >small.json
export SINTER_DOUBLE_DEVICE="$work/small.json"
build=$(dirname "$(dirname "$SINTER")")

mkdir bin
cat >bin/nvidia-smi <<'END'
#!/bin/sh
case $* in
*=name*--id=*) echo "Stand-in GPU" ;;
*=name*) printf 'Stand-in GPU\nStand-in GPU\n' ;;
*=memory.used*) echo 1000 ;;
*) exit 1 ;;
esac
END
cat >bin/compute-sanitizer <<'END'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift 2; done
sleep "${STUCK:-0}"
"$@" || exit
echo "========= ERROR SUMMARY: 0 errors"
END
chmod +x bin/*
PATH=$work/bin:$PATH

# bench STATUS WORD...
bench() {
    status=$1
    shift
    expect "$status" "$SINTER_SOURCE/bench/gpu.sh" --small --build="$build" \
        --packages= --out=told --seconds=2400 "$@"
    python3 -c 'import json; json.load(open("told/results.json"))["doctor"]["found"]' ||
        fail "results.json does not tell what there is"
}

# finds PART NAME PATTERN: a row whose value is like this.
finds() {
    awk -F '\t' -v part="$1" -v name="$2" -v like="$3" '
        $1 == part && $2 == name && $3 ~ like { found = 1 }
        END { exit !found }' told/rows.tsv || {
        cat out err told/rows.tsv told/log >&2
        fail "$1 has no row '$2' like $3"
    }
}

number='^[0-9]+[.]?[0-9]*$'
bench 0 first tests models sanitizer steps accuracy start memory costs tune graph merging decode shards
finds machine name '^Stand-in GPU$'
finds machine cores "$number"
finds machine "libraries read" "$number"
finds data from '^drawn$'
finds first "lenet as it is" '^runs$'
finds first "lenet without merged-launches" '^runs$'
finds tests "cases that agree" '^[1-9]'
finds models "models that agree" '^1$'
finds sanitizer "lenet under memcheck" '^no errors$'
finds steps "lenet: sinter, tuned" "$number"
finds tune "lenet: tuned" "$number"
finds graph "lenet: graph / launches" "$number"
finds merging "lenet: separate" "$number"
finds decode "pixels, 444: largest difference" '^0$'
finds decode "nvjpeg / cpu" "$number"
finds shards "lenet: 2 shards / one batch" "$number"
for run in "a second run" "two ranks on a GPU" "2 GPUs"; do
    finds shards "lenet: weights of $run" '^same$'
done
finds start "lenet: cold start" "$number"
finds start "lenet: warm start" "$number"
for part in device context libraries plans compiling loading data memory images \
    states loaders "first step"; do
    finds start "lenet: cold start, $part" "$number"
    finds start "lenet: warm start, $part" "$number"
done
finds memory "mlp: planned" '^[1-9]'
finds memory "lenet: measured" '^0$'
finds accuracy "lenet, seed 0: test accuracy" "$number"
grep -q '^| lenet: warm start | [0-9.]* | s | [0-9.]* s before' told/results.md ||
    fail "results.md lacks a row"
grep -q '^Stand-in GPU, at commit .*, 20' told/results.md ||
    fail "results.md does not tell of what it is"

# A goal is of a row that parts make; compiling is not in the small form.
grep -v 'torch.compile' "$SINTER_SOURCE/bench/gpu/goals.tsv" >goals
[ "$(wc -l <goals)" -ge 8 ] || fail "there are no goals"
while IFS="$(printf '\t')" read -r part name _; do
    finds "$part" "lenet: ${name#*: }" "$number"
done <goals

# Tile kernels, which need NVRTC 13.5 and tileiras.
if command -v "${CXX-c++}" >/dev/null; then
    LD_LIBRARY_PATH="$SINTER_DOUBLE/tile/lib:$SINTER_DOUBLE" bench 0 tile
    finds tile "lenet: tile kernels / library calls" "$number"
    for name in "conv_1 conv 2x28x28x8 8x5x5x8" "linear_1 matmul 2x400 120x400" \
        "conv_2 conv_grad_input 2x10x10x16 16x5x5x8" \
        "conv_2 conv_grad_weight 2x10x10x16 2x14x14x8"; do
        finds tile "lenet: $name: tile kernel / library" "$number"
    done
fi

# judged VALUE: prints the verdict of both reports on a goal of at most 0.72 s,
# if its last row has this value.
judged() {
    printf 'accuracy\tairbench94: training\t%s\ts\t\n' 0.1 "$1" >rows
    for form in json md; do
        awk -f "$SINTER_SOURCE/bench/gpu/report.awk" -v form=$form \
            -v doctor=none "$SINTER_SOURCE/bench/gpu/goals.tsv" rows >judged.$form
    done
    sed -n 's/^| accuracy: airbench94: training .*| \([^|]*\) |$/\1/p' judged.md
    python3 -c 'import json
for goal in json.load(open("judged.json"))["goals"]:
    if goal["name"] == "airbench94: training":
        print(goal["value"], goal["met"])'
}
[ "$(judged 0.72 | paste -sd ' ')" = "met 0.72 True" ] || fail "0.72 s: $(judged 0.72)"
[ "$(judged 0.721 | paste -sd ' ')" = "**missed** 0.721 False" ] ||
    fail "0.721 s: $(judged 0.721)"
[ "$(judged '' | paste -sd ' ')" = "not measured None None" ] ||
    fail "no time: $(judged '')"
grep -q '^cuDNN .*libcudnn.so.9' told/results.md ||
    fail "results.md does not tell which libraries there are"

# Sources without history take the commit from the carried file, if it holds
# one.
mkdir sources carried
echo text >sources/file
echo 1234 >carried/commit
(cd sources && sha256sum file) >carried/sources
commit() {
    (
        ROOT=$work/sources GIT_CEILING_DIRECTORIES=$work
        export GIT_CEILING_DIRECTORIES
        . "$SINTER_SOURCE/bench/gpu/toolchain.sh"
        commit_of "$work/carried"
    ) 2>err
}
[ "$(commit)" = 1234 ] || fail "what was carried is $(commit): $(cat err)"
echo more >>sources/file
[ "$(commit)" = 1234-dirty ] || fail "what was changed since is $(commit)"
echo 1234-dirty >carried/commit
rm carried/sources
[ "$(commit)" = 1234-dirty ] || fail "what no commit has is $(commit)"

# A fault of CUDA graphs is harmless if steps are not recorded.
export SINTER_DOUBLE_FAIL=cuGraphLaunch:1:700
bench 1 first graph tests
finds first "lenet as it is" '^fails$'
finds first "lenet without timing-events" '^fails$'
finds first "lenet without graph" '^runs$'
finds graph status '^failed$'
finds tests status '^passed$'
expect_says "failed: first graph"
# The report prints warnings.
export SINTER_DOUBLE_FAIL=cuGraphUpload:1:801
bench 0 first
finds first "lenet as it is" '^runs$'
awk -F '\t' '$2 == "lenet as it is" { print $5 }' told/rows.tsv |
    grep -q '^warning: cuda:0: step train runs without a CUDA graph' ||
    fail "first does not say that steps are launched one by one"
# Programs are counted after any number of messages about failures.
export SINTER_DOUBLE_FAIL=cuDevicePrimaryCtxRetain:1:46
bench 1 random
finds random status '^failed$'
finds random "random programs" '^4$'
finds random "random programs that differ" '^[1-9]'
unset SINTER_DOUBLE_FAIL

# Without a GPU each part says so.
SINTER_DOUBLE_DEVICES=0 bench 0 tests start
finds tests status '^not run$'
finds start status '^not run$'
expect_says "start: not run: there is no GPU"

# A case that hangs is stopped before its part is.
printf '#!/bin/sh\nexec sleep 5\n' >bin/hangs
chmod +x bin/hangs
expect 1 env CC=hangs "$build/bin/gpu" --jobs=16 --limit=1 pool
grep -q '^took longer than 1 s$' out || fail "nothing took too long: $(cat out)"
grep -q '^0 passed, [1-9][0-9]* failed$' out || fail "$(cat out)"

# A part that hangs is stopped at its limit of time.
began=$(date +%s)
STUCK=600 bench 1 --seconds=10 sanitizer
finds sanitizer status '^stopped after '
[ $(($(date +%s) - began)) -lt 60 ] || fail "a part went on for too long"

# So is a piece of a part, which leaves time to the others: here it compiles until
# the first is stopped.
cat >bin/hangs_once <<'END'
#!/bin/sh
[ -n "${PART:-}" ] && mkdir "$HUNG" 2>/dev/null || exec cc "$@"
echo $$ >"$HUNG/id"
exec sleep 600
END
chmod +x bin/hangs_once
CC=hangs_once HUNG=$work/hung.random bench 1 --seconds=160 random
finds random status '^failed$'
finds random "random programs" '^3$'
finds random "pieces that were stopped" '^1$'
CC=hangs_once HUNG=$work/hung.model bench 1 --seconds=10 models
finds models status '^failed$'
finds models "models that were stopped" '^1$'
for id in hung.*/id; do
    ! kill -0 "$(cat "$id")" 2>/dev/null || fail "what hangs goes on: $id"
done

bench 1 --seconds=0 start
finds start status "^not run$"
expect_says "start: not run: too little time"
expect 2 "$SINTER_SOURCE/bench/gpu.sh" tets
expect_says "no part tets; there are tile first tests"
