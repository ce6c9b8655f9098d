#!/bin/sh
# Images in files are decoded by as many threads as there are cores, as a GPU
# leaves them all; what is in memory by few.  How many changes no result.
. "$SINTER_SOURCE/tests/cuda/double.sh"
export SINTER_DOUBLE_THREADS=1

python=
for candidate in /usr/bin/python3 python3; do
    $candidate -c 'import PIL, numpy' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || exit 77
expect 0 "$python" "$SINTER_SOURCE/tests/pytorch/readers.py" make

cat >folder.net <<'NET'
model Folder(image: u8[N, 16, 16, 3]) -> f32[N, 5] {
  image |> normalize(mean=127, std=60) |> flatten |> linear(5)
}

train Folder {
  data      = image_folder("images", size=16)
  batch     = 5, drop_last
  epochs    = 4
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build folder.net -o trainer

# loads THREADS OPTION...: a run has so many threads that load.
loads() {
    threads=$1
    shift
    expect 0 ./trainer --out "out$#" "$@"
    expect_says "loading beside them: .* s of $threads thread"
}

loads 6 --device=cuda:0 --threads=6
loads 1 --device=host --threads=6
cp "$(newest out2)" one
loads 7 --device=host --threads=6 --loaders=7
expect_equal one "$(newest out3)"
loads 1 --device=cuda:0 --threads=6 --data=synthetic:40
expect 2 ./trainer --loaders=65
exit 0
