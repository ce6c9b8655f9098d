"""Scenes: discs, boxes and bands on noise, with what they are at each pixel.

    scenes.py DIR KIND COUNT TEST [ROWS COLUMNS]

writes COUNT training and TEST test samples as files of `npy`: images of 32 rows
and 24 columns if not told otherwise, and as labels, by KIND,

    masks    the class of each pixel, 0 to 3
    borders  the same with 255 at the borders of classes, as in PASCAL VOC
    clean    the image without noise, from 0 to 1
    large    the same of twice the rows and columns
"""

import os
import sys

import numpy as np

SIZE = 32, 24


def figure(random, kind, y, x, size):
    """Where a figure is; a disc, a box or a band."""
    row, column = (random.randint(4, n - 4) for n in size)
    reach = random.randint(3, 8)
    if kind == 1:
        return (y - row) ** 2 + (x - column) ** 2 < reach**2
    if kind == 2:
        return (abs(y - row) < reach) & (abs(x - column) < reach)
    return abs(y - row + (x - column) * random.uniform(-0.5, 0.5)) < reach / 3


def scene(random, size):
    """The classes, and the colours at twice the size."""
    y, x = np.mgrid[: 2 * size[0], : 2 * size[1]] / 2.0
    classes = np.zeros(y.shape, np.int32)
    colours = np.zeros(y.shape + (3,), np.float32)
    colours[:] = random.uniform(0.1, 0.4, 3)
    for _ in range(random.randint(1, 4)):
        kind = random.randint(1, 4)
        inside = figure(random, kind, y, x, size)
        classes[inside] = kind
        colours[inside] = random.uniform(0.4, 0.9, 3) * np.roll(
            [1.0, 0.6, 0.3], kind
        )
    return classes, colours


def bordered(classes):
    """255 on both sides of a border."""
    border = np.zeros(classes.shape, bool)
    for axis in 0, 1:
        differs = np.diff(classes, axis=axis) != 0
        for low, high in ((0, 1), (1, 0)):
            pads = [(0, 0), (0, 0)]
            pads[axis] = (low, high)
            border |= np.pad(differs, pads)
    return np.where(border, 255, classes).astype(np.int32)


def samples(kind, count, test=False, size=SIZE):
    random = np.random.RandomState(1 + test)
    images, labels = [], []
    for _ in range(count):
        classes, colours = scene(random, size)
        clean = colours[::2, ::2]
        noise = random.normal(0, 0.06, clean.shape)
        images.append((255 * np.clip(clean + noise, 0, 1)).astype(np.uint8))
        masks = classes[::2, ::2]
        labels.append(
            bordered(masks) if kind == "borders"
            else {"masks": masks, "clean": clean, "large": colours}[kind]
        )  # fmt: skip
    return np.stack(images), np.stack(labels)


def write(folder, kind, train, test, *size):
    os.makedirs(folder, exist_ok=True)
    for name, count in (("train", train), ("test", test)):
        x, y = samples(kind, count, name == "test", size or SIZE)
        np.save(os.path.join(folder, name + "_x.npy"), x)
        np.save(os.path.join(folder, name + "_y.npy"), y)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
