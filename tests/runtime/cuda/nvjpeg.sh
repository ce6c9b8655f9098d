#!/bin/sh
# --decode=nvjpeg on the stand-in, whose nvJPEG decodes by libjpeg: the weights
# of --decode=cpu to the bit, as no file here is reduced while it is decoded, and
# for each kind of file the decoder that it should have.
. "$SINTER_SOURCE/tests/runtime/cuda/double.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"
export SINTER_DOUBLE_THREADS=1

python=
for candidate in /usr/bin/python3 python3; do
    $candidate -c 'import PIL, numpy' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || exit 77
"$python" - <<'PYTHON' || fail "data"
import os
import numpy as np
from PIL import Image

random = np.random.default_rng(0)

def image(h, w, mode="RGB"):
    small = Image.fromarray(
        random.integers(0, 256, (h // 4, w // 4, 3)).astype(np.uint8))
    return small.resize((w, h), Image.BICUBIC).convert(mode)

exif = Image.Exif()
exif[0x112] = 6
for part in "train", "test":
    for name in "plain", "other":
        os.makedirs(f"images/{part}/{name}")
    for k in range(6):
        image(20 + k, 30).save(f"images/{part}/plain/{k}.jpg", quality=90,
                               subsampling=k % 3)
    image(24, 30).save(f"images/{part}/plain/turned.jpg", exif=exif)
    other = f"images/{part}/other/"
    image(24, 30).save(other + "progressive.jpg", progressive=True)
    image(24, 30, "L").save(other + "grey.jpg")
    image(24, 30, "CMYK").save(other + "cmyk.jpg")
    image(24, 30).save(other + "lossless.png")
    image(24, 30).save(other + "small.webp")
PYTHON
plain=7 # of each part

cat >folder.net <<'NET'
model Folder(image: u8[N, 16, 16, 3]) -> f32[N, 2] {
  image |> normalize(mean=127, std=60) |> flatten |> linear(2)
}

train Folder {
  data      = image_folder("images", size=16)
  batch     = 4, drop_last
  epochs    = 2
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
expect 0 "$SINTER" build folder.net -o trainer

# trains OUT OPTION...: a run on the stand-in; `log` has its calls.
trains() {
    rm -rf "$1" log
    out_folder=$1
    shift
    expect 0 env SINTER_DOUBLE_LOG=log ./trainer --device=cuda:0 --quiet \
        --out="$out_folder" "$@"
}
decodings() {
    grep -c ' nvjpegDecode ' log
}
trains cpu
[ "$(decodings)" = 0 ] || fail "nvJPEG decodes unasked"
cp "$(newest cpu)" wanted
for seed in 0 1 7; do
    export SINTER_DOUBLE_SEED=$seed
    trains gpu --decode=nvjpeg --loaders=3
    expect_equal "$(newest gpu)" wanted
done
unset SINTER_DOUBLE_SEED
# Loaders run ahead: each file of an epoch that was loaded whole was decoded.
trains all --decode=nvjpeg --loaders=1
[ "$(decodings)" -ge $((2 * plain)) ] || fail "$(decodings) files were decoded"
[ "$(grep -c ' nvjpegJpegStateCreate ' log)" -le 2 ] ||
    fail "more states than loading threads"
[ "$(grep -c ' nvjpegJpegStateCreate ' log)" = \
    "$(grep -c ' nvjpegJpegStateDestroy ' log)" ] || fail "a state is kept"
grep -q ' nvjpegDestroy ' log || fail "the library is kept"

# Only plain files are for nvJPEG.
expect 0 env SINTER_DOUBLE_LOG=log.one ./trainer --device=cuda:0 \
    --predict images/test/other --weights=wanted -o other.npy --decode=nvjpeg
grep -q ' nvjpegDecode ' log.one && fail "nvJPEG has a file of another kind"
expect 0 env SINTER_DOUBLE_LOG=log.two ./trainer --device=cuda:0 \
    --predict images/test/plain --weights=wanted -o plain.npy --decode=nvjpeg
# By their sizes: a loader runs ahead, over files that it has had.
[ "$(sed -n 's/.* nvjpegDecode .* //p' log.two | sort -u | wc -l)" = $plain ] ||
    fail "not all plain files"
expect 0 ./trainer --device=cuda:0 --predict images/test/plain \
    --weights=wanted -o wanted.npy
expect_equal plain.npy wanted.npy

# A file that the library declines has the other decoder, and any other error
# ends the run.
for status in 3 4 9 10; do
    expect 0 env SINTER_DOUBLE_FAIL=nvjpegDecode:2:$status ./trainer \
        --device=cuda:0 --quiet --out=declined.$status --decode=nvjpeg
    expect_equal "$(newest declined.$status)" wanted
done

# So has one of another size than libjpeg finds.
expect 0 env SINTER_DOUBLE_JPEG=1 SINTER_DOUBLE_LOG=log.size ./trainer \
    --device=cuda:0 --quiet --out=size --decode=nvjpeg
expect_equal "$(newest size)" wanted
grep -q ' nvjpegDecode ' log.size && fail "nvJPEG decodes beyond the memory"

# ends STATUS FAULT TEXT: a run with a fault.
ends() {
    rm -rf fault
    expect "$1" env SINTER_DOUBLE_FAIL="$2" ./trainer --device=cuda:0 \
        --quiet --out=fault --decode=nvjpeg
    expect_says "$3"
}
ends 4 nvjpegCreateSimple:1:7 'nvJPEG cannot decode on this GPU (status 7)'
ends 5 nvjpegJpegStateCreate:1:5 'no memory is left for it'
ends 5 nvjpegDecode:3:5 'nvJPEG cannot decode on this GPU (status 5)'
ends 4 nvjpegDecode:3:6 'nvJPEG cannot decode on this GPU (status 6)'

# A truncated file is refused as ever, and an image of many pixels is decoded by
# the processor.
cp images/train/plain/3.jpg kept.jpg
head -c 700 kept.jpg >images/train/plain/3.jpg
for decode in cpu nvjpeg; do
    rm -rf cut
    expect 3 ./trainer --device=cuda:0 --quiet --out=cut --decode=$decode
    cp err cut.$decode
done
expect_equal cut.nvjpeg cut.cpu
expect_says 'cannot decode images/train/plain/3.jpg'
"$python" -c 'from PIL import Image
Image.linear_gradient("L").convert("RGB").resize((2048, 4100)).save(
    "large.jpg")'
expect 0 env SINTER_DOUBLE_LOG=log.large ./trainer --device=cuda:0 \
    --predict large.jpg --weights=wanted --decode=nvjpeg
grep -q ' nvjpegDecode ' log.large && fail "nvJPEG has an image of 8.4 million"

expect 2 ./trainer --device=host --decode=nvjpeg
expect_says 'decode=nvjpeg needs a GPU, but the device is host'
expect 2 ./trainer --load-only --decode=nvjpeg
expect 2 ./trainer --decode=opencv
mkdir without
ln -s "$SINTER_DOUBLE"/* without/
rm without/libnvjpeg.so.13
expect 4 env LD_LIBRARY_PATH="$PWD/without" ./trainer --device=cuda:0 \
    --decode=nvjpeg
expect_says 'decode=nvjpeg needs libnvjpeg.so.13, which cannot be opened'
expect_says 'install nvJPEG of CUDA 13 or 12'
exit 0
