#!/bin/sh
# --predict reads image files for a model of grey images, as Pillow's mode L,
# and writes PNG files: a map of classes, or values and probabilities as bytes.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, PIL' 2>/dev/null && python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
"$python" "$here/pictures.py" draw || fail "pictures"

# model NAME CHANNELS OUTPUT LOSS LABELS: a network of one filter for each pixel.
model() {
    cat >"$1.net" <<END
model Net(image: u8[N, 8, 8, $2]) -> f32[N, 8, 8, $3] {
  image |> normalize(mean=128, std=64) |> conv($3, 1)
}

train Net {
  data      = npy("$1"$5)
  input     = data.train
  batch     = 2
  steps     = 1
  loss      = $4
  optimizer = sgd(lr=0.1)
}
END
    expect 0 "$SINTER" build "$1.net" -o "$1"
    expect 0 "./$1" --data="$1.data" --out="$1.run" --quiet
    expect 0 "./$1" --predict files --weights="$1.run" -o "$1.png/"
    expect 0 "./$1" --predict files --weights="$1.run" -o "$1.npy"
    "$python" "$here/pictures.py" same "$1" || fail "pictures of $1"
}
model map 3 5 'mean(cross_entropy(output, label))' ''
model values 3 3 'mean(mse(output, label))' ', targets=true'
model labels 1 1 'mean(bce_with_logits(output, label))' ', targets=true'

# One channel of three: the array that Pillow makes gives the same.
expect 0 ./labels --predict files.npy --weights=labels.run -o array.npy
expect_equal labels.npy array.npy

cp files/b.png files/broken.png
head -c 60 files/b.png >files/broken.png
expect 3 ./map --predict files --weights=map.run -o map.broken/
expect_says 'files/broken.png'
[ "$(find map.broken -name '*.png' | wc -l)" -eq 3 ] || fail "three pictures"
expect 0 "$SINTER" build "$models/mlp.net" -o mlp
expect 0 ./mlp --data=synthetic:256 --steps=1 --out=mlp.run --quiet
expect 2 ./mlp --predict=synthetic:3 --weights=mlp.run -o mlp.png/
expect_says 'images are written of an output'
