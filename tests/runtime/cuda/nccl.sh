#!/bin/sh
# Ranks with a GPU each, on the doubles of the driver and of NCCL: the weights
# are those of one process, collectives are recorded with the backward pass, and
# what happens when a GPU, the library or a rank is missing.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/close.sh"
. "$SINTER_SOURCE/tests/end_to_end/start_ranks.sh"
export SINTER_DOUBLE_THREADS=1 SINTER_DOUBLE_DEVICES=4 TMPDIR="$work"

# 150 samples in updates of 64: the last one fills two shards of eight and a
# half of another.
idx_data data 150
sed 's/, drop_last//' "$here/tiny.net" >tiny.net
expect 0 "$SINTER" build tiny.net --set shards=8 --set batch=64 \
    --set epochs=2 -o tiny
expect 0 ./tiny --data data --device=cuda --out one

# agree COUNT OUT WORD...: as many ranks end with the weights of one process.
agree() {
    ranks "$@" --data data
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest one)" "$(newest "$2")"
}
for seed in 1 2; do
    export SINTER_DOUBLE_SEED=$seed
    agree 2 two.$seed env SINTER_DOUBLE_LOG="$work/log.$seed" \
        ./tiny --device=cuda
done
agree 4 four ./tiny

# The two ranks make each call of a full update when it first runs, and when it is
# captured, with and without timing events.  In the last update of both epochs
# some shards are empty, and nothing is captured.
[ "$(grep -c ncclAllGather log.1)" -eq 10 ] ||
    fail "$(grep -c ncclAllGather log.1) all-gathers are not in a graph"

# Two buckets: the sum of the first is recorded between the launches that store
# the two.
cat >buckets.net <<'NET'
model Buckets(image: u8[N, 4, 4, 1]) -> f32[N, 1000] {
  image |> normalize(mean=[128], std=[64]) |> flatten |> linear(1100) |> relu
    |> linear(1000)
}

