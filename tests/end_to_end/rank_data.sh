#!/bin/sh
# Files of one rank that cannot be read, or do not answer until a signal comes:
# all ranks end after the same step, which is saved.  ON: the device.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
. "$SINTER_SOURCE/tests/end_to_end/stalling.sh"

cat >folder.net <<'NET'
model Folder(image: u8[N, 4, 4, 3]) -> f32[N, 2] {
  image |> normalize(mean=127, std=60) |> flatten |> linear(2)
}

train Folder {
  data      = image_folder("images", size=4)
  batch     = 4
  epochs    = 10
  shards    = 4
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
  eval every 1 epoch on data.test { metrics = [accuracy, loss] }
}
NET
expect 0 "$SINTER" build folder.net -o trainer
on=${ON:---device=host}
# shellcheck disable=SC2086
expect 0 ./trainer $on --out=one --quiet

# two OUT VARIABLE...: two ranks; the variables are of rank 1.
two() {
    job=$((job + 1))
    out=$1
    shift
    place="WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 TORCHELASTIC_RUN_ID=$$.$job"
    # shellcheck disable=SC2086
    env $place RANK=0 ./trainer $on --out="$out" --loaders=1 $resume \
        >said.0 2>&1 &
    first=$!
    # shellcheck disable=SC2086
    env $place RANK=1 "$@" ./trainer $on --out="$out" --loaders=1 \
        $resume >said.1 2>&1 &
    second=$!
}
job=0 resume=

# end STATUS: of both.
end() {
    for process in $first $second; do
        wait "$process"
        got=$?
        [ $got -eq "$1" ] || fail "a rank ends with $got: $(cat said.*)"
    done
}

says() {
    grep -q -e "$2" "said.$1" || fail "rank $1 says: $(cat "said.$1")"
}

# goes_on OUT: it ends as a run without interruption.
goes_on() {
    resume=--resume
    two "$1"
    end 0
    resume=
    expect_equal "$(newest one)" "$(newest "$1")"
}

# Synchronized, a rank without data takes part in the sums of the step.
sed 's/|> flatten/|> conv(4, 3) |> batch_norm &/
     s/shards    = 4/&\n  sync_batch_norm = true/' folder.net >sync.net
mv trainer alone
mv one one.alone
expect 0 "$SINTER" build sync.net -o trainer
# shellcheck disable=SC2086
expect 0 ./trainer $on --out=one --quiet
two synchronized LD_PRELOAD=./stall.so FAILS=1 COUNT=25
end 74
says 0 '^error: rank 1 has no data after step [0-9]*$'
goes_on synchronized
mv alone trainer
rm -r one
mv one.alone one

# The thirteenth step needs the 25th file, which is loaded before.
two fails LD_PRELOAD=./stall.so FAILS=1 COUNT=25
end 74
says 1 '^error: cannot open images/train/[ab]/[1-4].png: Input/output error'
says 0 '^error: rank 1 has no data after step [0-9]*$'
says 0 'stopped at step [0-9]* of 20; --resume continues from step [0-9]*$'
goes_on fails

# stands COUNT SPLIT: a file of rank 1 does not answer; rank 1 gets a signal.
stands() {
    rm -f stands
    two "stands$2" LD_PRELOAD=./stall.so COUNT="$1" SPLIT="$2"
    until [ -e stands ]; do sleep 0.02; done
    kill -TERM $second
    end 143
    says 0 'stopped at step [0-9]* of 20; --resume continues from'
    goes_on "stands$2"
}
stands 25 train/
stands 25 test/
