#!/bin/sh
# A trainer is tuned on the double of NVIDIA's libraries, and later runs do as
# was found: with kernels that ride on calls and without the losses are the
# same but for rounding.  A tuning that is broken or of no use is not followed.
set -u
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -d "$SINTER_DOUBLE" ] || exit 77
export XDG_CACHE_HOME="$work/cache"
export SINTER_DOUBLE_THREADS=1

cat >case.net <<'NET'
model Case(image: f32[N, 6, 6, 8]) -> f32[N, 3] {
  image
    |> conv(8, 3, bias=false) |> batch_norm |> relu
    |> conv(8, 3, bias=false) |> batch_norm |> relu
    |> global_avg_pool |> linear(3)
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
    expect 0 env SINTER_DOUBLE_LOG="$name.log" LD_LIBRARY_PATH="$SINTER_DOUBLE" \
        ./case --device=cuda:0 --log-every=1 --metrics="$name" --out=run \
        --quiet "$@"
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
train each --without=graph,joins
expect_equal first.loss each.loss
grep -q cuGraphLaunch first.log || fail "no graph is launched"
grep -q cuGraphLaunch each.log && fail "a graph is launched"
[ "$(grep -c cuLaunchKernel each.log)" -gt "$(grep -c cuLaunchKernel first.log)" ] ||
    fail "no more launches one by one than recorded"
train unaided --without=rides
alike first unaided
[ "$(calls unaided)" -lt "$(calls first)" ] ||
    fail "$(calls first) calls with what rides, $(calls unaided) without"
expect 2 ./case --device=host --without=graph
expect_says "the host has no graph"
expect 0 env LD_LIBRARY_PATH="$SINTER_DOUBLE" ./case --device=cuda:0 --tune
expect_says "kept in $XDG_CACHE_HOME/sinter/"
kept=$(ls "$XDG_CACHE_HOME"/sinter/*.tuning)
train tuned
alike first tuned

# Nothing rides, so that no forms of a batch_norm are made.
awk '{ at = index($0, "\"fusions\""); rest = substr($0, at)
       gsub(/1/, "0", rest); print substr($0, 1, at - 1) rest }' \
    "$kept" >none && mv none "$kept"
train apart
alike first apart
[ "$(calls apart)" -lt "$(calls first)" ] ||
    fail "$(calls first) calls with what rides, $(calls apart) without"

echo '{"tuning": 1, "plans": [[99, 0, 0, 0]], "fusions": []}' >"$kept"
train broken
cmp first.loss broken.loss || fail "a broken tuning was followed"
