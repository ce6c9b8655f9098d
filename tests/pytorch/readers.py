"""What the readers of images and tokens feed to a step, against PIL and NumPy.

    readers.py make              draws images/ and text in the current folder
    readers.py images FILE H W   FILE is the checkpoint after one step; the
    readers.py tokens FILE       gradient is the batch, as the models are made

Row k of the image model's gradient is the one image of class k; the token
model's is how often one token follows another.
"""

import os
import sys

import numpy as np
from PIL import Image

import checkpoint

WORDS, LENGTH = 12, 7
# name: width, height and mode of the file, and how far a pixel may be apart
# before it is resized: decoders of JPEG may be of other versions, which differ
# by 1 in the transform and by 1 in colours.  In resizing PIL rounds to whole
# numbers after each of its two passes, by half each, and the reader once: less
# than 2, so 1.
FILES = {
    "same.png": (16, 16, "RGB", 0),
    "wide.png": (48, 32, "RGB", 0),
    "tall.png": (32, 64, "L", 0),
    "grown.png": (8, 8, "RGB", 0),
    "same.jpg": (16, 16, "RGB", 2),
}


def draw(width, height, mode):
    y, x = np.mgrid[:height, :width]
    pixels = [128 + 100 * np.sin(x / (3 + c) + y / (5 - c)) for c in range(3)]
    return Image.fromarray(np.stack(pixels, 2).astype(np.uint8)).convert(mode)


def words():
    return np.random.default_rng(1).integers(0, WORDS, 400, dtype=np.uint8)


def folder_of(name):
    return name.replace(".", "-")


def path(split, name):
    folder = os.path.join("images", split, folder_of(name))
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, name)


def make():
    for name, (*size, mode, _) in FILES.items():
        for split in ("train", "test"):
            draw(*size, mode).save(path(split, name))
    words().tofile("text")


def fitted(name, height, width):
    image = Image.open(path("train", name)).convert("RGB")
    by = max(width / image.size[0], height / image.size[1])
    w, h = (round(side * by) for side in image.size)
    image = image.resize((w, h), Image.Resampling.BILINEAR)
    left, top = (w - width) // 2, (h - height) // 2
    return np.asarray(image.crop((left, top, left + width, top + height)), float)


def images(file, height, width):
    shape = int(height), int(width)
    gradient = checkpoint.load(file)["linear_1.weight.momentum"]
    for row, name in zip(gradient, sorted(FILES, key=folder_of)):
        apart = abs(row.reshape(*shape, 3) - fitted(name, *shape)).max()
        print(f"{name}: {apart:g} apart")
        *size, _, most = FILES[name]
        resized = max(shape[1] / size[0], shape[0] / size[1]) != 1
        if not apart <= most + resized:
            sys.exit(f"{name} is not what PIL reads")


def tokens(file):
    gradient = checkpoint.load(file)["embedding_1.weight.momentum"]
    text = words()[: len(words()) * 9 // 10]
    used = (len(text) - 1) // LENGTH * LENGTH
    counts = np.zeros((WORDS, WORDS))
    np.add.at(counts, (text[:used], text[1 : used + 1]), 1)
    if not np.array_equal(gradient, counts):
        sys.exit(f"tokens are not what NumPy reads:\n{gradient - counts}")


if __name__ == "__main__":
    what = {"make": make, "images": images, "tokens": tokens}[sys.argv[1]]
    what(*sys.argv[2:])
