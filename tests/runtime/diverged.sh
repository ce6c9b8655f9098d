#!/bin/sh
# shellcheck disable=SC2154 # here is of expect.sh
# A run that diverges says which value was the first that was not finite, of
# which line of the model, and what its kernel had read.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
micro=$here/micro.net

# The step: weights of 1e29, whose products are beyond f32.
expect 0 "$SINTER" build "$micro" --set "optimizer=sgd(lr=1e30)" -o steep
expect 6 ./steep --data synthetic:64 --out run
expect_says "replaying from step 0 to find the first operation"
expect_says "replay of step 2, .*matmul of linear_1, micro.net:3 is the first"
expect_says "hidden.relu_1, micro.net:3 is 0 .. [0-9.]*e+[0-9]*; linear_1.weight is -"
expect_says "the loss is not a number"

# The same after a checkpoint, from which it goes back to no step before.
expect 0 ./steep --data synthetic:64 --out two --steps 1 --quiet
expect 6 ./steep --data synthetic:64 --out two --resume
expect_says "replaying from step 1 to find the first operation"
expect_says "replay of step 2, .*matmul of linear_1, micro.net:3 is the first"

# What no kernel but the update makes: a rate that is not finite.
expect 0 "$SINTER" build "$micro" --set "optimizer=sgd(lr=3e38, weight_decay=100)" -o update
expect 6 ./update --data synthetic:64 --out run3
expect_says "replay of step 1, operation by operation: in k[0-9]*_update, for hidden.weight, mul of hidden, micro.net:3 is the first tensor that is not finite, .* is 3e+38; "

# diverges NAME BODY: a model of that body, whose kernel is looked into.
diverges() {
    cat >"$1.net" <<END
model M(image: f32[N, 6]) -> f32[N, 3] {
  wide = image |> linear(8)
  $2
}

train M {
  data      = synthetic()
  batch     = 16
  epochs    = 20
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.05)
}
END
    expect 0 "$SINTER" build "$1.net" -o "$1"
    expect 6 "./$1" --data synthetic:64 --out "$1.run"
}

# In the middle of a kernel that stores but the sum.
diverges log 'mild = wide * 0.5 |> sigmoid
  sharp = wide |> relu |> log
  mild + sharp * 0.5 |> linear(3)'
expect_says "replay of step 1, operation by operation: in k[0-9a-z_]*, log of log_1, log.net:4 is the first tensor that is not finite, in 72 of 128 elements; relu of relu_1, log.net:4 is 0 .. 1\.[0-9]*$"

# What f32 cannot hold, though a double can.
diverges exp 'high = wide * 100 |> abs |> exp
  high * 0.5 + wide |> relu |> linear(3)'
expect_says "in k[0-9a-z_]*, exp of exp_1, exp.net:3 is the first tensor that is not finite, .* abs of abs_1, exp.net:3 is [0-9.]* .. 1[0-9]*\.[0-9]*$"

# A norm of nothing: 0 / 0 for each element.
diverges norm 'flat = wide * 0
  flat / sqrt(mean(square(flat), axes=channels, keep=true)) + wide |> linear(3)'
expect_says "in k[0-9a-z_]*, div of div_1, norm.net:4 is the first tensor that is not finite, in 128 of 128 elements; .* is 0; .* is 0$"

# The forward pass is finite; the gradient of the root of 0 is not.
diverges root 'wide * 0 |> sqrt |> linear(3)'
expect_says "of sqrt_1, backward, root.net:3 is the first tensor that is not finite"
