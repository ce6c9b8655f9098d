#!/bin/sh
# The same metric of several outputs: those of numpy, with a short last batch;
# checkpoints, the end of a run and a plateau read that of one output.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

python=
for candidate in python3 /usr/bin/python3; do
    "$candidate" -c 'import numpy' 2>err && python=$candidate && break
done
[ -n "$python" ] || exit 77

says() {
    PYTHONDONTWRITEBYTECODE=1 "$python" "$here/outputs.py" "$@" ||
        fail "outputs.py $*"
}

says make
cat >outputs.net <<'END'
model Outputs(x: f32[N, 8])
  -> (class: f32[N, 5], kind: f32[N, 3], tags: f32[N, 4], box: f32[N, 2]) {
  [x |> linear(5), x |> linear(3), x |> linear(4), x |> linear(2)]
}

train Outputs {
  data      = npy("data", targets=["tags", "box"])
  batch     = 16
  epochs    = 6
  loss      = mean(cross_entropy(output.class, label.class))
    + mean(cross_entropy(output.kind, label.kind))
    + mean(bce_with_logits(output.tags, label.tags))
    + mean(mse(output.box, label.box))
  optimizer = adamw(lr=0.02)
  eval every 1 epoch {
    metrics = [accuracy(class), accuracy(kind), accuracy(tags), f1(kind), f1(tags),
      precision(class), auc(tags), auc(kind), confusion(class), confusion(kind),
      mae(box), r2(box)]
  }
  checkpoint best accuracy(kind)
}
END
expect 0 "$SINTER" build outputs.net -o outputs
expect 0 ./outputs --out=run --metrics=rows.csv --tensorboard=events
expect_says "kind accuracy [0-9.]* %"
expect 0 ./outputs --predict data --weights=run --logits -o logits.npy
says check run logits
says column rows.csv kind.accuracy run
grep -qa 'kind\.accuracy' events/test/* || fail "no kind.accuracy in the events"
grep -q '"kind.accuracy"' run/settings.json || fail "settings lack kind.accuracy"
ls run/best-*.safetensors >best || fail "no best checkpoint"
expect 0 "$SINTER" report outputs.net --metrics=run -o page.html
grep -c '<table class="confusion">' page.html >tables
[ "$(cat tables)" -eq 2 ] || fail "$(cat tables) confusion matrices are drawn"
expect 0 "$SINTER" plot run kind.accuracy -o curve.svg
grep -q 'kind\.accuracy' curve.svg || fail "no curve of kind.accuracy"

# A resumed run writes the same rows and weights.
expect 0 ./outputs --out=parts --steps=30
expect 0 ./outputs --out=parts --resume
expect_equal "$(newest run)" "$(newest parts)"

# The end of a run and a plateau read one output, and not the first.
sed 's/checkpoint best.*/stop when accuracy(kind) >= 50%/
    s/lr=0.02/lr=plateau(0.02, factor=0.5, patience=1 step, metric=mae(box))/' \
    outputs.net >stop.net
expect 0 "$SINTER" build stop.net --set epochs=40 -o stop
expect 0 ./stop --out=stopped
expect_says "kind.accuracy"
value=$(sed -n 's/.*"kind.accuracy":\([0-9.]*\).*"stops":true.*/\1/p' \
    stopped/metrics.jsonl)
[ "${value#0.}" != "$value" ] && [ "${value#0.4}" = "$value" ] ||
    fail "it stopped at $value"

# Each mean divides by its own weights, and the accuracy leaves out what the loss
# of its output ignores.
cat >weighted.net <<'END'
model Weighted(x: f32[N, 8])
  -> (part: f32[N, 5], kind: f32[N, 3], tags: f32[N, 4], box: f32[N, 2]) {
  [x |> linear(5), x |> linear(3), x |> linear(4), x |> linear(2)]
}

