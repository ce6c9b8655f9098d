#!/bin/sh
# A run starts with the weights of a file: a checkpoint of another recipe, or
# PyTorch's.  Mismatches are reported, and no tensor is skipped unless excluded.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

idx_data data 192

# row FILE: loss and accuracy of the last evaluation.
row() {
    grep '"test"' "$1" | tail -n 1 |
        sed 's/.*\("loss":.*"accuracy":[^,]*\).*/\1/'
}

# tensors FILE: the bytes behind the header.
tensors() {
    length=$(od -An -tu4 -N4 "$1")
    tail -c +$((length + 9)) "$1"
}

# same_tensors A B
same_tensors() {
    tensors "$1" >first.bytes
    tensors "$2" >second.bytes
    cmp -s first.bytes second.bytes
}

expect 0 "$SINTER" build "$here/tiny.net" -o tiny
expect 0 ./tiny --data data --out a --metrics a.rows
weights=$(newest a)

# Recipes differ in the states beside the weights, and in averaging.
expect 0 "$SINTER" build "$here/tiny.net" \
    --set "optimizer=adamw(lr=lr/50)" --set "average=ema(0.5)" -o other
for average in "ema(0.5)" "ema(0.5, start=2 step)" "ema(0.5, every=2 step)" \
    "lookahead(0.5)"; do
    expect 0 "$SINTER" build "$here/tiny.net" --set "average=$average" -o ema
    expect 0 ./ema --data data --eval-only "--init=$weights" --metrics e.rows
    [ "$(row a.rows)" = "$(row e.rows)" ] || fail "$average: another evaluation"
done
expect 0 ./other --data data --out b --init "$weights" --metrics b.rows
expect_says "^starting with $weights: 12 of 12 tensors of Tiny$"
expect 0 ./other --data data --eval-only --init "$weights" --metrics b0.rows
[ "$(row a.rows)" = "$(row b0.rows)" ] || fail "the first evaluation is another"
[ "$(row a.rows)" = "$(row b.rows)" ] && fail "nothing is learnt"

# Averages are loaded, as evaluated by their run, unless excluded.
expect 0 ./tiny --data data --eval-only --init "$(newest b)" --metrics b1.rows
expect_says "^12 of them are weight averages from the file"
[ "$(row b.rows)" = "$(row b1.rows)" ] || fail "not what was evaluated there"
expect 0 ./tiny --data data --eval-only --init "$(newest b)" --metrics b2.rows \
    --init-except '*.average'
expect_says "^in the file, not loaded: first.conv_1.weight.average, .* and 9 more$"
[ "$(row b.rows)" = "$(row b2.rows)" ] && fail "the averages are the weights"
# Up to the step at which averaging begins they are the weights.
for average in "ema(0.5, start=5 step)" "ema(0.5, start=5 step, every=2 step)" \
    "lookahead(0.5, start=5 step, every=2 step)"; do
    for how in "--steps 4" --init-only; do
        expect 0 "$SINTER" build "$here/tiny.net" --set "average=$average" -o ema
        # shellcheck disable=SC2086 # an option and its value
        expect 0 ./ema --data data --out early $how
        expect 0 ./tiny --data data --out early1 --init-only \
            --init "$(newest early)"
        expect 0 ./tiny --data data --out early2 --init-only \
            --init "$(newest early)" --init-except '*.average'
        same_tensors "$(newest early1)" "$(newest early2)" ||
            fail "$average, $how: averages of nothing"
        rm -r early early1 early2
    done
done

# A resumed run takes its weights from its checkpoints.
expect 0 ./other --data data --out c --init "$weights" --steps 4
mv a away
expect 0 ./other --data data --out c --resume
expect_equal "$(newest b)" "$(newest c)"
mv away a
expect 2 ./tiny --data data --out c --init "$weights" --resume
expect_says "exclude each other"

# The initial weights are the file's, to the bit.
expect 0 ./tiny --data data --out d --init "$weights" --init-only
expect 0 ./tiny --data data --out e --init "$(newest d)" --init-only
expect_equal "$(newest d)" "$(newest e)"
rm -r e
expect 0 ./tiny --data data --out e --init-only
same_tensors "$(newest d)" "$(newest e)" && fail "nothing is loaded"

# A head for other classes is named; all else is loaded.
sed 's/linear(10)/linear(9)/; s/N, 10/N, 9/' "$here/tiny.net" >nine.net
expect 0 "$SINTER" build nine.net -o nine
expect 3 ./nine --data data --out n --init "$weights"
expect_says "linear_1.weight is \[10,16\] not \[9,16\], "
expect_says "linear_1.bias is \[10\] not \[9\]; --init-except=GLOB"
[ -z "$(newest n)" ] || fail "a run that is refused leaves a checkpoint"
expect 0 ./nine --data data --out n --init "$weights" --init-except 'linear_*'
expect_says "10 of 12 tensors of Tiny$"
expect_says "^initialized, not loaded: linear_1.weight, linear_1.bias$"
expect 3 ./tiny --data data --out m --init "$weights" --init-except 'l*,f*,s*'
expect_says "leaves nothing to load"

