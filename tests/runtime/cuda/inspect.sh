#!/bin/sh
# A trainer lists its launches with their lines of the model, writes the text of
# its kernels, and runs an edited one.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

expect 0 "$SINTER" build "$here/tiny.net" -o tiny

# Every launch of a training step has a line of the model, in each plan.
for device in host cuda; do
    expect 0 ./tiny --list-kernels --device=$device
    expect_says "plan for $device"
    expect_says "^    1  launch reads and writes 5772 bytes$"
    sed -n '/^step train/,/launches read/p' out | grep -E '^ +[0-9]+  [kcm]' >train
    [ "$(wc -l <train)" -eq 22 ] || fail "not 22 launches"
    grep -v 'tiny.net:[0-9]' train && fail "a launch without a line"
    # The gradient of the pool and of batch_norm comes from two lines.
    grep -q 'k20_batch_norm_max_pool_relu_grad.*tiny.net:4,9  first' train ||
        fail "lines of a fused kernel"
done
[ "$(sed -n 's/.*launches read and write \([0-9]*\) bytes/\1/p' out | tail -n 1)" -gt 0 ] ||
    fail "no bytes"
expect 0 ./tiny --print-plan --device=cuda
expect_says "param linear_1.weight f32\[10,16\] @"
expect_says "input image u8\[64,12,12,1\] @"
expect_says "merged cooperative launches that CUDA can choose"

# The trainer and sinter print the same bytes.
"$SINTER" show launches "$here/tiny.net" --graph=train >launches
bytes=$(sed -n 's/^ *\([0-9]*\)  bytes read and written.*/\1/p' launches)
./tiny --list-kernels --device=cuda | grep -q "launches read and write $bytes bytes" ||
    fail "not $bytes bytes"

# train FOLDER OPTION...: two steps, and their losses in FOLDER.losses.
train() {
    name=$1
    shift
    expect 0 ./tiny --device=cuda:0 --data=synthetic:128 --steps=2 \
        --log-every=1 --metrics="$name.rows" --out="$name.run" "$@"
    sed -n 's/.*"split":"step".*"loss":\([^,}]*\).*/\1/p' "$name.rows" \
        >"$name.losses"
    [ "$(wc -l <"$name.losses")" -eq 2 ] || fail "no losses"
}

expect 0 ./tiny --dump-cuda=text/deep
[ -s text/deep/kernels.cu ] || fail "no kernels.cu"
[ -s text/deep/runtime/prelude/prelude.h ] || fail "no prelude"
train own
train same --load-cuda=text/deep
expect_equal own.losses same.losses

# Machine code that knows the model's lines does the same.
expect 0 "$SINTER" build "$here/tiny.net" --lineinfo=model -o lined
mv tiny plain
mv lined tiny
train lined
mv plain tiny
expect_equal own.losses lined.losses

# On a GPU without cooperative launches none are merged.
small_cache h200 | sed 's/"supportCoopLaunch": 1/"supportCoopLaunch": 0/' >single.json
export SINTER_DOUBLE_DEVICE="$work/single.json"
train single
expect_equal own.losses single.losses
# Nor are any tried.
expect 0 ./tiny --tune --without=library-fusions --device=cuda:0 --data=synthetic:128 \
    --out=tuned --tuning=single.tuning
unset SINTER_DOUBLE_DEVICE

# Momentum is another now; the second step tells.
sed 's/0\.9f/0.5f/' text/deep/kernels.cu >edited
cmp -s edited text/deep/kernels.cu && fail "nothing was edited"
cp edited text/deep/kernels.cu
train edited --load-cuda=text/deep
cmp -s own.losses edited.losses && fail "the edited text was not run"

# Mistakes.
echo '#error not like this' >>text/deep/kernels.cu
expect 2 ./tiny --device=cuda:0 --data=synthetic:128 --load-cuda=text/deep
expect_says "not like this"
expect 3 ./tiny --device=cuda:0 --data=synthetic:128 --load-cuda=nowhere
expect_says "nowhere/kernels.cu"
expect 2 ./tiny --device=host --data=synthetic:128 --load-cuda=text/deep
expect_says "compiled with the trainer"
: >file
expect 74 ./tiny --dump-cuda=file/deep
exit 0
