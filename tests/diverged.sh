#!/bin/sh
# shellcheck disable=SC2154 # here is of expect.sh
# A run that diverges says which value was the first that was not finite, of
# which line of the model, and what its kernel had read.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
export CFLAGS="${CFLAGS:-} -O0"
micro=$here/micro.net

# The step: weights of 1e29, whose products are beyond f32.
expect 0 "$SINTER" build "$micro" --set "optimizer=sgd(lr=1e30)" -o steep
expect 6 ./steep --data synthetic:64 --out run
expect_says "going back to step 0 to see where"
expect_says "step 2 again, .*matmul of linear_1, micro.net:3 is the first"
expect_says "hidden.relu_1, micro.net:3 is 0 .. [0-9.]*e+[0-9]*; linear_1.weight is -"
expect_says "the loss is not a number"

# The same after a checkpoint, from which it goes back to no step before.
expect 0 ./steep --data synthetic:64 --out two --steps 1 --quiet
expect 6 ./steep --data synthetic:64 --out two --resume
expect_says "going back to step 1 to see where"
expect_says "step 2 again, .*matmul of linear_1, micro.net:3 is the first"

# What no kernel but the update makes: a rate that is not finite.
expect 0 "$SINTER" build "$micro" --set "optimizer=sgd(lr=3e38, weight_decay=100)" -o update
expect 6 ./update --data synthetic:64 --out run3
expect_says "step 1 again, .*all that its kernels leave is finite but"
