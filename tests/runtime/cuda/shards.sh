#!/bin/sh
# Shards on a GPU: the weights of one process do not depend on how streams run,
# both parts of a step are captured, and ranks that add their shards in the
# host's memory get the same bits.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/start_ranks.sh"
export SINTER_DOUBLE_THREADS=1

# 150 samples in updates of 64: the last one fills two shards of eight and a
# half of another.
idx_data data 150
sed 's/, drop_last//' "$here/tiny.net" >tiny.net
expect 0 "$SINTER" build tiny.net --set shards=8 --set batch=64 \
    --set epochs=4 -o tiny
for seed in 0 1 2 3; do
    expect 0 env SINTER_DOUBLE_SEED=$seed SINTER_DOUBLE_LOG="$work/log.$seed" \
        ./tiny --data data --device=cuda:0 --out run.$seed
    expect_equal "$(newest run.0)" "$(newest run.$seed)"
done
for count in 2 4; do
    ranks $count of$count ./tiny --data data --device=cuda:0 \
        --collectives=shared
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest run.0)" "$(newest of$count)"
done

# after_capture LOG: the work that the driver gets after the last capture.
after_capture() {
    awk '{ line[NR] = $2 " " $3 }
         /cuStreamEndCapture/ { from = NR + 1 }
         /cuGraphLaunch/ { to = NR + 1 }
         END { for (i = from; i < to; i++) print line[i] }' "$1" >after
    grep 'Launch.*Kernel' after |
        grep -v 'Kernel \(gather_.\|sum_ranges\)$' &&
        fail "a kernel of a step is launched by itself"
    grep -q 'Kernel sum_ranges' after || fail "nothing adds shards"
}

# After the last capture, an epoch launches a graph for each of its 19 shards and
# three updates, beside gathers and sums.
after_capture log.1
[ "$(grep -c cuGraphLaunch after)" -ge 22 ] || fail "steps are not captured"

# Synchronized, each segment of a step is a graph for each shard.
expect 0 "$SINTER" build tiny.net --set shards=4 --set batch=64 \
    --set epochs=3 --set sync_batch_norm=true -o sync
for seed in 0 1; do
    expect 0 env SINTER_DOUBLE_SEED=$seed SINTER_DOUBLE_LOG="$work/sync.$seed" \
        ./sync --data data --device=cuda:0 --out sync.run.$seed
    expect_equal "$(newest sync.run.0)" "$(newest sync.run.$seed)"
done
ranks 2 sync.of2 ./sync --data data --device=cuda:0 --collectives=shared
expect_statuses 0 0
expect_equal "$(newest sync.run.0)" "$(newest sync.of2)"
after_capture sync.1
[ "$(grep -c cuGraphLaunch after)" -ge 60 ] || fail "segments are not captured"
exit 0
