#!/bin/sh
# shellcheck disable=SC2154 # here and work are of expect.sh
# sinter compare on a GPU: in 16 bits, and with a mistake.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
micro=$here/micro.net

compare() {
    want=$1
    shift
    expect "$want" "$SINTER" compare --device=cuda:0 --steps=2 --batch=8 "$@"
}

compare 0 "$micro" --set precision=f16
expect_says "on cuda:0"
expect_says "as close to the reference as b, 0 wrong;"
expect_says "matmul of hidden  f16\[8,8\]"
expect_says "hidden.weight.momentum  f32\[8,6\]  optimizer"
expect_says "^step 2 "

# The momentum of the fused update.
. "$SINTER_SOURCE/tests/tools/compare/faulty.sh"
FAULT='s/0\.9f/0.8f/' compare 7 "$micro" --json
expect_says '"device": "cuda:0"'
expect_says '"tensor": "linear_1.bias.momentum", .*"verdict": "wrong"'
