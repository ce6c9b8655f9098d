#!/bin/sh
# Pointers of merged launches lack RESTRICT: with it NVRTC loads what the phase
# before has written as a constant, which the reader of PTX refuses.  On a GPU
# nothing else would: numbers are right wherever a cache does not hold old ones.
set -u
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

[ -d "$SINTER_DOUBLE" ] || exit 77
export LD_LIBRARY_PATH="$SINTER_DOUBLE" XDG_CACHE_HOME=/dev/null \
    SINTER_DOUBLE_PTX=1 SINTER_DOUBLE_NVRTC="$SINTER_NVRTC"

cat >norm.net <<'NET'
model Norm(image: f32[N, 4, 4, 8]) -> f32[N, 3] {
  image |> conv(8, 3, bias=false) |> batch_norm |> relu |> flatten |> linear(3)
}

train Norm {
  data      = synthetic()
  batch     = 4
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET

# trains STATUS FOLDER: with the kernels' text that is there.
trains() {
    expect "$1" ./norm --device=cuda:0 --load-cuda="$2" --data=synthetic:8 \
        --steps=1 --out=run
    rm -rf run
}

expect 0 "$SINTER" build norm.net -o norm
expect 0 ./norm --device=cuda:0 --dump-cuda=own
grep -q '^MERGED(' own/kernels.cu || fail "no launch is merged"
trains 0 own

cp -r own told
awk '/^MERGED\(/ { head = 1 }
    /^{/ { head = 0 }
    head { gsub(/ \*/, " *RESTRICT ") }
    { print }' own/kernels.cu >told/kernels.cu
! cmp -s own/kernels.cu told/kernels.cu || fail "nothing was planted"
trains 134 told
expect_says "^ptx: .*a constant is loaded that the launch has written"
