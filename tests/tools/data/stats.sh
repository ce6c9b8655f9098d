#!/bin/sh
# sinter data stats prints numpy's statistics, and verify finds what cannot be
# read.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, PIL' 2>/dev/null && python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
"$python" - >wanted <<'END' || fail "data"
import os
import numpy as np
from PIL import Image
r = np.random.default_rng(0)
for part, count in ("train", 40), ("test", 10):
    x = r.normal(3, 2, (count, 5, 3)).astype(np.float32)
    y = r.integers(0, 4, count).astype(np.int32)
    os.makedirs("arrays", exist_ok=True)
    np.save(f"arrays/{part}_x.npy", x)
    np.save(f"arrays/{part}_y.npy", y)
    numbers = lambda a: "[" + ", ".join(f"{v:.5g}" for v in a) + "]"
    x = x.astype(float).reshape(-1, 3)
    print(f"{part}: {count} samples")
    print(f"  values from {x.min():.6g} to {x.max():.6g}")
    print(f"  normalize(mean={numbers(x.mean(0))}, std={numbers(x.std(0))})")
    counts = np.bincount(y, minlength=4)
    share = counts[counts > 0] / count
    bits = -(share * np.log2(share)).sum()
    print(f"  {(counts > 0).sum()} of 4 classes, {bits:.3f} bits a label")
    for i, n in enumerate(counts):
        print(f"    {i}: {n}")
    for name in "cat", "dog":
        os.makedirs(f"photos/{part}/{name}", exist_ok=True)
        for i in range(3):
            Image.fromarray(r.integers(0, 256, (20, 24, 3), np.uint8)).save(
                f"photos/{part}/{name}/{i}.png")
END
cat >arrays.net <<'END'
model Net(x: f32[N, 5, 3]) -> f32[N, 4] {
  x |> flatten |> linear(4)
}

train Net {
  data      = npy("arrays")
  batch     = 10
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
END
cat >photos.net <<'END'
model Net(image: u8[N, 16, 16, 3]) -> f32[N, 2] {
  image |> normalize(mean=128, std=64) |> flatten |> linear(2)
}

train Net {
  data      = image_folder("photos", size=16)
  batch     = 2
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = sgd(lr=0.1)
}
END
expect 0 "$SINTER" data stats arrays.net
expect_equal out wanted
expect 0 "$SINTER" data stats photos.net
expect_says 'train: 6 samples'
expect_says '2 of 2 classes, 1.000 bits'
expect_says '    cat 3'
expect_says '  normalize(mean=\[1[0-9.]*, 1[0-9.]*, 1[0-9.]*\], std='
sed 's/f32\[N, 2\]/f32[N, 10]/; s/linear(2)/linear(10)/' photos.net >ten.net
expect 0 "$SINTER" data stats ten.net
expect_says '2 of 10 classes'
[ "$(grep -c '^    ' out)" = 4 ] || fail "$(cat out)"
expect 0 "$SINTER" data verify photos.net
expect_says 'test: 6 samples'
expect 0 "$SINTER" data bench photos.net
expect_says 'loaded 6 samples in 3 batches of 2'

# Compressed files have the data of the others.
mkdir idx
sed 's/x: f32\[N, 5, 3\]/x: u8[N, 12, 12, 1]/; s/npy("arrays")/idx("idx")/
    s/flatten |>/normalize(mean=0, std=1) |> flatten |>/; s/f32\[N, 4\]/f32[N, 10]/
    s/linear(4)/linear(10)/' arrays.net >idx.net
idx_data idx 128
expect 0 "$SINTER" data verify idx.net
cp out plain
gzip idx/train-*
expect 0 "$SINTER" data verify idx.net
expect_equal out plain

head -c 300 photos/train/dog/1.png >broken.png
mv broken.png photos/train/dog/1.png
expect 3 "$SINTER" data verify photos.net
expect_says 'photos/train/dog/1.png'
expect_says 'train: 6 samples, of which 1 cannot be read'
grep -e --bad-samples out err && fail "an option that verify has not"
expect 3 "$SINTER" data stats arrays.net --data=nowhere
expect_says 'no data in nowhere'
rm arrays/test_*
for word in stats verify bench; do
    expect 0 "$SINTER" data $word arrays.net
    expect 2 "$SINTER" data $word arrays.net --validation=10%
    expect_says "data $word takes no --validation"
done
expect 0 "$SINTER" data verify arrays.net
expect_says '^test: 0 samples'
: >arrays/test_y.npy
expect 3 "$SINTER" data verify arrays.net
expect_says 'arrays/test_x.npy does not exist: add it$'
expect 2 "$SINTER" data verify photos.net arrays.net
expect_says 'needs one model file'
