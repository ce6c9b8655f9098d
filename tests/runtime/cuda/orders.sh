#!/bin/sh
# The calls of a trainer to a GPU and their order: results do not depend on how
# streams run, and once steps are captured nothing is created, loaded or waited
# for.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export SINTER_DOUBLE_THREADS=1

# train SEED: eight steps in each of three epochs, and a row each three steps;
# its rows without times.
train() {
    expect 0 env SINTER_DOUBLE_SEED="$1" SINTER_DOUBLE_LOG="$work/log.$1" \
        ./tiny --resident=no --data synthetic:512 --epochs 3 --out "run.$1" --device=cuda:0 \
        --log-every 3 --metrics "$1.jsonl"
    sed 's/,"samples_per_second".*/}/' "$1.jsonl" >"rows.$1"
}

expect 0 "$SINTER" build "$here/tiny.net" -o tiny
for seed in 0 1 2 3 4 5; do
    train $seed
    expect_equal "$(newest run.0)" "$(newest run.$seed)"
    expect_equal rows.0 rows.$seed
done

# A repeated step leaves the same bits, before its capture and after,
# from several batches and as one.
expect 0 "$SINTER" build "$here/tiny.net" --set accumulate=2 -o two
for trainer in tiny two; do
    expect 0 ./$trainer --data synthetic:512 --epochs 2 --out $trainer.once --device=cuda:0
    expect 0 ./$trainer --data synthetic:512 --epochs 2 --out $trainer.twice --device=cuda:0 \
        --verify-every=1
    expect_equal "$(newest $trainer.once)" "$(newest $trainer.twice)"
done

# Kernels are compiled by the first run only.
grep -q nvrtcCompileProgram log.0 || fail "nothing was compiled"
grep -q nvrtcCompileProgram log.1 && fail "kernels were compiled again"

# NVRTC is open before cuDNN, which would else open it for each of its plans.
awk '/nvrtcVersion/ { open = 1 } /cudnnCreate/ { exit !open }' log.0 ||
    fail "cuDNN was opened before NVRTC"

# The kernels compiled early are those launched, also with library fusions: no
# others are compiled, and nothing the second time.
expect 0 "$SINTER" build "$SINTER_SOURCE/tests/runtime/cuda/much.net" -o much
for run in first again; do
    expect 0 env SINTER_DOUBLE_LOG="$work/$run" ./much --resident=no \
        --out "run.$run" --device=cuda:0
done
loaded=$(grep -c cuModuleLoadDataEx again)
[ "$(grep -c nvrtcCompileProgram first)" -eq "$loaded" ] ||
    fail "not $loaded kernels were compiled"
grep -q nvrtcCompileProgram again && fail "what is not launched was compiled"

# The preload thread has cuDNN open its parts before it gets the GPU.
awk '$2 == "cudnnBackendFinalize" { by = by ? by : $1 }
     $2 == "cudnnCreate" { exit !(by && by != $1) }' again ||
    fail "cuDNN is not opened ahead"

# The first query (kind 4) of a graph requests one configuration (kind 3): cuDNN
# would examine each of several.
awk '/ kind=15$/ { fresh = 1 }
     / kind=4$/ { first = fresh; fresh = asked = 0 }
     / kind=3$/ && first { if (++asked > 1) many = 1; any = 1 }
     END { exit many || !any }' first ||
    fail "cuDNN is asked for many plans at once"

# The calls after the last capture, up to the last step.
awk '{ line[NR] = $2 }
     /cuStreamEndCapture/ { from = NR + 1 }
     /cuGraphInstantiate|cuGraphUpload|cuGraphDestroy/ && NR > from { from = NR + 1 }
     /cuGraphLaunch/ { to = NR + 1 }
     END { for (i = from; i < to; i++) print line[i] }' log.1 >after
grep -q cuGraphLaunch after || fail "no graphs are launched"
grep -E 'Alloc|Free|Create|Module|nvrtc|cudnn|cublas|Launch.*Kernel' after &&
    fail "something is made after the steps were recorded"

# The last epoch and two tests run without waiting for the GPU, but for slots
# of batches, of which each is waited for at most once.
[ "$(grep -c cuEventSynchronize after)" -le "$(grep -c cuGraphLaunch after)" ] ||
    fail "more is waited for than batches"
awk '/StreamSynchronize/ { steps = 0 }
     /cuGraphLaunch/ { if (++steps == 8) epochs++ }
     END { exit epochs < 3 }' after || fail "steps are waited for"
exit 0
