#!/bin/sh
# --load-only: every kind of data goes through the loader and nothing else does
# anything, with no device, whichever is asked for.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

# loads SAMPLES BATCHES BYTES COMMAND...: all of it, so many bytes a sample, and
# no folder is left.
loads() {
    samples=$1 batches=$2 bytes=$3
    shift 3
    expect 0 "$@" --load-only --metrics=rows --out=none --device=cuda:0
    expect_says "^loaded $samples samples in $batches batche*s* of"
    [ -e none ] && fail "a folder was made"
    [ "$(wc -l <rows)" -eq 1 ] || fail "rows: $(cat rows)"
    tr -d '"{}' <rows | tr ',:' '\n ' | awk -v samples="$samples" \
        -v batches="$batches" -v bytes="$bytes" '{ is[$1] = $2 }
        END {
            if (is["split"] != "load" || is["samples"] != samples ||
                is["batches"] != batches) exit 1
            if (!(is["total"] > 0 && is["loading"] > 0)) exit 2
            if (is["loading"] > is["threads"] * is["total"] + 0.001) exit 3
            a = is["samples_per_second"] / (samples / is["total"])
            b = is["bytes_per_second"] / is["samples_per_second"] / bytes
            # Seconds have six digits.
            off = 0.000001 / is["total"] + 0.000001
            if (a < 1 - off || a > 1 + off) exit 4
            if (b < 0.999999 || b > 1.000001) exit 5
        }' || fail "rows ($?): $(cat rows)"
}

# model NAME INPUT DATA [BODY RESULT]: one that takes such images and classes.
model() {
    cat >"$1.net" <<NET
model $1(image: $2) -> ${5:-f32[N, 10]} {
  image |> ${4:-flatten} |> linear(10)
}

train $1 {
  data      = $3
  batch     = 32
  epochs    = 9
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
NET
    expect 0 "$SINTER" build "$1.net" -o "$1"
}

# idx, and an epoch that drops a short batch: 192 = 3 x 64.  A label is an i32
# by then.
expect 0 "$SINTER" build "$here/tiny.net" -o tiny
idx_data data 200
loads 192 3 148 ./tiny
expect_says "with images in memory"
loads 384 6 148 ./tiny --epochs=2
loads 64 1 148 ./tiny --epochs=0.1
loads 960 15 148 ./tiny --data=synthetic:960
loads 192 3 148 ./tiny --loaders=2
expect_says "2 threads"
grep -q '"threads":2' rows || fail "$(cat rows)"
expect 0 ./tiny --load-only --quiet
[ "$(cat out err | wc -l)" -eq 1 ] || fail "--quiet: $(cat out err)"
# All batches of an update are loaded.
expect 0 "$SINTER" build "$here/tiny.net" --set accumulate=3 -o three
loads 192 3 148 ./three

model Cifar "f32[N, 32, 32, 3]" 'cifar10("cifar")'
mkdir cifar
for file in data_batch_1 test_batch; do
    i=0
    while [ $i -lt 4 ]; do
        octet $i
        head -c 3072 /dev/zero
        i=$((i + 1))
    done >cifar/$file.bin
done
# Four of 32 places are samples; the input takes the bytes of the file.
loads 4 1 $((3072 + 4)) ./Cifar

model Tokens "i32[N, 8]" 'tokens("text", length=8, vocabulary=10)' \
    "embedding(10, 4)" "f32[N, 8, 10]"
i=0
while [ $i -lt 100 ]; do
    printf '\003\001\004\001\005\011\002\006'
    i=$((i + 1))
done >text
windows=$(./Tokens --load-only | sed -n 's/^loaded \([0-9]*\) .*/\1/p')
[ "${windows:-0}" -gt 60 ] || fail "$windows windows of tokens"
loads "$windows" $(((windows + 31) / 32)) $((8 * 4 + 8 * 4)) ./Tokens

# Sources that need a program to be made.
python=
for candidate in /usr/bin/python3 python3; do
    $candidate -c 'import PIL, numpy' 2>/dev/null && python=$candidate && break
done
[ -n "$python" ] || exit 0
mkdir npy
$python -c '
import numpy
for split, count in ("train", 70), ("test", 10):
    numpy.save(f"npy/{split}_x.npy", numpy.zeros((count, 6), "f4"))
    numpy.save(f"npy/{split}_y.npy", numpy.zeros(count, "u1"))'
model Npy "f32[N, 6]" 'npy("npy")'
loads 70 3 28 ./Npy

expect 0 "$python" "$SINTER_SOURCE/tests/pytorch/readers.py" make
model Images "u8[N, 16, 16, 3]" 'image_folder("images", size=16)'
loads 5 1 $((16 * 16 * 3 + 4)) ./Images
expect_says "with images read from their files"
loads 5 1 $((16 * 16 * 3 + 4)) ./Images --threads=6
expect_says "6 threads worked"
expect 0 ./Images --load-only --threads=6 --device=host
expect_says "1 thread worked"
loads 10 2 $((16 * 16 * 3 + 4)) ./Images --epochs=2
# Their pixels are limited, and the memory for them is counted before.
expect 3 ./Images --load-only --max-image-pixels=255
expect_says "16 x 16 pixels are more than the 255 of --max-image-pixels"
if [ -z "${SINTER_SANITIZED:-}" ]; then
    # shellcheck disable=SC2016 # what is after -c is for that shell
    expect 5 sh -c 'ulimit -v 700000 && exec ./Images --load-only --loaders=60'
    expect_says 'loading needs 784 MiB of memory, but only'
    expect 5 sh -c 'ulimit -v 500000 && exec ./Images --device=host --out=none'
    expect_says 'loading needs 55[0-9] MiB of memory, .* beside the plan'
    expect 0 sh -c 'ulimit -v 500000 &&
        exec ./Images --load-only --max-image-pixels=4096'
fi
# The files are read: a truncated one is reported.
find images/train -name 'same.jpg' | while read -r file; do
    head -c 100 "$file" >part
    mv part "$file"
done
expect 3 ./Images --load-only
expect_says 'same.jpg'
exit 0