train Buckets {
  data      = idx("none")
  batch     = 4
  shards    = 2
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build buckets.net -o buckets
expect 0 ./buckets --data=synthetic:64 --device=cuda --steps=4 --out=buckets1
for seed in 1 2; do
    export SINTER_DOUBLE_SEED=$seed
    ranks 2 buckets2.$seed env SINTER_DOUBLE_LOG="$work/log.buckets.$seed" \
        ./buckets --data=synthetic:64 --device=cuda --steps=4
    expect_statuses 0 0
    expect_equal "$(newest buckets1)" "$(newest buckets2.$seed)"
done
awk '{ process = $1; sub(".*:", "", process) }
     first == "" { first = process }
     process != first { next }
     /BeginCapture/ { list = "" }
     /ncclAllGather/ { list = list " sum" }
     /Kernel k[0-9]*_bucket/ { list = list " bucket" }
     /EndCapture/ && list ~ /sum/ { print list }' log.buckets.1 >captured
printf ' bucket sum bucket sum\n bucket sum bucket sum\n' >want
expect_equal want captured

# In the library's own order, the weights are close.
ranks 4 fast ./tiny --data data --device=cuda --reduce=fast
expect_statuses 0 0 0 0
expect_close "$(newest one)" "$(newest fast)"
cmp -s "$(newest one)" "$(newest fast)" && fail "--reduce=fast is in the order"

# In 16 bits.
expect 0 "$SINTER" build tiny.net --set shards=4 --set batch=64 \
    --set steps=4 --set 'precision=mixed(f16)' -o half
expect 0 ./half --data=data --device=cuda --out=half.one
ranks 2 half.two ./half --data=data --device=cuda
expect_statuses 0 0
expect_equal "$(newest half.one)" "$(newest half.two)"

# Outputs of a prediction.
expect 0 ./tiny --predict data --weights=one --device=cuda -o one.npy
ranks 3 three.npy ./tiny --predict data --weights=one --device=cuda
expect_statuses 0 0 0
expect_equal one.npy three.npy

# Parts of the optimizer's states: a rank has memory for its own, and addresses
# for all.  Copies of weights in 16 bits follow the parameters of others.
expect 0 "$SINTER" build tiny.net --set shards=8 --set batch=64 \
    --set epochs=2 --set width=24 --set optimizer_shards=3 \
    --set 'precision=mixed(f16)' -o parts
expect 0 ./parts --data data --device=cuda --out parts.one
export SINTER_DOUBLE_UNIT=4096
ranks 4 parts.four ./parts --data data --device=cuda --steps=2
expect_statuses 0 0 0 0
ranks 2 parts.four env SINTER_DOUBLE_LOG="$work/mapped" \
    ./parts --data data --device=cuda --resume --verify-every=2
expect_statuses 0 0
unset SINTER_DOUBLE_UNIT
expect_equal "$(newest parts.one)" "$(newest parts.four)"
awk '/ cuMemAddressReserve / { sub(/.* bytes=/, ""); all += $1 }
     / cuMemCreate / { sub(/.* bytes=/, ""); some += $1 }
     END { exit !(some > 0 && some < all) }' mapped ||
    fail 'all of the arena has memory'

# Sums of a synchronized batch_norm are queued between the graphs of a step,
# whose memory for each shard is behind that of states.
expect 0 "$SINTER" build tiny.net --set shards=4 --set batch=64 \
    --set epochs=2 --set sync_batch_norm=true --set optimizer_shards=3 -o sync
expect 0 ./sync --data=data --device=cuda --out=sync.one
ranks 2 sync.two ./sync --data=data --device=cuda
expect_statuses 0 0
expect_equal "$(newest sync.one)" "$(newest sync.two)"

# Steps that are traced on rank 0 are not in a graph on any rank.
agree 2 traced ./tiny --device=cuda --profile=trace.json
grep -q '"name": *"sum of shards"' trace.json || fail 'no steps in the trace'

# A rank without data ends all after the same step, which is saved.
expect 0 env CC="$LINKER" ON='--device=cuda --resident=no' \
    "$here/rank_data.sh"

# Rank 0 measures for all; another rank without its file says so.
small_cache h200 >small.json
export SINTER_DOUBLE_DEVICE="$work/small.json"
ranks 2 tuned ./tiny --data data --device=cuda --tune
expect_statuses 0 0
grep -q 'tuned .* ms; written to ' said.0 || fail "rank 0 says: $(cat said.0)"
expect_equal /dev/null said.1
expect 0 ./tiny --data data --device=cuda --out tuned1
ranks 2 tuned2 ./tiny --data data --device=cuda
expect_statuses 0 0
expect_equal "$(newest tuned1)" "$(newest tuned2)"
cat said.* >got
grep tuning got && fail 'the ranks have one tuning'
# shellcheck disable=SC2016
ranks 2 apart sh -c '[ $RANK -eq 0 ] || export XDG_CACHE_HOME=$PWD/other
    exec ./tiny --data data --device=cuda --steps=1 "$@"' sh
expect_statuses 0 0
says 'warning: rank 1: this tuning is not that of rank 0'
unset SINTER_DOUBLE_DEVICE

# A GPU for all, and none.
ranks 2 same ./tiny --data data --device=cuda:1
expect_statuses 4 4
says 'Duplicate GPU.*; each rank needs a GPU of its own, or --coll.*=shared'
LOCAL_RANK=1 ranks 2 same ./tiny --data data --device=cuda
expect_statuses 4 4
says 'both on CUDA device 1'
agree 2 shared ./tiny --device=cuda:1 --collectives=shared
ranks 2 host ./tiny --data data --device=host --collectives=nccl
expect_statuses 2 2
says 'is for ranks with a GPU each, and rank 0 trains on the host'
SINTER_DOUBLE_DEVICES=2 ranks 4 few ./tiny --data data --device=cuda
expect_statuses 4 4 4 4
says 'no GPU 3: the driver finds 2'

# Without the library.
mkdir broken
: >broken/libnccl.so.2
agree 2 without env LD_LIBRARY_PATH="$work/broken:$LD_LIBRARY_PATH" \
    ./tiny --device=cuda
says 'warning: several GPUs need libnccl.so.2.*the host.s memory now'
ranks 2 none env LD_LIBRARY_PATH="$work/broken:$LD_LIBRARY_PATH" \
    ./tiny --data data --device=cuda --collectives=nccl
expect_statuses 4 4
says 'error: several GPUs need libnccl.so.2'
ranks 2 fails env SINTER_DOUBLE_FAIL=ncclCommInitRankConfig:1:2 \
    ./tiny --data data --device=cuda
expect_statuses 4 4
says 'rank 1 cannot connect .*unhandled system error.*NCCL_DEBUG=WARN'

# A rank that is killed ends the others, which wait for it on the GPU, and the
# run goes on from its last checkpoint.
expect 0 "$SINTER" build tiny.net --set shards=4 --set epochs=100000 \
    --set batch=64 -o long
background=1

# until_after CHECKPOINT: waits for a newer one.
until_after() {
    tries=0
    while [ "$(newest killed 2>/dev/null)" = "$1" ] && [ $tries -lt 3000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    [ "$(newest killed)" != "$1" ] || fail "no checkpoint after '$1'"
}
ranks 4 killed ./long --data data --device=cuda
until_after ''
kill -KILL "${list##* }"
join
expect_statuses 4 4 4 137
says 'rank 3 ended after step [0-9]*, so rank 0 ends after step'
last=$(newest killed)
ranks 2 killed ./long --data data --device=cuda --resume
until_after "$last"
kill -TERM "${list##* }"
join
expect_statuses 143 143
says 'stopped at step'
exit 0
