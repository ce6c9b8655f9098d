#!/bin/sh
# The order of samples is that of docs/numerics.md: order.py follows the page,
# and trainers with short last batches, gathered batches and a holdout train on
# the samples it lists.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
command -v python3 >/dev/null || exit 77

cat >probe.net <<'NET'
model Probe(x: f32[N, 1]) -> f32[N, 1] {
  x |> linear(1, init=0, bias_init=0)
}

train Probe {
  data      = npy("data", targets=true)
  batch     = 6
  epochs    = 3
  loss      = mean(l1(output, label))
  optimizer = sgd(lr=0)
}
NET
sed 's/batch     = .*/&, drop_last/' probe.net >dropped.net
expect 0 "$SINTER" build probe.net --set batch=1 -o one
expect 0 "$SINTER" build probe.net -o tail
expect 0 "$SINTER" build dropped.net -o dropped
expect 0 "$SINTER" build probe.net --set batch=3 --set accumulate=2 -o gathered
expect 0 "$SINTER" build dropped.net --set batch=3 --set accumulate=2 \
    -o gathered_dropped
expect 0 python3 "$here/order.py" "$SINTER_SOURCE/docs/numerics.md"
