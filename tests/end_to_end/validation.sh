#!/bin/sh
# --validation: the holdout is evaluated and never trained on, by runs of any
# seed and by a resumed one; and nothing reads the test set.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

# values FILE SPLIT: losses and accuracies of the rows of a kind.
values() {
    sed -n "s/.*\"split\":\"$2\".*\"loss\":\([^,]*\),\"accuracy\":\([^,]*\).*/\1 \2/p" "$1"
}

# compares NAME A B: runs of both train to the same numbers.
same_training() {
    values "$1.rows" train >trained
    [ -s trained ] || fail "$1: there is no row of training"
    values "$2.rows" train | cmp -s - trained || fail "$2 trains as $1 does not"
}

same_evaluation() {
    values "$1.rows" test >evaluated
    grep -q '"split":"test".*"on":"validation"' "$1.rows" ||
        fail "$1: its rows do not say what they are of"
    values "$2.rows" test | cmp -s - evaluated
}

# An eighth of 192 samples: the last of each eight.
idx_data data 192
cp -r data other
cp -r data untested
i=7
while [ $i -lt 192 ]; do
    octet 3 | dd of=other/train-labels-idx1-ubyte bs=1 seek=$((8 + i)) \
        conv=notrunc 2>/dev/null
    i=$((i + 8))
done
head -c 192 /dev/zero | tr '\000' '\001' | dd of=untested/t10k-labels-idx1-ubyte \
    bs=1 seek=8 conv=notrunc 2>/dev/null
cp -r data touched
octet 3 | dd of=touched/train-labels-idx1-ubyte bs=1 seek=$((8 + 6)) \
    conv=notrunc 2>/dev/null

expect 0 "$SINTER" build "$here/tiny.net" --set epochs=4 -o tiny
for name in data other untested touched; do
    expect 0 ./tiny --data $name --out $name.run --metrics=$name.rows \
        --validation=24 --seed=3
    expect_says "168 training and 24 validation samples"
    expect_says "^validation accuracy .*, 24 samples$"
done
same_training data other
same_training data untested
same_evaluation data untested || fail "the test set is looked at"
same_evaluation data other && fail "nothing is held out"
values touched.rows train | cmp -s - trained && fail "nothing is trained on"

# Where there is no test set at all, none is asked for.
cp -r data alone
rm alone/t10k*
expect 0 ./tiny --data alone --out alone.run --metrics=alone.rows \
    --validation=24 --seed=3
same_training data alone
same_evaluation data alone || fail "without a test set others are held out"
expect 3 ./tiny --data alone --out none.run
expect_says "no file t10k-images-idx3-ubyte in alone"

# Another seed holds out the same, and so does a share.
expect 0 ./tiny --data data --out again --metrics=data4.rows --seed=4 \
    --validation=12.5%
expect 0 ./tiny --data other --out again2 --metrics=other4.rows --seed=4 \
    --validation=24
same_training data4 other4

# A resumed run has the same holdout, or is refused.
expect 0 ./tiny --data data --out parts --validation=24 --seed=3 --steps=9
expect 3 ./tiny --data data --out parts --resume
expect_says "with 24 held-out samples: continue it with --validation=24"
expect 3 ./tiny --data data --out parts --resume --validation=16
expect_says "with 24 held-out samples: continue it with --validation=24"
expect 0 ./tiny --data data --out parts --resume --validation=24
expect_equal "$(newest data.run)" "$(newest parts)"
expect 0 ./tiny --data data --out data.run --eval-only
expect_says "^test accuracy .*, 192 samples$"
expect 0 ./tiny --data data --out none
expect 3 ./tiny --data data --out none --resume --validation=24
expect_says "without held-out samples: continue it without --validation"


# Nor are trained samples evaluated as a holdout.
expect 3 ./tiny --data data --out none --eval-only --validation=24
expect_says "without held-out samples"
expect 3 ./tiny --data data --out data.run --eval-only --validation=16
expect_says "with 24 held-out samples"
expect 0 ./tiny --data data --out data.run --eval-only --validation=24
expect_says "^validation accuracy .*, 24 samples$"
expect 0 ./tiny --data untested --out none --eval-only --validation=24

expect 2 ./tiny --data data --validation=192
expect_says "holds out 192 of 192 training samples"
expect 2 ./tiny --data data --validation=0.1%
expect_says "holds out 0 of 192"
for wrong in 0 -3 1.5 x 100% 10%% 10x 0x4; do
    expect 2 ./tiny --data data --validation=$wrong
    expect_says "expected a number of samples from 1, or a share"
done

# Filters that whiten start from the first samples that are trained on: 24 of
# them are 27 of the file, of which 7, 15 and 23 are held out.
cat >white.net <<'NET'
model White(image: u8[N, 12, 12, 1]) -> f32[N, 10] {
  image
    |> conv(4, 2, pad=0, init=whitening(images=24), bias=false) as whiten
    |> relu |> global_max_pool
    |> linear(10)
}

