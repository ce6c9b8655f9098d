#!/bin/sh
# Shards whose batch_norm has the statistics of all of them: the bits do not
# depend on the number of ranks, and the values are those of the whole batch and
# of PyTorch.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/start_ranks.sh"

sync='--set sync_batch_norm=true'
losses() {
    sed -n 's/.*"split":"step".*"loss":\([^,]*\),.*/\1/p' "$1/metrics.jsonl"
}

# 150 samples in updates of 64: the last one fills two shards of eight and a
# half of another, and has no samples for some ranks.
idx_data data 150
sed 's/, drop_last//' "$here/tiny.net" >tails.net
recipe="$sync --set shards=8 --set epochs=2 --set batch=64"
# shellcheck disable=SC2086
expect 0 "$SINTER" build tails.net $recipe -o tiny
expect 0 ./tiny --data data --out one --quiet
for count in 2 4 8; do
    ranks $count "of$count" ./tiny --data data
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest one)" "$(newest "of$count")"
done

# Batches of a shard are apart; an update of an epoch may have some of them.  A
# rank has memory for its part of the optimizer's states.
idx_data odd 145
recipe="$sync --set shards=4 --set accumulate=3 --set batch=8 --set epochs=1
    --set optimizer_shards=3"
# shellcheck disable=SC2086
expect 0 "$SINTER" build tails.net $recipe --set precision=f16 -o rounds
expect 0 ./rounds --data odd --out rounds1 --quiet
for count in 2 4; do
    ranks $count "rounds$count" ./rounds --data odd
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest rounds1)" "$(newest "rounds$count")"
done

# Gradients in two buckets, whose sums over ranks go on beside the sums of
# batch_norm; the last ranks have no samples in the third step.
cat >wide.net <<'NET'
model Wide(image: u8[N, 12, 12, 1], width=1100) -> f32[N, 10] {
  image |> normalize(mean=[128], std=[64]) |> flatten
    |> linear(width) as a |> batch_norm |> relu
    |> linear(width) as b |> batch_norm |> relu |> linear(10)
}
train Wide {
  data            = idx("data")
  batch           = 16
  shards          = 4
  sync_batch_norm = true
  steps           = 5
  loss            = mean(cross_entropy(output, label))
  optimizer       = sgd(lr=0.01)
}
NET
idx_data few 38
expect 0 "$SINTER" show plan --target=host wide.net
[ "$(grep -c '^# bucket of .* ready after' out)" -ge 2 ] || fail "$(cat out)"
expect 0 "$SINTER" build wide.net -o wide
expect 0 ./wide --data few --out wide1 --quiet
for count in 2 4; do
    ranks $count "wide$count" ./wide --data few
    case $statuses in *[1-9]*) expect_statuses 0 ;; esac
    expect_equal "$(newest wide1)" "$(newest "wide$count")"
done

# One shard has the whole batch.  f32 sums in another order differ by some units
# of 6e-8; ten steps with momentum multiply that by less than 100.
recipe='--set batch=64 --set steps=10'
# shellcheck disable=SC2086
expect 0 "$SINTER" build "$here/tiny.net" $recipe $sync --set shards=8 -o eight
# shellcheck disable=SC2086
expect 0 "$SINTER" build "$here/tiny.net" $recipe -o whole
expect 0 ./eight --data data --out eight1 --quiet --log-every=1
expect 0 ./whole --data data --out whole1 --quiet --log-every=1
losses eight1 >got
losses whole1 | paste got - | awk '
    { d = $1 / $2 - 1; if (d < 0) d = -d; if (d > most) most = d }
    END { print "shards and batch differ by " most
          exit !(NR == 10 && most < 6e-6) }' ||
    fail "the losses of synchronized shards are not those of the batch"

# The memory of a process is known before it starts.
# shellcheck disable=SC2086
expect 0 "$SINTER" check "$here/tiny.net" $recipe $sync --set shards=8
expect_says 'with one shard; 8 run in lockstep'
expect 0 ./eight --data data --out eight2
expect_says 'of it the arena of 8 shards in lockstep'

# Two processes of PyTorch (tests/pytorch/ddp.py), in double.
idx_data data 128
# shellcheck disable=SC2086
expect 0 "$SINTER" build "$here/ddp.net" $sync -o ddp
ranks 2 ddp_run ./ddp --data data --log-every=1
expect_statuses 0 0
losses ddp_run | paste - "$here/ddp_sync.losses" | awk '
    { d = $1 / $2 - 1; if (d < 0) d = -d; if (d > most) most = d }
    END { print "of 20 losses, the largest difference is " most
          exit !(NR == 20 && most < 1e-5) }' ||
    fail "the losses of synchronized ranks differ from PyTorch's"
