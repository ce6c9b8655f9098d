#!/bin/sh
# README.md works as written: its blocks run from the first to the last in a
# clone, its model is the file's, its error is one that the compiler prints.
. "$SINTER_SOURCE/tests/end_to_end/expect.sh"

page=$SINTER_SOURCE/README.md

# block LANGUAGE: the blocks of the page in that language.
block() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$page" | grep -v '^```'
}

block net | while IFS= read -r line; do
    grep -qxF -e "$line" "$models/resnet9.net" ||
        fail "models/resnet9.net lacks: $line"
done || exit 1

block text >message
found=
for file in $(grep -lxF -e "$(head -n 1 message)" \
    "$SINTER_SOURCE"/tests/golden/reject/*.err); do
    head -n "$(wc -l <message)" "$file" | cmp -s message - && found=$file
done
[ -n "$found" ] || fail "no golden error has the page's"

# 550 images in CIFAR-10's binary format, and folders of images.
cat >prepare <<'END'
#!/usr/bin/env python3
import os
import random
import subprocess
from PIL import Image

chance = random.Random(0)
os.makedirs("data/cifar10")
for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
    with open(f"data/cifar10/{name}.bin", "wb") as out:
        for i in range(110):
            out.write(bytes([i % 10]) + chance.randbytes(3072))
for split, count in ("train", 11), ("test", 2):
    for k, kind in enumerate(("bird", "cat", "dog")):
        folder = f"build/pictures/{split}/{kind}"
        os.makedirs(folder)
        for i in range(count):
            Image.new("RGB", (48, 40), (80 * k, i, 90)).save(f"{folder}/{i}.png")

# Minutes of training would show no more than a few steps of it.
with open("quickstart") as f:
    text = f.read()
short = text.replace('--data "$data"', '--data "$data" --steps=10')
assert short != text
with open("quickstart", "w") as f:
    f.write(short)
subprocess.run(["git", "add", "quickstart"], check=True)
END
chmod +x prepare
sed -e "s|YOUR_IMAGES|build/pictures --epochs=2|" -e "s/epochs=8/epochs=2/" \
    -e '/^```text$/,/^```$/d' "$page" >page.md
# The objects of sinter are those of the build that is tested.
if command -v ccache >/dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_NOHASHDIR=1
    CCACHE_DIR=$(ccache --get-config=cache_dir) && export CCACHE_DIR
fi
PATH=/usr/bin:$PATH python3 "$SINTER_SOURCE/tests/docs/walk.py" page.md "$work/prepare"
