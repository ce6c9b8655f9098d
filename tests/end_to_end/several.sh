#!/bin/sh
# A model of two inputs and two outputs: its arrays have the same samples, its
# metrics are those of numpy with a short last batch, and its predictions those
# of the evaluation.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

python=
for candidate in python3 /usr/bin/python3; do
    "$candidate" -c 'import numpy' 2>err && python=$candidate && break
done
[ -n "$python" ] || exit 77

says() {
    "$python" "$here/several.py" "$@" || fail "several.py $*"
}

says make data
says make turned turned

cat >several.net <<'END'
model Several(image: u8[N, 4, 4, 3], meta: f32[N, 6]) -> (class: f32[N, 5], box: f32[N, 2]) {
  seen = image |> normalize(mean=[128, 128, 128], std=[64, 64, 64]) |> flatten
  h = concat([seen, meta], channels) |> linear(16) |> relu
  [h |> linear(5), h |> linear(2)]
}

train Several {
  data      = npy("data", targets=["box"])
  batch     = 16
  epochs    = 6
  loss      = mean(cross_entropy(output.class, label.class)) + 0.5 * mean(l1(output.box, label.box))
  optimizer = adamw(lr=0.01)
  eval every 1 epoch { metrics = [accuracy(class), f1(class), mae(box), rmse(box)] }
  checkpoint best mae
  stop when accuracy >= 99.9%
}
END
expect 0 "$SINTER" data stats several.net
cp out stats
says stats stats
expect 0 "$SINTER" build several.net -o several
expect 0 ./several --out=run --metrics=rows.csv

# Labels of other samples could not be learned: one in five is right by chance.
accuracy=$(sed -n 's/.*"accuracy":\(0\.[0-9]\)[0-9]*.*/\1/p' run/metrics.jsonl |
    tail -n 1)
[ "${accuracy#0.}" -ge 7 ] || fail "the accuracy is $accuracy"

# Metrics of each output; predictions of a folder and of arrays.
expect 0 ./several --predict data --weights=run --logits -o of-data.npy
says metrics run/metrics.jsonl of-data
expect 0 ./several --predict data/test_image.npy data/test_meta.npy \
    --weights=run --logits -o arrays.npy
for output in class box; do
    says same "of-data_$output.npy" "arrays_$output.npy"
done
expect 0 ./several --predict data --weights=run --logits -o lines.jsonl
says lines lines.jsonl of-data

# A resumed run goes on in all arrays, and other data is other data.
expect 0 ./several --out=parts --steps=20
expect 0 ./several --out=parts --resume
expect_equal "$(newest run)" "$(newest parts)"
expect 3 ./several --out=parts --resume --data=turned --epochs=7
expect 0 ./several --out=held --validation=40 --epochs=1
expect_says "160 training and 40 validation samples"
expect 0 ./several --out=drawn --data=synthetic:64 --epochs=1

# The same numbers in tables beside image files train the same network.
if "$python" -c 'import PIL' 2>err; then
    says table table
    sed 's/npy("data"/image_table("table", size=4/' several.net >table.net
    expect 0 "$SINTER" build table.net -o table.trainer
    expect 0 ./several --out=npy --threads=1 --epochs=2
    expect 0 ./table.trainer --out=csv --threads=1 --epochs=2
    expect 0 ./several --predict data --weights=npy --threads=1 -o npy.npy
    expect 0 ./table.trainer --predict table --weights=csv --threads=1 -o csv.npy
    for output in class box; do
        says same "npy_$output.npy" "csv_$output.npy"
    done
    printf 'x' >"table/photos/test, 3.png"
    expect 3 ./table.trainer --out=broken
    expect_says "test, 3.png"
fi

# A library has an argument for each array, in C and in C++.
expect 0 "$SINTER" build several.net --library -o libseveral
expect_here() { grep -q "$1" libseveral.h || fail "no '$1' in the header"; }
expect_here "int several_predict(several \*m, const uint8_t \*input_image, "
expect_here "float \*output_class, float \*output_box);"
expect_here "const int32_t \*label_class, const float \*label_box, "
for language in c c++; do
    expect 0 "${CC:-cc}" -x "$language" -Wall -Werror -fsyntax-only libseveral.h
done
weights=$(newest run)
expect 0 ./several --predict data --weights="$weights" --threads=1 -o one.npy
PYTHONPATH="$SINTER_SOURCE/python" PYTHONDONTWRITEBYTECODE=1 \
    says library libseveral.so "$weights" one

# Exports have the names of inputs and outputs, where their readers are.
# exports READER OPTION FILE TEXT
exports() {
    for with in "${SINTER_PYTHON:-python3}" python3 /usr/bin/python3; do
        "$with" -c "import numpy, $1" 2>err || continue
        expect 0 "$SINTER" export several.net --weights="$weights" "$2" -o "$3"
        expect_says "$4"
        expect 0 "$with" "$here/several.py" "$1" "$3" one
        return
    done
}
exports onnx --onnx exported.onnx "inputs image, meta and outputs class, box"
exports torch --pytorch exported.py "an nn.Module"

# Each mistake has a sentence.
expect 3 ./several --predict data/test_image.npy --weights=run
expect_says "Several takes 2 inputs: predict for an .npy file of each"
expect 3 ./several --predict data/test_image.npy data/train_meta.npy \
    --weights=run
expect_says "train_meta.npy has 200 samples, and data/test_image.npy 53"
expect 2 ./several --predict data --weights=run -o pictures/
expect_says "images are written of a model with one output, and this one has 2"
rm data/test_meta.npy
expect 3 ./several --out=missing
expect_says "test_meta.npy"
