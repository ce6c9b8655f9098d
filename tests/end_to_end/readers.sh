#!/bin/sh
# A batch of images and of tokens reaches a step as PIL and NumPy read it: the
# gradients of these models are their batches.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

python=
for candidate in /usr/bin/python3 python3; do
    $candidate -c 'import PIL, numpy' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || exit 77
readers=$SINTER_SOURCE/tests/pytorch/readers.py
expect 0 "$python" "$readers" make

cat >images.net <<'NET'
model Images(image: u8[N, 16, 16, 3]) -> f32[N, 5] {
  image |> normalize(mean=0, std=1) |> flatten |> linear(5, bias=false)
}

train Images {
  data      = image_folder("images", size=16)
  batch     = 5, drop_last
  steps     = 1
  loss      = sum(output * one_hot(label, 5))
  optimizer = sgd(lr=0.1, momentum=0.9)
}
NET
cat >tokens.net <<'NET'
model Tokens(x: i32[N, 7]) -> f32[N, 7, 12] {
  x |> embedding(12, 12)
}

train Tokens {
  data      = tokens("text", length=7, vocabulary=12)
  batch     = 51, drop_last
  steps     = 1
  loss      = sum(output * one_hot(label, 12))
  optimizer = sgd(lr=0.1, momentum=0.9)
}
NET
read_batch() {
    model=$1
    shift
    expect 0 "$SINTER" build $model.net -o trainer
    expect 0 ./trainer --device=host --quiet --out $model.run
    expect 0 "$python" "$readers" ${model%.*} "$(newest $model.run)" "$@"
}
read_batch tokens
read_batch images 16 16
for size in '10 24' '24 10'; do
    set -- $size
    sed "s/16, 16/$1, $2/; s/size=16/size=[$1, $2]/" images.net >images.$1.net
    read_batch images.$1 "$1" "$2"
done
