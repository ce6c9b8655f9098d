#!/usr/bin/env python3
"""Coins: images of the euro's coins on a table, for models/multitask.net.

    coins.py DIR [TRAIN TEST]

writes the arrays of npy, of 10,000 training and 2,000 test samples unless told
otherwise, the same each time:

    image   u8[N, 32, 32, 3]  a coin, anywhere in the image, with noise
    meta    f32[N, 2]         pixels of a millimetre, and the exposure
    class   u8[N]             the coin, from 1 cent (0) to 2 euros (7)
    box     f32[N, 4]         top, left, bottom and right, as shares of 32

Coins of one metal differ in their diameters only, so that the image alone
decides neither the coin nor its size: meta has the scale.
"""

import os
import sys

import numpy as np

SIZE = 32
DIAMETER = [16.25, 18.75, 21.25, 19.75, 22.25, 24.25, 23.25, 25.75]  # mm
COPPER, GOLD = [0.72, 0.45, 0.32], [0.80, 0.68, 0.36]
SILVER = [0.75, 0.75, 0.76]
RIM = [COPPER] * 3 + [GOLD] * 3 + [GOLD, SILVER]
CORE = [COPPER] * 3 + [GOLD] * 3 + [SILVER, GOLD]


def drawn(random, coin):
    """The image from 0 to 1, the scale, the exposure and the box of a coin."""
    scale, exposure = random.uniform(0.8, 1.15), random.uniform(0.7, 1.2)
    radius = DIAMETER[coin] * scale / 2
    y, x = random.uniform(radius, SIZE - radius, 2)
    rows, columns = np.mgrid[:SIZE, :SIZE] + 0.5
    distance = np.hypot(rows - y, columns - x)
    image = np.tile(random.uniform(0.1, 0.5, 3), (SIZE, SIZE, 1))
    for reach, colour in ((radius, RIM[coin]), (0.7 * radius, CORE[coin])):
        inside = np.clip(reach - distance + 0.5, 0, 1)[..., None]
        image = image + inside * (np.array(colour) - image)
    box = np.array([y - radius, x - radius, y + radius, x + radius]) / SIZE
    image = exposure * image + random.normal(0, 0.04, image.shape)
    return image, [scale, exposure], box


def split(seed, count):
    random = np.random.RandomState(seed)
    coins = random.randint(0, len(DIAMETER), count)
    image, meta, box = zip(*(drawn(random, coin) for coin in coins))
    return {
        "image": (255 * np.clip(image, 0, 1)).astype(np.uint8),
        "meta": np.array(meta, np.float32),
        "class": coins.astype(np.uint8),
        "box": np.array(box, np.float32),
    }


def main():
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    counts = [int(n) for n in sys.argv[2:]] or [10000, 2000]
    os.makedirs(sys.argv[1], exist_ok=True)
    for seed, (name, count) in enumerate(zip(("train", "test"), counts)):
        for array, values in split(seed, count).items():
            np.save(os.path.join(sys.argv[1], f"{name}_{array}.npy"), values)


main()