train White {
  data      = idx("data")
  batch     = 16
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
  freeze "whiten.weight"
}
NET
expect 0 "$SINTER" build white.net -o white
expect 0 ./white --data data --out white.run --init-only --validation=24
for sample in 23 26 27; do
    rm -rf painted painted.run && cp -r data painted
    head -c 144 /dev/zero | dd of=painted/train-images-idx3-ubyte bs=1 \
        seek=$((16 + 144 * sample)) conv=notrunc 2>/dev/null
    expect 0 ./white --data painted --out painted.run --init-only \
        --validation=24
    tensor "$(newest white.run)" whiten.weight >before
    tensor "$(newest painted.run)" whiten.weight >after
    if [ $sample -eq 26 ]; then
        cmp -s before after && fail "the last of the first 24 is left out"
    else
        expect_equal before after
    fi
done

# The last tokens of a text are held out.
cat >tokens.net <<'NET'
model Tokens(x: i32[N, 8]) -> f32[N, 8, 256] {
  x |> embedding(256, 8) |> linear(256)
}

train Tokens {
  data      = tokens("text", length=8, vocabulary=256)
  batch     = 8
  epochs    = 3
  loss      = mean(cross_entropy(output, label))
  optimizer = adam(lr=1e-2)
}
NET
expect 0 "$SINTER" build tokens.net -o tokens
bytes 400 5 >text
expect 0 ./tokens --out a --metrics=text.rows --validation=10
head -c 281 text >last # samples are 44 of the first 360
bytes 119 6 >>last
expect 0 ./tokens --data last --out b --metrics=last.rows --validation=10
same_training text last
same_evaluation text last && fail "the last tokens are not held out"
mkdir parts.text
cp text parts.text/train.bin
expect 3 ./tokens --data parts.text --out c --quiet
expect_says "cannot open parts.text/val.bin"
expect 0 ./tokens --data parts.text --out c --validation=10
expect_says "39 training and 10 validation samples"

# A folder's images are sorted by class; each class gives its share.  No
# held-out image replaces a broken file.
cat >folder.net <<'NET'
model Folder(image: u8[N, 8, 8, 3]) -> f32[N, 2] {
  image |> normalize(mean=128, std=64) |> flatten |> linear(2)
}

train Folder {
  data      = image_folder("images", size=8)
  batch     = 4
  epochs    = 3
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=1e-3)
}
NET
expect 0 "$SINTER" build folder.net -o folder
command -v python3 >/dev/null || exit 77
python3 - <<'END' || fail "there are no images"
import os, random, struct, zlib

def chunk(kind, data):
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

def image(path, seed):
    draw = random.Random(seed)
    rows = b"".join(b"\0" + bytes(draw.randrange(256) for _ in range(24))
                    for _ in range(8))
    open(path, "wb").write(
        b"\x89PNG\r\n\x1a\n" +
        chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) +
        chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

# Each fourth of 16 images is held out: 3 and 7 of both classes.
for folder, other in ("images", 0), ("replaced", 1000):
    for k, name in enumerate(("cat", "dog")):
        for split in "train", "test":
            os.makedirs(f"{folder}/{split}/{name}", exist_ok=True)
            for i in range(8):
                held = split == "train" and i % 4 == 3
                image(f"{folder}/{split}/{name}/{i}.png",
                      16 * k + i + (other if held else 0))
        open(f"{folder}/train/{name}/2.png", "wb").write(b"no image")
END
for name in images replaced; do
    expect 0 ./folder --data $name --out $name.run --metrics=$name.rows \
        --validation=4 --bad-samples=skip:2
    expect_says "skipped and replaced by $name/train/dog/4.png"
done
same_training images replaced
same_evaluation images replaced && fail "nothing is held out of a folder"
rm -r images/test
expect 3 ./folder --data images --bad-samples=skip:2
expect_says "images has no folder test or val"
expect 0 ./folder --data images --out alone.folder --metrics=folder.rows \
    --validation=4 --bad-samples=skip:2
same_training images folder
grep -q "warning: .* classes" err && fail "all classes are there"

# A model of more classes than folders, and a class without a test.
mkdir -p images/test
cp -r images/train/cat images/test
rm images/test/cat/2.png
sed 's/N, 2\]/N, 3]/; s/linear(2)/linear(3)/' folder.net >wide.net
expect 0 "$SINTER" build wide.net -o wide
expect 0 ./wide --data images --bad-samples=skip:2
expect_says "warning: the data have 2 classes, but the model 3: no sample trains"
expect_says "warning: 1 of 2 classes have no test sample"
exit 0