# Statistics of data are loaded like the rest, unless excluded.
cat >white.net <<'NET'
model White(image: u8[N, 12, 12, 1]) -> f32[N, 10] {
  image
    |> normalize(mean=[128], std=[64])
    |> conv(8, 2, pad=0, init=whitening(images=64), bias=false) as whiten
    |> relu |> global_max_pool
    |> linear(10)
}

train White {
  data      = idx("data")
  batch     = 64, drop_last
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
  freeze "whiten.weight"
}
NET
cp -r data others
sed -i 's/a/b/g' others/train-images-idx3-ubyte
expect 0 "$SINTER" build white.net -o white
expect 0 ./white --data data --out w1 --init-only
expect 0 ./white --data others --out w2 --init-only
expect 0 ./white --data others --out w3 --init-only --init "$(newest w1)"
expect 0 ./white --data others --out w4 --init-only --init "$(newest w1)" \
    --init-except whiten.weight
same_tensors "$(newest w1)" "$(newest w2)" && fail "data changes nothing"
same_tensors "$(newest w1)" "$(newest w3)" || fail "filters are made anew"
same_tensors "$(newest w2)" "$(newest w4)" || fail "filters are not made anew"

# Frozen parameters with random values are those of no other run.
expect 0 ./white --data data --out w5 --quiet
[ -s err ] && fail "a warning of filters of the data: $(cat err)"
sed '/freeze/a\  freeze "*.bias"' white.net |
    sed 's/whitening(images=64)/normal/' >frozen.net
expect 0 "$SINTER" build frozen.net -o frozen
expect 0 ./frozen --data data --out f1 --quiet
expect_says "^warning: whiten.weight and 1 more parameter are frozen with random"
expect 0 ./frozen --data data --out f2 --quiet --init f1
[ -s err ] && fail "a warning with --init: $(cat err)"

# A run that diverges is replayed from its initial weights.
expect 0 "$SINTER" build "$here/micro.net" -o micro
expect 0 ./micro --data synthetic:64 --out m
expect 0 "$SINTER" build "$here/micro.net" --set "optimizer=sgd(lr=1e30)" \
    -o steep
expect 6 ./steep --data synthetic:64 --out s --init "$(newest m)"
expect_says "replaying from step 0 to find the first operation"
expect_says "is the first"

# PyTorch's tensors, transposed as in docs/trainer.md; f16 and f32 in one file.
golden=$SINTER_SOURCE/tests/golden/weights
read -r samples loss right <"$golden/turned.txt"
expect 0 "$SINTER" build "$golden/turned.net" -o turned
expect 0 ./turned --device=host --data "synthetic:$samples" --eval-only \
    --init "$golden/turned.safetensors" --metrics t.rows
row t.rows | tr -d '":a-z' | awk -F , -v loss="$loss" -v right="$right" '{
    d = $1 / loss - 1
    exit !(d < 1e-5 && d > -1e-5 && $2 - right < 1e-6 && right - $2 < 1e-6)
}' || fail "$(row t.rows); in PyTorch $loss, $right"

# A batch_norm that is frozen trains by the statistics of the file, as
# PyTorch's does in eval(), and leaves them.
sed -n 2p "$golden/turned.txt" >tuned
read -r batch steps rate <tuned
expect 0 "$SINTER" build "$golden/turned.net" --set frozen=true \
    --set "batch=$batch" --set "steps=$steps" --set "optimizer.lr=$rate" -o tuned
expect 0 ./tuned --device=host --data "synthetic:$batch" --out tuned.out \
    --init "$golden/turned.safetensors" --log-every=1 --metrics tuned.rows
grep '"split":"step"' tuned.rows | sed 's/.*"loss":\([^,]*\),.*/\1/' >losses
tail -n "+3" "$golden/turned.txt" | paste losses - | awk -v steps="$steps" '{
    d = $1 / $2 - 1
    bad = bad || NF != 2 || d > 1e-4 || d < -1e-4
    if (NR == 1) first = $1
}
END { exit bad || NR != steps || !($1 < 0.9 * first) }' ||
    fail "$(tail -n "+3" "$golden/turned.txt" | paste losses -)"
expect 0 ./tuned --device=host --data "synthetic:$batch" --out tuned0.out \
    --init "$golden/turned.safetensors" --init-only
for name in running_mean running_var; do
    tensor "$(newest tuned.out)" "stem.batch_norm_1.$name" >after
    tensor "$(newest tuned0.out)" "stem.batch_norm_1.$name" >before
    [ -s before ] && cmp -s before after || fail "$name moves"
done
exit 0
