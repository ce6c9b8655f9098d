#!/bin/sh
# Several training steps are one launch of a graph: the losses and weights are
# those of steps one by one, to the bit, and the graph is launched so many times
# fewer.  Evaluations, checkpoints, rows and the end of a run come between
# groups.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

cat >small.net <<'END'
model Small(image: u8[N, 28, 28, 1]) -> f32[N, 10] {
  image |> normalize(mean=[33.3], std=[78.6]) |> flatten |> linear(16) |> relu
    |> linear(10)
}

train Small {
  data      = idx("data/mnist")
  batch     = 16
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = adamw(lr=lr)
  lr        = piecewise(0: 1e-3, 1: 0)
  eval every 2 epoch on data.test { metrics = [accuracy, loss] }
  checkpoint every 1 epoch
}
END
expect 0 "$SINTER" build small.net -o small
export SINTER_DOUBLE_THREADS=1

# train NAME SEED OPTION...: with the calls of the driver in NAME.log.
train() {
    name=$1 seed=$2
    shift 2
    [ "$*" = --resume ] || rm -rf "$name.run" "$name.log"
    expect 0 env SINTER_DOUBLE_SEED="$seed" SINTER_DOUBLE_LOG="$work/$name.log" \
        ./small --device=cuda:0 --data=synthetic:640 --out="$name.run" --quiet \
        --metrics="$name.jsonl" "$@"
    sed 's/,"samples_per_second.*//; /"split":"time"/d; s/"elapsed[^,]*,//' \
        "$name.jsonl" >"$name.rows"
}

# launches NAME: of graphs.
launches() {
    grep -c cuGraphLaunch "$1.log"
}

# At least three groups of eight: a row of the progress ends a group early.
train single 1 --without=step-groups
for seed in 0 2; do
    train grouped $seed
    expect_equal single.run/step-00000080.safetensors \
        grouped.run/step-00000080.safetensors
    expect_equal single.rows grouped.rows
    [ "$(launches grouped)" -le $(($(launches single) - 21)) ] ||
        fail "$(launches grouped) launches, $(launches single) without groups"
done
# A run ends, and goes on, within a group.  Streamed images are copied to slots.
train parts 2 --steps=37
train parts 2 --resume
expect_equal single.run/step-00000080.safetensors \
    parts.run/step-00000080.safetensors
train streamed 2 --resident=no
[ "$(launches streamed)" -le $(($(launches single) - 21)) ] ||
    fail "$(launches streamed) launches of streamed images"
expect_equal single.run/step-00000080.safetensors \
    streamed.run/step-00000080.safetensors

# A group's graph that the driver refuses, to instantiate or to launch, leaves
# its steps to graphs of their own: those held, and all later ones.
# nth CALL: the number of that call at the first group, whose capture has more
# launches than that of a step.
nth() {
    awk -v call="$1" '
        $2 == call { n++ }
        $2 == "cuStreamBeginCapture_v2" { kernels = 0 }
        $2 == "cuLaunchKernel" || $2 == "cuLaunchKernelEx" { kernels++ }
        $2 == "cuStreamEndCapture" { step = step ? step : kernels }
        $2 == call && step && kernels >= 8 * step { print n; exit }' grouped.log
}
for fault in cuStreamEndCapture:901 cuGraphInstantiateWithFlags:2 \
    cuGraphUpload:2 cuGraphLaunch:2; do
    call=${fault%:*}
    rm -rf refused.run
    SINTER_DOUBLE_FAIL="$call:$(nth "$call"):${fault#*:}"
    export SINTER_DOUBLE_FAIL
    train refused 2
    unset SINTER_DOUBLE_FAIL
    expect_says "^warning: cuda:0: steps of train are launched one by one: "
    expect_equal single.run/step-00000080.safetensors \
        refused.run/step-00000080.safetensors
    expect_equal single.rows refused.rows
    [ "$(launches refused)" -ge "$(launches single)" ] ||
        fail "$fault: $(launches refused) launches, $(launches single) one by one"
done
