#!/bin/sh
# sinter tune and a trainer's --tune measure on the stand-in for NVIDIA's libraries,
# whose clock has a time for each engine.  Later runs follow the result.  With
# library fusions and without, with merged launches and without, the losses are
# equal but for rounding.  A damaged file or one for another plan is not followed.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export SINTER_DOUBLE_THREADS=1

small_cache h200 >small.json
small_cache h100 >other.json
export SINTER_DOUBLE_DEVICE="$work/small.json"

cat >case.net <<'NET'
fn conv_bn(x, channels) = x |> conv(channels, 3, bias=false) |> batch_norm |> relu
fn mix(x) = (x @ transpose(x, [0, 2, 1]) |> softmax) @ x

model Case(image: f32[N, 4, 4, 8]) -> f32[N, 3] {
  image
    |> conv_bn(8) |> conv_bn(8) |> conv_bn(8)
    |> reshape([N, 16, 8]) |> linear(8) |> mix
    |> flatten |> linear(3)
}

train Case {
  data      = synthetic(samples=64)
  batch     = 8
  steps     = 3
  precision = mixed(f16)
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET

# train NAME [OPTION...]: the losses of three steps in NAME.loss, calls of the
# driver and the libraries in NAME.log.
train() {
    name=$1
    shift
    expect 0 env SINTER_DOUBLE_LOG="$name.log" ./case --device=cuda:0 \
        --log-every=1 --metrics="$name" --out=run --quiet "$@"
    set -- "$name"
    sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' "$1" >"$1.loss"
    [ "$(wc -l <"$1.loss")" -eq 3 ] || fail "$1: no losses"
    rm -rf run
}

# alike NAME NAME: their losses differ by no more than a few roundings to f16.
alike() {
    paste "$1.loss" "$2.loss" | awk '
        function size(x) { return x < 0 ? -x : x }
        !(size($1 - $2) <= 4e-3 * size($1)) { bad = 1 }
        END { exit bad || NR == 0 }' ||
        fail "$1 and $2: $(paste "$1.loss" "$2.loss")"
}

# calls NAME: how many the library ran.
calls() {
    grep -c cudnnBackendExecute "$1.log"
}

expect 0 "$SINTER" build case.net -o case
expect 2 ./case --device=host --tune
expect_says "the host device has nothing to tune"

train first
train each --without=graph,merged-launches
expect_equal first.loss each.loss
grep -q cuGraphLaunch first.log || fail "no graph is launched"
grep -q cuGraphLaunch each.log && fail "a graph is launched"
[ "$(grep -c cuLaunchKernel each.log)" -gt "$(grep -c cuLaunchKernel first.log)" ] ||
    fail "no more launches one by one than recorded"
# A step whose capture fails is launched one by one, whichever call fails; if only
# its timing events fail, it has none.
graphs() {
    grep -c cuGraphLaunch "$1.log"
}
refused() {
    rm -f refused.log
    export SINTER_DOUBLE_FAIL="$1"
    train refused
    unset SINTER_DOUBLE_FAIL
    expect_equal first.loss refused.loss
    expect_says "^warning: cuda:0: step train $2: cannot "
}
before=$(sed '/cuStreamBeginCapture/q' first.log | grep -c cudnnBackendExecute)
for fault in cuStreamBeginCapture_v2:1:900 cuStreamEndCapture:1:901 \
    cuGraphInstantiateWithFlags:1:2 cuGraphUpload:1:801; do
    refused $fault "runs without a CUDA graph, which is slower"
    [ "$(graphs refused)" -lt "$(graphs first)" ] || fail "$fault: a graph"
done
refused cuEventRecordWithFlags:1:801 "has no per-phase timing"
[ "$(graphs refused)" -eq "$(graphs first)" ] || fail "marks: no graph"
rm -f refused.log
expect 0 env SINTER_DOUBLE_FAIL=cudnnBackendExecute:$((before + 1)):5001 ./case \
    --device=cuda:0 --data=synthetic:64 --out=run
expect_says "step train runs without a CUDA graph.*: cuDNN cannot run a plan"
rm -rf run
# A call that a library fails to run moves to its next plan, until none is left.
unable() {
    rm -f other.log
    why=$2
    export SINTER_DOUBLE_FAIL="$1"
    shift 2
    train other "$@"
    unset SINTER_DOUBLE_FAIL
    alike first other
    expect_says "^warning: cuda:0: .*$why.*; trying other plans$"
}
unable cudnnBackendExecute:1:5001 "cuDNN cannot run a plan"
[ "$(calls other)" -eq $(($(calls first) + 1)) ] ||
    fail "$(calls first) calls, $(calls other) with one that failed"
unable cudnnBackendExecute:1:3000,cudnnBackendExecute:2:3000 "cuDNN cannot" \
    --without=library-fusions
[ "$(grep -c 'trying other plans' err)" -eq 1 ] || fail "warned of more than once"
unable cublasLtMatmul:1:15 "cuBLASLt cannot run it (status 15)"
# Evaluation has a product like it, behind the two graphs of training.
awk '/cuStreamEndCapture/ { graphs++ }
     / cublasLtMatmul / && graphs == 2 { other = / bytes=0 /; exit }
     END { exit !other }' other.log ||
    fail "what will not run is asked for again"
expect 4 env SINTER_DOUBLE_FAIL="$(seq -s , -f 'cudnnBackendExecute:%g:3000' 1 60)" \
    ./case --device=cuda:0 --data=synthetic:64 --out=run
expect_says "^error: cuda:0: .*cuDNN cannot run a plan"
rm -rf run
train unaided --without=library-fusions
alike first unaided
[ "$(calls unaided)" -lt "$(calls first)" ] ||
    fail "$(calls first) calls with what rides, $(calls unaided) without"
expect 2 ./case --device=host --without=graph
expect_says "the host has no graph"

# Failing calls while candidates are measured, and the exit status.
expect 5 env SINTER_DOUBLE_FAIL=cuMemAlloc_v2:4:2 ./case --tune \
    --device=cuda:0 --data=synthetic:64 --out=run --tuning=none
expect_says "cannot allocate 0.1 MiB in one piece for tuning"
expect 4 env SINTER_DOUBLE_FAIL=cuEventElapsedTime:300:999 ./case \
    --tune --device=cuda:0 --data=synthetic:64 --out=run --tuning=none
expect_says "read the time of a launch"
[ -e none ] && fail "a tuning of a run that failed"

# The table: the fastest by the stand-in's clock is chosen.
expect 0 env SINTER_DOUBLE_LOG=tune.log "$SINTER" tune ./case -o found
expect_says "^conv 8x4x4x8 by 8x3x3  *conv_1, case.net:1  *engine 45, number 5 .*  chosen"
expect_says "^matmul .*, case.net:[0-9]*  *algorithm 1  *4.00  chosen"
expect_says "^ .* algorithm 0  *5.00$"
expect_says "^m[0-9_]*batch_norm.* one launch .* chosen"
expect_says "^statistics of conv  *conv_1, case.net:1  *fused .* chosen"
expect_says "written to found"
mv out table
[ -d "$XDG_CACHE_HOME/sinter" ] && ls "$XDG_CACHE_HOME"/sinter/*.tuning 2>err &&
    fail "a tuning is in the cache too"

# The time of a call excludes the bn_finalize after it.
awk '{ us = $NF == "chosen" ? $(NF - 1) : $NF }
     / \+ statistics  / { plain = us }
     / \+ statistics \+ prologue/ { with = us }
     END { exit !(plain > 0 && plain == with) }' table ||
    fail "forms count twice: $(grep ' + ' table)"

# Each call is timed with a cold cache.
awk '/cuMemsetD8Async .* bytes=131072 / { cold = 1; fills++ }
     /cuLaunchKernel|cuLaunchCooperative/ { cold = 0 }
     /cublasLtMatmul / && fills > 0 { calls++; warm += !cold; cold = 0 }
     END { exit !(calls > 0 && warm == 0) }' tune.log ||
    fail "calls are timed with a warm cache"

# A round takes equal plans from the one before: 76 graphs for 34 candidates, in
# place of 136 if each round planned all.
graphs=$(grep -c 'cudnnBackendCreateDescriptor kind=15' tune.log)
[ "$graphs" -le 90 ] || fail "$graphs graphs are planned"

# A trainer with the file does the same at once, each time to the bit; so does one
# that finds the file in the cache.
train tuned --tuning=found
alike first tuned
train again --tuning=found
expect_equal tuned.loss again.loss
grep -q 'cublasLtMatmul .* bytes=0 ' tuned.log ||
    fail "the algorithm without a workspace is not taken"
grep -q 'cublasLtMatmul .* bytes=0 ' first.log &&
    fail "another algorithm is taken with no tuning"
expect 0 "$SINTER" tune case.net --data=synthetic:64
expect_says "written to $XDG_CACHE_HOME/sinter/"
kept=$(ls "$XDG_CACHE_HOME"/sinter/*.tuning)
expect_equal found "$kept"
train cached
expect_equal tuned.loss cached.loss

# A file that others may have written is not followed.
chmod g+w "$kept"
train exposed
expect_says '.tuning is not used: others can write to it'
expect_equal first.loss exposed.loss
chmod g-w "$kept"

# No fusion is taken, so no bn_finalize runs; no launch is merged.
sed '/"fusions"/s/1/0/g' "$kept" >none && mv none "$kept"
train apart
alike first apart
[ "$(calls apart)" -lt "$(calls first)" ] ||
    fail "$(calls first) calls with what rides, $(calls apart) without"
sed '/"unmerged"/s/0/1/g' "$kept" >none && mv none "$kept"
train single
expect_equal apart.loss single.loss
joined() {
    grep -c cuLaunchCooperativeKernel "$1.log"
}
[ "$(joined single)" -lt "$(joined apart)" ] ||
    fail "$(joined apart) launches in phases, $(joined single) apart"

echo '{"tuning": 4, "plans": [[99, 0, 0, 0]], "fusions": []}' >"$kept"
train broken
cmp first.loss broken.loss || fail "a broken tuning was followed"

# refused STATUS FILE TEXT: as the tuning of a run, with a sentence.
refused() {
    expect "$1" ./case --device=cuda:0 --tuning="$2" --out=run
    expect_says "^error: $3"
}
refused 3 nowhere "cannot open nowhere"
refused 3 "$kept" "$kept is not a tuning"
refused 3 case.net "case.net is not a tuning"
sed 's/"products": \[\[\([0-9]*\), 1, /&1/' found >edited
refused 3 edited "edited has plans that the libraries do not offer"
sed 's/\[\[0, 0, 5, 45\]/[[0, 0, 5, 46]/' found >edited
refused 3 edited "edited has plans that the libraries do not offer"
head -c 600 found >edited
refused 3 edited "edited is damaged"
expect 3 ./case --device=cuda:0 --without=library-fusions --tuning=found --out=run
expect_says "found was measured for another model, batch, version"
SINTER_DOUBLE_DEVICE=$work/other.json
refused 4 found "found was measured on NVIDIA H200 (9.0, 132 .*, but this is NVIDIA H100 "
expect 2 ./case --device=host --tuning=found
expect_says "the host device has nothing to tune"
echo "model" >wrong.net
expect 1 "$SINTER" tune wrong.net
