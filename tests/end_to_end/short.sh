#!/bin/sh
# Short last batches: only real samples interact, and a model that needs whole
# batches is refused before the first step.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

# losses FILE SPLIT: of the rows of a split, one a line.
losses() {
    grep "\"split\":\"$2\"" "$1" | sed 's/.*"loss":\([^,]*\),.*/\1/'
}

# expect_close FILE FILE: numbers that differ by less than 1e-5 of each, which
# a hundred roundings of f32 stay below.
expect_close() {
    paste "$1" "$2" | awk '
        { d = $1 / $2 - 1; bad += NF != 2 || d > 1e-5 || d < -1e-5 }
        END { exit bad || NR == 0 }' || {
        paste "$1" "$2" >&2
        fail "$1 and $2 are apart"
    }
}

# ---- samples that interact ----

cat >contrast.net <<'NET'
fn eye(n) = reshape(tensor(range(n)), [n, 1]) == tensor(range(n))
fn unit(z) = z / sqrt(sum(square(z), channels, keep) + 1e-6)
fn contrast(z, n) =
  cross_entropy(5 * z @ transpose(z, [1, 0]), where(eye(n), 1, 0))

model Contrast(x: f32[N, 8]) -> f32[N, 4] {
  h = x |> linear(16)
  relu(h - mean(h, batch, keep)) |> linear(4)
}

train Contrast {
  data      = npy("nowhere")
  batch     = 100
  epochs    = 3
  loss      = mean(contrast(unit(output), batch) + cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build contrast.net -o whole
expect 0 "$SINTER" build contrast.net --set batch=128 -o short
for name in whole short; do
    expect 0 ./$name --data synthetic:100 --out $name.run --log-every=1 \
        --metrics=$name.rows
    for split in step test; do
        losses $name.rows $split >$name.$split
    done
done
expect_close short.step whole.step
expect_close short.test whole.test

# Both leave a short batch: 60 and 40, and 60 and 40 of 160 samples.
expect 0 "$SINTER" build contrast.net --set batch=60 -o sixty
expect 0 ./sixty --data synthetic:100 --out sixty.run --metrics=sixty.rows
expect 0 ./sixty --data synthetic:100 --validation=40 --out held.run

# ---- models that need whole batches ----

cat >rolled.net <<'NET'
model Rolled(x: f32[N, 8]) -> f32[N, 4] {
  y = x |> linear(4)
  y - concat([slice(y, batch, 1), slice(y, batch, 0, 1)], batch)
}

train Rolled {
  data      = npy("nowhere")
  batch     = 64
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build rolled.net -o rolled
expect 0 ./rolled --data synthetic:128 --out rolled.run
expect 3 ./rolled --data synthetic:100 --out other.run
expect_says 'the last batch of the training samples has 36 of 64, but slice of slice_1, rolled.net:3, needs whole batches: compile with a batch that divides 100, or with drop_last'
expect 3 ./rolled --data synthetic:128 --validation=28 --out other.run
expect_says 'the training samples has 36 of 64'
expect 3 ./rolled --data synthetic:100 --eval-only --resume --out rolled.run
expect_says 'the last batch of the test samples has 36 of 64'
[ -z "$(newest other.run)" ] || fail 'a run that is refused left something'

sed 's/= 64/= 64, drop_last/' rolled.net >dropped.net
expect 0 "$SINTER" build dropped.net -o dropped
expect 3 ./dropped --data synthetic:100 --out other.run
expect_says 'the last batch of the test samples has 36 of 64, but slice of slice_1, dropped.net:3, needs whole batches: compile with a batch that divides 100$'
expect 0 ./dropped --data synthetic:128 --out dropped.run

# ---- statistics ----

cat >normed.net <<'NET'
model Normed(x: f32[N, 8]) -> f32[N, 4] {
  x |> linear(8) |> batch_norm |> linear(4)
}

train Normed {
  data      = npy("nowhere")
  batch     = 64
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build normed.net -o normed
expect 0 ./normed --data synthetic:100 --out normed.run
expect_says 'the last batch of an epoch has 36 of 64 samples; the statistics of batch_norm_1, normed.net:2, include the 28 that fill it up'
expect 0 ./normed --data synthetic:100 --eval-only --out normed.run
! grep -q statistics out err || fail 'an evaluation has no statistics'
expect 0 ./normed --data synthetic:128 --out full.run
! grep -q statistics out err || fail 'no batch is short'
exit 0
