#!/bin/sh
# A trainer with two configurations of each tile kernel measures them and the
# library on the stand-in, whose clock has a time for each.  Later runs follow the
# result: they launch the tile kernels that it chose, and open no library that no
# call needs.
set -u
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/runtime/cuda/tile_train.sh"

command -v "${CXX-c++}" >/dev/null || exit 77
small_cache h200 >h200.json
export SINTER_DOUBLE_DEVICE="$work/h200.json" SINTER_DOUBLE_THREADS=1

cat >tile.net <<'NET'
model Tile(image: f32[N, 6, 6, 16]) -> f32[N, 8] {
  image |> conv(16, 3, bias=false) |> batch_norm |> relu |> flatten |> linear(8)
}

train Tile {
  data      = synthetic()
  batch     = 16
  steps     = 4
  precision = mixed(f16)
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET

# build NAME OPTION...
build() {
    name=$1
    shift
    expect 0 env LD_LIBRARY_PATH="$SINTER_DOUBLE/tile/lib:$SINTER_DOUBLE" \
        "$SINTER" build tile.net --target=cuda:sm_90 --tile=all -o "$name" "$@"
}
build tile
mv tile one
build tile --tile-configs=2
[ "$(wc -c <tile)" -gt "$(wc -c <one)" ] ||
    fail "two configurations are no larger than one"

expect 0 "$SINTER" tune ./tile -o found
mv out table
tiles() {
    grep -c "cuLaunchKernel t[0-9]*_" "$1.log"
}
grep -q "^t[0-9]*_conv  *conv_1, tile.net:2  *[0-9]*x[0-9]*x[0-9]*, 4 warps .* chosen" table ||
    fail "no tile kernel is chosen: $(grep '^t[0-9]' table)"
[ "$(grep -c " library  " table)" -eq "$(grep -c "^t[0-9]*_" table)" ] ||
    fail "a tile kernel was not measured against the library"
[ "$(grep -c "[0-9]x[0-9]*x[0-9]*, [48] warps " table)" -gt "$(grep -c "^t[0-9]*_" table)" ] ||
    fail "one configuration of each was measured"
grep -q '"tiles": \[.*2' found || fail "no second configuration is chosen"

train default 64
train tuned 64 --tuning=found
train again 64 --tuning=found
expect_equal tuned again
near tuned default 1024
[ "$(tiles tuned)" -gt 0 ] || fail "no tile kernel was launched"
expect 0 "$SINTER" tune ./tile
train cached 64
expect_equal tuned cached

# Without a tile kernel the calls are the library's.
sed '/"tiles"/s/[0-9]/0/g' found >none
train library 64 --tuning=none
near library default 1024
[ "$(tiles library)" -eq 0 ] || fail "a tile kernel was launched"
grep -q cudnnBackendExecute library.log || fail "no library call"
# All of them need no library.
sed '/"tiles"/s/[0-9]/1/g' found >all
train alone 64 --tuning=all
grep -q "cudnn\|cublas" alone.log && fail "a library is used"

# refused STATUS FILE TEXT
refused() {
    expect "$1" ./tile --device=cuda:0 --data=synthetic:64 --tuning="$2" --out=run
    expect_says "^error: $3"
}
sed '/"tiles"/s/[0-9]/9/' found >wrong
refused 3 wrong "wrong is damaged"
mv one tile
refused 3 found "found was measured for another model, batch, version"
exit 0
