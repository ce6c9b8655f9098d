#!/bin/sh
# The end of a run says how many operations a second its library calls made:
# those of its steps are as many as sinter check says, where no kernel computes
# products.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

# flops STEPS MODEL OPTION...: a run of so many steps.
flops() {
    steps=$1 model=$2
    shift 2
    expect 0 "$SINTER" check --json "$model" "$@"
    step=$(sed -n 's/.*"flops_step": \([0-9]*\).*/\1/p' out)
    [ "${step:-0}" -gt 0 ] || fail "$model: no flops"
    expect 0 "$SINTER" build "$model" "$@" -o trainer
    expect 0 ./trainer --device=host --data=synthetic:192 --out=run --time \
        --metrics=rows
    expect_says "FLOP/s of library calls in training$"
    grep '"split":"time"' rows | tr -d '"}' | tr ',:' '\n ' |
        awk -v steps="$steps" -v step="$step" '{ is[$1] = $2 }
        END {
            seconds = is["total"] - is["start"] - is["evaluation"] - \
                is["checkpoints"]
            # Each of four times has six digits, and the rate nine.
            near = 0.000002 / seconds + 0.000001
            off = is["flops_per_second"] * seconds / (steps * step) - 1
            if (off < -near || off > near) exit 1
            if ("of_peak" in is) exit 2
        }' || fail "$model: $? $(cat rows)"
    rm -rf run
}

flops 9 "$here/tiny.net"
flops 3 "$here/tiny.net" --set accumulate=3
flops 36 "$here/micro.net" --set epochs=3 # a step has all of its batch
flops 1 "$models/vgg16_bn.net" --set batch=192 --set width=4 --set epochs=1
