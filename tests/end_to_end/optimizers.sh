#!/bin/sh
# Every optimizer of the table, by groups, with clipped gradients of several
# batches, a layer that freezes and averages: a run that was stopped goes on to
# the same bits as one that was not, and each step can be repeated.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

cat >net.net <<'END'
model Net(image: u8[N, 8, 8, 1]) -> f32[N, 10] {
  image
    |> normalize(mean=128, std=64)
    |> conv(8, 3, bias=false) |> relu |> max_pool(2) |> flatten
    |> linear(16, bias=false) |> relu |> linear(10, bias=false)
}

train Net {
  data       = synthetic(samples=256)
  batch      = 32, drop_last
  accumulate = 2
  epochs     = 4
  loss       = mean(cross_entropy(output, label))
  optimizer  = sgd(lr=0.01)
  clip       = norm(1)
  average    = ema(decay=0.9)
  params "linear_1.weight" { lr = cosine(0.01); weight_decay = 0.1 }
  freeze "conv_1.*" after 1 epoch
  checkpoint every 1 epoch keep 2
}
END

# goes_on OPTIMIZER SETTING...
goes_on() {
    name=$1
    shift
    expect 0 "$SINTER" build net.net --set "optimizer=$name(lr=0.01)" "$@" -o run
    rm -rf whole parts
    expect 0 ./run --threads=1 --out whole --quiet --verify-every=3
    expect 0 ./run --threads=1 --out parts --quiet --steps 7
    expect 0 ./run --threads=1 --out parts --quiet --resume
    expect_equal "$(newest whole)" "$(newest parts)"
}

names=$(sed -n 's/^OPTIMIZER(\([a-z]*\),.*/\1/p' \
    "$SINTER_SOURCE/ir/optimizers.def")
[ "$(echo "$names" | wc -l)" -ge 12 ] || fail "few optimizers: $names"
# In turn with each of two settings.
setting="precision=mixed(f16)" other="average=lookahead(decay=0.5, every=3 step)"
for name in $names; do
    goes_on "$name" --set "$setting"
    next=$other other=$setting setting=$next
    expect 0 "$SINTER" show params net.net --set "optimizer=$name(lr=0.01)"
    expect_says "^linear_2.weight .* $name "
    expect 0 "$SINTER" show recipe net.net --set "optimizer=$name(lr=0.01)"
    expect_says "^$name lr  .* 0.01  .* conv_1.weight and 1 more"
done
