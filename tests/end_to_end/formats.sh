#!/bin/sh
# Photographs are turned as their Exif data say, and WebP files are read: the
# pixels are Pillow's.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"
. "$SINTER_SOURCE/tests/end_to_end/tiny.sh"

for candidate in python3 /usr/bin/python3; do
    $candidate -c 'import numpy, PIL' 2>/dev/null && python=$candidate && break
done
[ -n "${python:-}" ] || exit 77
"$python" "$here/formats.py" draw || fail "images"

# A network whose output is its input.
cat >same.net <<'END'
model Same(image: u8[N, 16, 16, 3]) -> f32[N, 16, 16, 3] {
  image |> normalize(mean=0, std=1) |> conv(3, 1, bias=false, init=dirac)
}

train Same {
  data      = npy("data", targets=true)
  input     = data.train
  batch     = 4
  steps     = 1
  loss      = mean(mse(output, label))
  optimizer = sgd(lr=0)
}
END
expect 0 "$SINTER" build same.net -o same
expect 0 ./same --out=run --quiet
expect 0 ./same --predict files --weights=run -o pixels.npy
"$python" "$here/formats.py" same || fail "other pixels"

# A model of other than squares reads files as well.
sed 's/16, 16/12, 20/g; s/Same/Wide/; s/npy("data"/npy("none"/' same.net >wide.net
expect 0 "$SINTER" build wide.net -o wide_net
expect 0 ./wide_net --out=wide_run --quiet --data=synthetic:4
expect 0 ./wide_net --predict wide --weights=wide_run -o wide.npy
"$python" "$here/formats.py" wide || fail "other pixels"

# Damaged files: a block of Exif data that is cut, and half of a WebP file.
head -c 40 files/turn6.jpg >broken.jpg
head -c 60 files/plain.webp >broken.webp
for file in broken.jpg broken.webp; do
    expect 3 ./same --predict $file --weights=run
    expect_says "cannot decode $file"
done
