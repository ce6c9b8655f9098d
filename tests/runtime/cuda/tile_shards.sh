#!/bin/sh
# Tile kernels with prologues where batch_norm is synchronized: shards of a
# process run in lockstep, each in a copy of the arena, whose places the tile
# kernels read.  The weights are those of two ranks, to the bit, and near those of
# the library.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/runtime/cuda/tile_train.sh"
. "$SINTER_SOURCE/tests/end_to_end/start_ranks.sh"

command -v "${CXX-c++}" >/dev/null || exit 77
small_cache h200 >h200.json
export SINTER_DOUBLE_DEVICE="$work/h200.json" SINTER_DOUBLE_THREADS=1 \
    SINTER_DOUBLE_DEVICES=2

cat >tile.net <<'NET'
fn conv_bn(x) = x |> conv(16, 3, bias=false) |> batch_norm |> relu

model Tile(image: f32[N, 6, 6, 16]) -> f32[N, 8] {
  image |> conv_bn |> conv_bn |> flatten |> linear(8)
}

train Tile {
  data      = synthetic()
  batch     = 16
  shards    = 2
  sync_batch_norm = true
  steps     = 4
  precision = mixed(f16)
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 env LD_LIBRARY_PATH="$SINTER_DOUBLE/tile/lib:$SINTER_DOUBLE" \
    "$SINTER" build tile.net --target=cuda:sm_90 --tile=all -o tile

SINTER_DOUBLE_SEED=1 train tiles 64
SINTER_DOUBLE_SEED=5 train again 64
train library 64 --without=tile-kernels
expect_equal tiles again
near tiles library 1024

# kernels NAME: different kernels that are launched, tile kernels apart.
kernels() {
    grep -o "cuLaunch[A-Za-z]*Kernel [km][0-9][0-9a-z_]*" "$1.log" | sort -u | wc -l
}
[ "$(kernels tiles)" -lt "$(kernels library)" ] ||
    fail "$(kernels library) kernels, $(kernels tiles) beside tile kernels"

expect 0 ./tile --data=synthetic:64 --device=cuda --steps=4 --out=one
ranks 2 two ./tile --data=synthetic:64 --device=cuda --steps=4
expect_statuses 0 0
expect_equal "$(newest one)" "$(newest two)"
exit 0