train Weighted {
  data      = npy("data", targets=["tags", "box"])
  batch     = 16
  epochs    = 4
  loss      = mean(cross_entropy(output.part, label.part, weights=[1, 2, 3, 4, 5], ignore=255))
    + mean(cross_entropy(output.kind, label.kind, weights=label.trust))
    + mean(bce_with_logits(output.tags, label.tags, weights=label.trust))
    + 0.5 * mean(mse(output.box, label.box, weights=label.trust))
    + mean(l1(output.box, label.box))
  optimizer = adamw(lr=0.02)
  eval every 1 epoch { metrics = [loss, perplexity, accuracy(part), accuracy(kind)] }
}
END
expect 0 "$SINTER" build weighted.net -o weighted
expect 0 ./weighted --out=weighted-run
expect 0 ./weighted --predict data --weights=weighted-run --logits -o weighted.npy
says weighted weighted-run weighted
sed 's/eval every 1 epoch/eval every 1 epoch on data.train/' weighted.net >one.net
expect 0 "$SINTER" build one.net --set batch=200 --set optimizer.lr=0 \
    --set optimizer.weight_decay=0 -o one
expect 0 ./one --out=one-run --epochs=1
says trained one-run

# Weights are from 0, and inputs finite.
says spoil trust -1
expect 3 ./weighted --out=spoilt
expect_says "train_trust.npy: sample 100 has the weight -1, and weights are from 0"
says spoil trust 1
says spoil x nan
expect 3 ./weighted --out=spoilt
expect_says "train_x.npy: sample 100 has nan, which is not finite"

# Views of an evaluation are averaged for each output, undone in that of pixels.
cat >views.net <<'END'
model Views(x: f32[N, 6, 6, 2]) -> (mask: f32[N, 6, 6, 3], kind: f32[N, 4]) {
  [x |> conv(3, 3), x |> flatten |> linear(4)]
}

train Views {
  data      = npy("pixels")
  batch     = 8
  epochs    = 2
  loss      = mean(cross_entropy(output.mask, label.mask))
    + mean(cross_entropy(output.kind, label.kind))
  optimizer = adamw(lr=0.02)
  eval every 1 epoch { metrics = [loss, accuracy(mask), accuracy(kind)]; views = [0.75: identity, 0.25: flip_lr] }
}
END
says pixels
expect 0 "$SINTER" build views.net -o views
sed 's/; views = .*/ }/' views.net >plain.net
expect 0 "$SINTER" build plain.net -o plain
expect 0 ./views --out=views-run
for images in x flipped; do
    expect 0 ./plain --predict "pixels/test_$images.npy" --weights=views-run \
        --logits -o "$images.npy"
done
expect 0 ./views --predict pixels/test_x.npy --weights=views-run --logits \
    -o seen.npy
says views views-run

# Padded pixels of a label do not count in its mean, and leave other means
# alone: the network of the mask learns as without the second output.
sed 's/eval every.*//; s/epochs    = 2/epochs    = 3/
    s/batch  .*/batch     = 8, drop_last/
    s/  data  .*/&\n  input     = data.train |> random_crop(6, pad=2)/
    1i import "std/vision.net" { random_crop }' views.net >padded.net
sed 's/(mask: f32\(.*\), kind.*{/f32\1 {/; s/\[x |> conv(3, 3), .*/x |> conv(3, 3)/
    s/output.mask, label.mask/output, label/; /+ mean/d; s/"pixels"/"alone"/' \
    padded.net >alone.net
# A mean of both labels leaves out the pixels of one of them.
sed -i 's/label.mask))/label.mask) + reshape(0 * cross_entropy(output.kind, label.kind), [-1, 1, 1]))/' \
    padded.net
for name in padded alone; do
    expect 0 "$SINTER" build $name.net -o $name-trainer
    expect 0 ./$name-trainer --out=$name-run
    expect 0 ./$name-trainer --predict pixels/test_x.npy --weights=$name-run --logits \
        -o $name-mask.npy
done
cmp padded-mask_mask.npy alone-mask.npy || fail "the masks differ"
