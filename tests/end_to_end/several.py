#!/usr/bin/env python3
"""A model of two inputs and two outputs against numpy.

several.py make FOLDER [turned]    writes its data; turned: each array's samples
                                   are those of another number, the same for all
several.py metrics ROWS            the last row of an evaluation, of predictions
                                   class.npy and box.npy as they are in ROWS/..
several.py lines FILE OUTPUTS      lines of predictions are arrays of OUTPUTS
several.py same A B                two files of arrays are equal, bit by bit
"""

import json
import os
import sys

import numpy as np


def make(folder, turned=False):
    draw = np.random.default_rng(3)
    os.makedirs(folder)
    for split, count in ("train", 200), ("test", 53):
        label = draw.integers(0, 5, count)
        image = draw.integers(0, 256, (count, 4, 4, 3)).astype(np.uint8)
        meta = draw.normal(size=(count, 6)).astype(np.float32)
        meta[np.arange(count), label] += 6
        box = np.stack([image.mean((1, 2, 3)) / 255, meta[:, 5]], 1)
        arrays = {"image": image, "meta": meta, "class": label,
                  "box": box.astype(np.float32)}
        for name, array in arrays.items():
            array = np.roll(array, 7, 0) if turned else array
            np.save(f"{folder}/{split}_{name}.npy", array)


def metrics(rows, outputs):
    """In double, over all samples: the last batch is short."""
    last = [row for row in map(json.loads, open(rows)) if "mae" in row][-1]
    score = np.load(f"{outputs}_class.npy").astype(float)
    box = np.load(f"{outputs}_box.npy").astype(float)
    label = np.load("data/test_class.npy")
    error = np.abs(box - np.load("data/test_box.npy"))
    top = score.max(1, keepdims=True)
    own = score[np.arange(len(label)), label]
    loss = np.log(np.exp(score - top).sum(1)) + top[:, 0] - own
    found = score.argmax(1)
    given = [(label == k).sum() + (found == k).sum() for k in range(5)]
    f1 = [2 * ((label == k) & (found == k)).sum() / n
          for k, n in enumerate(given) if n]
    for name, value in (("accuracy", (found == label).mean()),
                        ("f1", np.mean(f1)),
                        ("mae", error.mean()),
                        ("rmse", np.sqrt((error ** 2).mean())),
                        ("loss", loss.mean() + 0.5 * error.mean())):
        if not abs(last[name] - value) <= 2e-6 * abs(value):
            sys.exit(f"{name} is {last[name]}, and not {value}")


def lines(path, outputs):
    rows = [json.loads(line)["outputs"] for line in open(path)]
    score = np.load(f"{outputs}_class.npy")
    box = np.load(f"{outputs}_box.npy")
    assert [r["class"]["number"] for r in rows] == list(score.argmax(1))
    said = np.array([r["box"]["output"] for r in rows], np.float32)
    assert (said == box).all()
    logits = np.array([r["class"]["logits"] for r in rows], np.float32)
    assert (logits == score).all()


def same(a, b):
    if np.load(a).tobytes() != np.load(b).tobytes():
        sys.exit(f"{a} and {b} differ")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
