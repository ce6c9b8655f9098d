#!/bin/sh
# Metrics of classes, pixels, labels and values are those of numpy, with a short
# last batch; counts are f32 in a model of f16.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

python=
for candidate in python3 /usr/bin/python3; do
    "$candidate" -c 'import numpy' 2>err && python=$candidate && break
done
[ -n "$python" ] || exit 77

COUNTS="auc, precision, recall, f1, precision_micro, recall_micro, f1_micro, iou"

# model KIND INPUT OUTPUT BODY DATA LOSS METRICS BEST ARGUMENTS
model() {
    cat >"$1.net" <<END
model Net(image: f32[N, $2]) -> f32[N, $3] {
  image |> $4
}

train Net {
  data      = npy("$1"$5)
  batch     = 16
  epochs    = 2
  loss      = mean($6(output, label$9))
  optimizer = adamw(lr=0.02)
  eval every 1 epoch { metrics = [$7] }
  checkpoint best $8
}
END
    expect 0 "$SINTER" build "$1.net" -o "$1.trainer"
    expect 0 "./$1.trainer" --out="run-$1" --metrics="$1.csv"
    expect 0 "./$1.trainer" --predict="$1/test_x.npy" --weights="run-$1" \
        --logits -o "$1.npy"
    expect 0 "$python" "$here/metrics.py" check "run-$1" "$1" "$1.npy"
    head -n 1 "$1.csv" >names
    grep -q ",$8," names || fail "no column $8: $(cat names)"
}

expect 0 "$python" "$here/metrics.py" make
model classes 8 5 "linear(5)" "" cross_entropy "$COUNTS, confusion" f1 ""
model ignored 8 5 "linear(5)" "" cross_entropy "$COUNTS, confusion" accuracy \
    ", weights=[1, 2, 3, 4, 5], ignore=3"
model sampled 8 5 "linear(5)" "" cross_entropy "$COUNTS, confusion" accuracy \
    ", weights=label.weight"
model pixels "6, 6, 2" "6, 6, 3" "conv(3, 3)" "" cross_entropy \
    "$COUNTS, confusion" iou ""
model labels 8 4 "linear(4)" ", targets" bce_with_logits "$COUNTS" auc ""
model values 8 3 "linear(3)" ", targets" mse "mae, rmse, r2" r2 ""
grep -q ' loss [0-9.]*, MAE ' run-values/log.txt ||
    fail "the line of an evaluation: $(cat run-values/log.txt)"

# Labels of a single logit are 0 and 1; the files decide.
sed 's/f32\[N, 5\]/f32[N, 1]/; s/linear(5)/linear(1)/
    s/cross_entropy/bce_with_logits/; s/metrics = .*\]/metrics = [loss]/
    s/best f1/best loss/' classes.net >single.net
expect 0 "$SINTER" build single.net -o single
expect 3 ./single --out=run-single
expect_says "has label [23], but the model has 2 classes"

# Other trainers take its checkpoints.
sed '/checkpoint best/d; s/f1, //' classes.net >other.net
expect 0 "$SINTER" build other.net --set batch=1 -o other
expect 0 ./other --predict=classes/test_x.npy --weights=run-classes -o other.npy
expect 0 ./other --init=run-classes --steps=1 --out=run-other
expect 0 ./classes.trainer --init=run-other --steps=1 --out=run-again

expect 0 "$SINTER" show plan --graph=eval classes.net --set precision=f16
expect_says "matmul .* : f32\[5,5\]"

# The report draws the matrix; a resumed run writes the same rows.
expect 0 "$SINTER" report classes.net --metrics=run-classes -o page.html
grep -A7 '<table class="confusion">' page.html | grep -c '<tr>' >lines
[ "$(cat lines)" -eq 6 ] || fail "$(cat lines) rows are drawn"
expect 0 ./classes.trainer --out=parts --steps=20
expect 0 ./classes.trainer --out=parts --resume
for run in run-classes parts; do
    grep confusion "$run/metrics.jsonl" >"$run.rows"
done
expect_equal run-classes.rows parts.rows
