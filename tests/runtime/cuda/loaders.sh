#!/bin/sh
# Images in files are decoded by a thread for each core, since a GPU leaves all
# cores free; images in memory by few threads.  The number of threads changes no
# result.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
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
    rm -rf "out$#"
    expect 0 ./trainer --out "out$#" --time "$@"
    expect_says "loading data: .* s in $threads thread"
}

loads 6 --device=cuda:0 --threads=6
loads 1 --device=host --threads=6
cp "$(newest out2)" one
loads 7 --device=host --threads=6 --loaders=7
expect_equal one "$(newest out3)"
loads 1 --device=cuda:0 --threads=6 --data=synthetic:40
expect 2 ./trainer --loaders=65

# An option skips files that cannot be decoded, in any thread and at any time:
# training and evaluation equal those of a folder that has the next file of the
# class in that place.
for split in train test; do
    cp images/$split/same-png/same.png images/$split/same-png/good.png
    cp images/$split/wide-png/wide.png images/$split/same-png/later.png
done
cp -r images whole
mv images bad
for split in train test; do
    cp whole/$split/same-png/later.png whole/$split/same-png/good.png
    head -c 60 bad/$split/same-jpg/same.jpg >bad/$split/same-png/good.png
done
for device in host cuda:0; do
    expect 0 ./trainer --device=$device --data=whole --out=whole.$device
    expect 3 ./trainer --device=$device --data=bad --out=bad.$device
    expect_says "^error: cannot decode bad/train/same-png/good.png: "
    rm -r bad.$device
    expect 0 ./trainer --device=$device --data=bad --out=bad.$device --bad-samples=skip:1 \
        --loaders=3 --steps=3
    mv bad images # where a folder is makes no difference
    expect 0 ./trainer --device=$device --out=bad.$device --bad-samples=skip:1 \
        --resume
    mv images bad
    expect_says "^warning: cannot decode images/test/same-png/good.png: .*: skipped and replaced by images/test/same-png/later.png (1 of at most 1)"
    [ "$(grep -c '^warning' err)" -eq 2 ] || fail "not each is named once"
    expect_equal "$(newest whole.$device)" "$(newest bad.$device)"
done
# On a terminal it is not behind the progress that is drawn there.
expect 0 "$python" -c 'import pty, sys; pty.spawn(sys.argv[1:])' env TERM=xterm NO_COLOR=1 \
    ./trainer --device=host --data=bad --out=bad.screen --bad-samples=skip:1
expect_says "warning: cannot decode bad"
tr '\r' '\n' <out | grep 'warning: ' | grep -v "^$(printf '\033')\[Kwarning: " &&
    fail "a warning is no line of its own"
expect 3 ./trainer --data=bad --load-only
expect 0 ./trainer --data=bad --load-only --bad-samples=skip:9
expect 2 ./trainer --device=host --bad-samples=ignore
exit 0
