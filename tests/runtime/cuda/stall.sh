#!/bin/sh
# A file that does not answer: the run waits for it, and is saved where it was to
# wait no longer, or a signal comes, on the host and on a GPU; and where a file
# cannot be opened.  It is the COUNTth of the training files that are, or of
# those of SPLIT.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/stalling.sh"

cat >folder.net <<'NET'
model Folder(image: u8[N, 4, 4, 3]) -> f32[N, 2] {
  image |> normalize(mean=127, std=60) |> flatten |> linear(2)
}

train Folder {
  data      = image_folder("images", size=4)
  batch     = 4
  epochs    = 8
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build folder.net -o trainer
expect 0 "$SINTER" build folder.net --set accumulate=2 -o two
sed 's/std=60/std=1e-38/' folder.net >lost.net
expect 0 "$SINTER" build lost.net -o lost

# stalls NUMBER COMMAND...: the command's data stand still at that file.
stalls() {
    COUNT=$1
    shift
    expect 74 env LD_PRELOAD=./stall.so COUNT="$COUNT" "$@" --loaders=1 \
        --stall-timeout=0.3
}

# stand TRAINER OPTION...: starts one whose data stand still at file COUNT of
# SPLIT, until there is a file `answers`.
stand() {
    trainer=$1
    shift
    rm -rf stands answers
    env LD_PRELOAD=./stall.so COUNT="$count" SPLIT="$split/" $trainer \
        --device="$device" --loaders=1 "$@" >out 2>err &
    await -e stands
    sleep 0.5 # most often it waits by then
}

# await TEST: until that holds of the folder, or for some time.
await() {
    tries=0
    until eval "[ $* ]" || [ $tries -ge 1000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
}

# ended_by NUMBER: the trainer that was started last ends by that signal.
ended_by() {
    wait $!
    status=$?
    [ $status -eq $((128 + $1)) ] || fail "signal $1: exit status $status"
}

for device in host cuda:0; do
    # The 25th is in the seventh batch.
    expect 0 ./trainer --device=$device --out=whole.$device
    stalls 25 ./trainer --device=$device --out=parts.$device
    expect_says "^error: no batch for 0.3 s: 0 of 4 parts of batch 6 are"
    expect_says "stopped at step 6 of 16; --resume continues from step 6"
    expect 0 ./trainer --device=$device --out=parts.$device --resume
    expect_equal "$(newest whole.$device)" "$(newest parts.$device)"

    # Within an update states are not those of a step.
    stalls 25 ./two --device=$device --out=two.$device
    expect_says "stopped at step 3 of 8; --resume continues from step 3"
    stalls 5 ./two --device=$device --out=two.$device --resume
    expect_says "stopped at step 3 of 8; --resume continues from step 3"
    expect_equal "$(newest two.$device)" two.$device/step-00000003.safetensors
    expect 0 ./two --device=$device --out=two.$device --resume
    stalls 29 ./two --device=$device --out=nothing.$device
    expect_says "stopped within the update after step 3 of 8: nothing is saved"
    [ -z "$(newest nothing.$device)" ] || fail "part of an update is saved"
    expect 0 ./two --device=$device --out=one.$device
    expect_equal "$(newest one.$device)" "$(newest two.$device)"

    # A loss that was lost before ends the run.
    expect 6 env LD_PRELOAD=./stall.so COUNT=5 ./lost --device=$device \
        --loaders=1 --stall-timeout=0.3 --out=lost.$device
    expect_says "^warning: its data failed, too: no batch for 0.3 s: "
    expect_says "^error: the loss is not a number after step 1, "
    [ -z "$(newest lost.$device)" ] || fail "a loss that is lost is saved"

    split=train
    count=5
    rm -rf lost.$device
    stand ./lost --out=lost.$device
    kill -TERM $!
    wait $!
    status=$?
    [ $status -eq 6 ] || fail "a loss that is lost: exit status $status"
    expect_says "^error: the loss is not a number after step 1, "
    grep "data failed" err && fail "data that a signal did not wait for failed"

    # A file that cannot be opened is reported at once; the trace has the steps
    # before it.
    expect 74 env LD_PRELOAD=./stall.so COUNT=50 FAILS=1 ./trainer \
        --device=$device --loaders=1 --out=fails.$device --profile=trace
    python3 - trace <<'END' || fail "the trace: $(head -n 3 trace)"
import json, sys
found = json.load(open(sys.argv[1]))
assert found["otherData"]["note"].startswith("steps 4 to "), found
assert any(e["name"] == "step" for e in found["traceEvents"])
END
    expect_says "^error: cannot open images/train/.*: Input/output error"
    [ -n "$(newest fails.$device)" ] || fail "data that fail leave no checkpoint"
    expect 0 ./trainer --device=$device --out=fails.$device --resume
    expect_equal "$(newest whole.$device)" "$(newest fails.$device)"
    stalls 13 ./trainer --device=$device --out=early.$device --profile=trace
    expect_says "^trace has a trace of no complete step: the run ended before$"
    expect_says "stopped at step 3 of 16"

    # A signal ends a run that would wait on, for either split.
    for split in train test; do
        rm -rf signal.$device
        count=25
        stand ./trainer --out=signal.$device
        kill -TERM $!
        ended_by 15
        expect_says "stopped at step [0-9]* of 16; --resume continues from"
        [ -n "$(newest signal.$device)" ] || fail "no checkpoint is left"
        expect 0 ./trainer --device=$device --out=signal.$device --resume
        expect_equal "$(newest whole.$device)" "$(newest signal.$device)"
    done

    # Within an update it waits for its end, which can be saved.
    split=train
    count=29
    stand ./two --out=patient.$device
    kill -TERM $!
    await '"$(grep "^warning: a signal arrived within an update" err)"'
    expect_says "another signal ends the run at once"
    touch answers
    ended_by 15
    expect_says "stopped at step 4 of 8; --resume continues from there"
    expect 0 ./two --device=$device --out=patient.$device --resume
    expect_equal "$(newest one.$device)" "$(newest patient.$device)"
    stand ./two --out=hasty.$device
    kill -TERM $!
    sleep 1
    kill -HUP $!
    ended_by 1
    [ -z "$(newest hasty.$device)" ] || fail "part of an update is saved"
done

# Batches that --verify-every loads again and that are late stay open until the
# program ends.
expect 0 env LD_PRELOAD=./stall.so COUNT=12 SECONDS_LATE=5 ./trainer \
    --device=host --loaders=1 --out=late --verify-every=1
grep -q "ends under a thread" err && fail "data are given back too early"
expect_equal "$(newest whole.host)" "$(newest late)"

# With no run there is nothing to save.
stalls 5 ./trainer --load-only
stalls 1 ./trainer --device=host --out=none --quiet
[ -z "$(newest none)" ] || fail "a run without steps is saved"
exit 0
