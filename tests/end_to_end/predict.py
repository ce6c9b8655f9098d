#!/usr/bin/env python3
"""The data of predict.sh, and what must be true of predictions.

usage: predict.py data|COMMAND FILE...
"""

import json
import math
import os
import subprocess
import sys

import numpy as np

CLASSES = ["cat", 'the "dog"', "émeu"]
TESTS = 70


def data():
    from PIL import Image
    random = np.random.default_rng(1)
    os.mkdir("data")
    for split, count in ("train", 128), ("test", TESTS):
        label = random.integers(0, 3, count)
        image = random.integers(0, 256, (count, 8, 8, 3))
        image[range(count), :, :, label] //= 3
        np.save(f"data/{split}_x.npy", image.astype(np.uint8))
        np.save(f"data/{split}_y.npy", label.astype(np.int32))
    with open("data/classes.txt", "w") as file:
        file.write("".join(name + "\n" for name in CLASSES))
    # Files in the order in which a folder is read.
    os.makedirs("images/a")
    for i, pixels in enumerate(np.load("data/test_x.npy")):
        folder = "images" if i < 10 else "images/a"
        Image.fromarray(pixels).save(f"{folder}/{i:03}.png")
    np.save("one.npy", np.load("data/test_x.npy")[0])


def rows_read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def evaluation(metrics, lines, array):
    """Predictions are those that the evaluation counted."""
    test = [row for row in rows_read(metrics) if row["split"] == "test"][-1]
    rows, logits = rows_read(lines), np.load(array)
    label = np.load("data/test_y.npy")
    assert logits.shape == (TESTS, 3) and logits.dtype == np.float32
    listed = np.array([row["logits"] for row in rows], np.float32)
    assert (listed == logits).all()
    number = np.array([row["number"] for row in rows])
    assert (number == logits.argmax(1)).all()
    assert abs((number == label).mean() - test["accuracy"]) < 1e-9
    exact = np.exp(logits.astype(float))
    exact /= exact.sum(1, keepdims=True)
    loss = -np.log(exact[range(TESTS), label]).mean()
    assert abs(loss - test["loss"]) < 1e-6, (loss, test["loss"])
    for row, p in zip(rows, exact):
        assert row["class"] == CLASSES[row["number"]]
        assert math.isclose(row["probability"], p.max(), rel_tol=1e-8)


def same(one, other):
    """The same numbers, to the bit, for the same samples."""
    one, other = rows_read(one), rows_read(other)
    assert len(one) == len(other) == TESTS
    for i, (a, b) in enumerate(zip(one, other)):
        if isinstance(b["input"], str):
            assert b["input"].endswith(f"{i:03}.png"), b
        a.pop("input"), b.pop("input")
        assert a == b, (i, a, b)


def waits(trainer, weights, paths):
    """A line is answered before the next one is written."""
    run = subprocess.Popen([trainer, "--predict=-", "--weights=" + weights],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True)
    for path in open(paths).read().split()[:5]:
        run.stdin.write(path + "\n")
        run.stdin.flush()
        assert json.loads(run.stdout.readline())["input"] == path
    run.stdin.close()
    assert run.stdout.read() == "" and run.wait() == 0


def close(one, other):
    """Products of another batch size may be summed in another order."""
    one, other = (rows_read(path)[0]["logits"] for path in (one, other))
    assert np.allclose(one, other, rtol=1e-5, atol=1e-6), (one, other)


def top(lines):
    [row] = rows_read(lines)
    listed = [place["probability"] for place in row["top"]]
    assert len(listed) == 3 and listed == sorted(listed, reverse=True)
    assert math.isclose(sum(listed), 1, rel_tol=1e-6)
    assert {place["class"] for place in row["top"]} == set(CLASSES)
    assert row["top"][0]["number"] == row["number"]


def bad(lines):
    rows = rows_read(lines)
    errors = [row for row in rows if "error" in row]
    assert len(rows) == TESTS + 1 and len(errors) == 1
    assert errors[0]["input"] == "images/a/bad.png" and len(errors[0]) == 2


def bad_array(path):
    logits = np.load(path)
    assert logits.shape == (TESTS + 1, 3)
    assert np.isnan(logits).all(1).sum() == np.isnan(logits).any(1).sum() == 1


globals()[sys.argv[1]](*sys.argv[2:])
