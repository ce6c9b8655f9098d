#!/bin/sh
# A trainer trains: it overfits one batch, and the result has the same bits
# every time, for any number of loader threads.
export OPTIMISATION=-O0
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

# last_loss FILE: of the last training row.
last_loss() {
    grep '"split":"train"' "$1" | tail -n 1 |
        sed 's/.*"loss":\([-0-9.e+]*\).*/\1/'
}

idx_data data 32
expect 0 "$SINTER" build "$here/overfit.net" -o overfit
expect 0 ./overfit --data data --out overfit.run --metrics=overfit.jsonl
loss=$(last_loss overfit.jsonl)
awk -v loss="$loss" 'BEGIN { exit !(loss > 0 && loss < 0.05) }' ||
    fail "a batch of 32 is not learnt by heart: loss $loss"

idx_data many 192
expect 0 "$SINTER" build "$here/tiny.net" -o tiny
for run in first second; do
    expect 0 ./tiny --data many --out $run --metrics=$run.jsonl
    grep '^test accuracy' out >shown
done
[ -n "$(newest first)" ] || fail "no checkpoint"
expect_equal "$(newest first)" "$(newest second)"
expect 0 ./tiny --data many --out third --seed 1
cmp -s "$(newest first)" "$(newest third)" && fail "seeds change nothing"
for field in split epoch step loss accuracy lr samples_per_second wait_ms; do
    grep -q "\"$field\":" first.jsonl || fail "no $field in the metrics"
done

# Rows go to standard output where they are asked to, and nothing else does.
expect 0 ./tiny --data many --out fourth --epochs 1 --metrics -
grep -q '"split":"time"' out || fail "no rows on standard output"
grep -v '^{"split":.*}$' out && fail "that is no row"
expect_says '^test accuracy'
expect 0 ./tiny --data many --out fourth --resume --metrics=-
grep -q '"split":"test"' out || fail "no row of a run that goes on"
expect 0 ./tiny --data many --out fifth --epochs 1 --times=- --quiet
[ "$(grep -c '^[0-9.]*$' out)" -eq 3 ] || fail "no times on standard output"
[ -e - ] && fail "a file has the name -"

# A recipe in f16 tells its loss scale, which evaluations leave as it is and
# steps that overflow halve.
expect 0 "$SINTER" build "$here/tiny.net" --set precision=f16 -o half
expect 0 ./half --data many --out half.run --metrics=half.jsonl
expect_says "loss scale 65536 "
grep '"train"' half.jsonl | grep -qv '"loss_scale":65536,' &&
    fail "a loss scale that nothing has changed is another"
grep '"test"' half.jsonl | grep -q loss_scale && fail "a test has a loss scale"
expect 0 "$SINTER" build "$here/micro.net" --set precision=f16 --act=recipe \
    --set "loss=mean(3000 * cross_entropy(output, label))" \
    --set "optimizer=sgd(lr=1e-6)" -o large
expect 0 ./large --data synthetic:64 --steps 12 --log-every 1 --metrics=l.jsonl \
    --out large.run
grep -q '"loss_scale":32768[,}]' l.jsonl || fail "no scale is halved"
grep -q '"loss_scale":65536[,}]' l.jsonl && fail "a step that overflows is taken"
grep -q '"loss_scale"' first.jsonl && fail "f32 has a loss scale"

# Skipped steps are counted: each has halved the scale.
expect_says "^epoch .* loss scale 4096     skipped 4  "
expect_says "^warning: every step of this epoch was skipped .* is 4096 and is halved by each"
[ "$(grep -c '^warning' err)" -eq 2 ] || fail "an epoch with good steps is warned of"
for kind in step train; do
    awk -F '[,:}]' -v kind=$kind '$2 ~ kind {
        for (i = 1; i < NF; i++) {
            if ($i == "\"loss_scale\"") scale = $(i + 1)
            if ($i == "\"skipped\"") skipped += $(i + 1)
        }
        rows++
        good += scale * 2 ^ skipped == 65536
    }
    END { exit !(rows == (kind == "step" ? 12 : 3) && good == rows) }' l.jsonl ||
        fail "$kind rows: what is skipped is not what halves the scale"
done
grep '"test"' l.jsonl | grep -q skipped && fail "a test skips steps"
grep -q '"skipped"' first.jsonl && fail "f32 skips steps"

# A gradient that is no number at any scale ends the run when it is 1, which says
# where it began.
sed 's/relu as hidden/scale(0) |> sqrt/' "$here/micro.net" >root.net
expect 0 "$SINTER" build root.net --set precision=f16 -o root
expect 6 ./root --data synthetic:64 --out root.run
expect_says "^epoch .* loss scale 0.5      skipped 4  "
expect_says "replay of step 17, operation by operation: .* of sqrt_1, backward, root.net:3 is the first"
expect_says "at the smallest loss scale, 1, after step 20, epoch 5.00; build with precision=bf16 or f32"
[ "$(grep -c '^warning' err)" -eq 4 ] || fail "not each epoch is warned of"
expect 0 "$SINTER" build root.net --set precision=bf16 -o root
expect 6 ./root --data synthetic:64 --out root.bf16
expect_says "operation by operation: .* of sqrt_1, backward, root.net:3 is the first"

# Evaluation of the checkpoint repeats the last evaluation of training.
expect 0 ./tiny --data many --out first --eval-only
grep '^test accuracy' out >again
expect_equal shown again
[ -s again ] || fail "no test accuracy is shown"

# The data that is drawn needs no file.
expect 0 ./tiny --data synthetic --epochs 0.1 --out drawn --quiet
[ -s err ] && fail "--quiet says: $(cat err)"

# A run that resumes keeps its length; a folder that holds a run is taken by no
# other one.
expect 0 ./tiny --data synthetic --out drawn --resume
expect_says "the run keeps its length; a new run would take"
expect 0 ./tiny --data synthetic --resume=drawn
expect_says "resuming from drawn/step-"
expect 3 ./tiny --data synthetic --out elsewhere --resume=drawn
expect_says "drawn is a folder; --resume=drawn without --out"
expect 3 ./tiny --data synthetic --epochs 0.1 --out drawn
expect_says "drawn already holds a run; --resume --out=drawn continues it"
expect 0 ./tiny --data synthetic --out drawn --eval-only
expect_says "evaluating drawn/step-"
exit 0
