#!/bin/sh
# A run that diverges on a GPU is replayed there, and the kernel that is to blame
# looked into: the operation that is named is that of the host, and so is one
# whose numbers f16 does not have.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

cat >half.net <<'END'
model Half(image: f32[N, 6]) -> f32[N, 3] {
  image |> linear(64) |> scale(1000) |> square as big |> linear(64) |> relu |> linear(3)
}

train Half {
  data      = synthetic()
  batch     = 16
  epochs    = 20
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=100)
}
END
expect 0 "$SINTER" build half.net -o half --set precision=f16
expect 6 ./half --device=cuda:0 --data=synthetic:64 --out=half.run --quiet
expect_says "operation by operation: in k[0-9a-z_]*, cast of big.*half.net:2 is [0-9.e+]* \.\. [0-9.e+]*, but the largest number of its type in memory is 65504; "

# The search for the first large value skips results of merged launches and of
# library fusions, which are not in memory.
sed 's/|> scale(1000) |> square as big/|> batch_norm |> relu |> log as big/' half.net >log.net
expect 0 "$SINTER" build log.net -o log
for device in cuda:0 host; do
    expect 6 ./log --device=$device --data=synthetic:64 --out=$device --quiet
    expect_says "operation by operation: in k[0-9a-z_]*, log of big.log_1, log.net:2 is the first tensor that is not finite, "
done
exit 0
