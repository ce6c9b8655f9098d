#!/bin/sh
# Programmatic dependent launch, on the stand-in with what NVRTC makes of
# kernels.  Blocks of a kernel start while the kernel before it runs, in an order
# that the seed gives, and other blocks see a block's stores only where PTX says
# so.  Weights have the bits of a run whose kernels start one after another.
#
# DEPENDENT_STEPS=N trains for N steps, each another schedule (default 4).
set -u
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

[ -d "$SINTER_DOUBLE" ] || exit 77
mkdir -m 700 cache
export LD_LIBRARY_PATH="$SINTER_DOUBLE" XDG_CACHE_HOME="$work/cache" \
    SINTER_DOUBLE_PTX=1 SINTER_DOUBLE_NVRTC="$SINTER_NVRTC" \
    SINTER_DOUBLE_LOG="$work/log"
steps=${DEPENDENT_STEPS:-4}

cat >norm.net <<'NET'
model Norm(image: f32[N, 4, 4, 8], width=8) -> f32[N, 3] {
  image |> conv(width, 3, bias=false) |> batch_norm |> gelu |> batch_norm
    |> flatten |> linear(3)
}

train Norm {
  data      = synthetic()
  batch     = 2
  epochs    = 5000
  loss      = mean(cross_entropy(output, label))
  optimizer = adamw(lr=0.01)
}
NET

# trains FOLDER VARIABLE=VALUE... ./PROGRAM OPTION...: for so many steps.
trains() {
    folder=$1
    shift
    rm -f log
    expect 0 env "$@" --device=cuda:0 --data=synthetic:64 --steps="$steps" \
        --out="$folder"
    early=$(grep -c cuLaunchKernelEx log)
}

# equal FOLDER: its weights are those of the first run.
equal() {
    expect_equal "$(newest first)" "$(newest "$1")"
}

without=--without=library-fusions
# Reductions over several blocks; one block is quicker, where only the order of
# kernels is of interest.
size="--set width=64 --set batch=8"
[ -z "${DEPENDENT_STEPS:-}" ] || size=
# shellcheck disable=SC2086 # several words
expect 0 "$SINTER" build norm.net $size -o norm

trains first SINTER_DOUBLE_SEED=0 ./norm \
    $without,merged-launches,programmatic-launches
[ "$early" -eq 0 ] || fail "$early early launches, although switched off"
trains early SINTER_DOUBLE_SEED=7 SINTER_DOUBLE_DELAYED=1 \
    ./norm $without,merged-launches
[ "$early" -ge 8 ] || fail "only $early early launches"
equal early
[ -z "${DEPENDENT_STEPS:-}" ] || exit 0

trains one_by_one SINTER_DOUBLE_SEED=8 ./norm $without,merged-launches,graph
[ "$early" -ge $((4 * steps)) ] || fail "only $early early launches"
equal one_by_one
trains merged SINTER_DOUBLE_SEED=9 SINTER_DOUBLE_DELAYED=1 ./norm $without
equal merged

# Sums of so many columns that several last blocks share them.
cat >shared.net <<'NET'
model Shared(image: f32[N, 1024]) -> f32[N, 3] {
  image |> layer_norm |> linear(3)
}

train Shared {
  data      = synthetic()
  batch     = 64
  epochs    = 5000
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build shared.net -o shared
"$SINTER" show kernels shared.net | grep -q last_blocks ||
    fail "no last blocks share sums"
trains alone SINTER_DOUBLE_SEED=0 ./shared
trains late SINTER_DOUBLE_SEED=7 SINTER_DOUBLE_DELAYED=1 ./shared
expect_equal "$(newest alone)" "$(newest late)"
trains at_once SINTER_DOUBLE_SEED=1 ./shared
expect_equal "$(newest alone)" "$(newest at_once)"
