#!/bin/sh
# Rows of a few columns are vectors of their own in kernels, which compilers keep
# where vectors of the processor may not lie.  Their flags are a trainer's own:
# without optimising nothing is kept so.
OPTIMISATION=
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
unset CFLAGS

for size in 5 6 7; do
    cat >lanes.net <<END
model Lanes(word: i32[N, 16]) -> f32[N, 10] {
  embedding(word, 20, $size) |> mean([positions]) |> linear(10)
}

train Lanes {
  data      = synthetic(samples=16, test=8, vocabulary=20)
  batch     = 8
  steps     = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
END
    expect 0 "$SINTER" build lanes.net -o lanes
    expect 0 ./lanes --quiet
done
