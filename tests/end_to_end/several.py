#!/usr/bin/env python3
"""A model of two inputs and two outputs against numpy.

several.py make FOLDER [turned]    writes its data; turned: each array's samples
                                   are those of another number, the same for all
several.py metrics ROWS            the last row of an evaluation, of predictions
                                   class.npy and box.npy as they are in ROWS/..
several.py lines FILE OUTPUTS      lines of predictions are arrays of OUTPUTS
several.py table FOLDER            writes the same data as images and tables
several.py stats FILE              what sinter data stats prints of meta and class
several.py same A B                two files of arrays are equal, bit by bit
several.py library PATH WEIGHTS OUTPUTS
                                   a library predicts OUTPUTS, and learns
several.py onnx FILE OUTPUTS       onnxruntime has OUTPUTS
several.py torch FILE OUTPUTS      so has PyTorch
"""

import json
import os
import re
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


def table(folder):
    import csv

    from PIL import Image

    os.makedirs(f"{folder}/photos")
    for split in "train", "test":
        data = {n: np.load(f"data/{split}_{n}.npy")
                for n in ("image", "meta", "class", "box")}
        with open(f"{folder}/{split}.csv", "w", newline="") as f:
            rows = csv.writer(f)
            rows.writerow(["class", *(f"box.{i}" for i in range(2)), "image",
                           "note", *(f"meta.{i}" for i in range(6))])
            for i, image in enumerate(data["image"]):
                name = f"photos/{split}, {i}.png"
                Image.fromarray(image).save(f"{folder}/{name}")
                rows.writerow([data["class"][i], *data["box"][i].astype(float),
                               name, 'a "note"', *data["meta"][i].astype(float)])


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


def stats(path):
    text = open(path).read()
    test = text[text.index("test: 53 samples"):]
    meta = np.load("data/test_meta.npy").astype(float)
    mean = re.search(r"input\.meta:\n.*\n  normalize\(mean=\[([^]]*)\]", test)
    said = np.array(mean.group(1).split(","), float)
    assert np.allclose(said, meta.mean(0), rtol=1e-4), said
    counts = re.search(r"label\.class:\n  5 of 5.*\n((    .*\n){5})", test)
    said = [int(line.split(": ")[1]) for line in counts.group(1).splitlines()]
    assert said == list(np.bincount(np.load("data/test_class.npy"))), said


def same(a, b):
    if np.load(a).tobytes() != np.load(b).tobytes():
        sys.exit(f"{a} and {b} differ")


def raises(kind, text, call, *words, **named):
    try:
        call(*words, **named)
    except kind as e:
        assert text in str(e), str(e)
        return
    sys.exit(f"no {kind.__name__}: {text}")


def library(path, weights, outputs):
    import sinter

    def arrays(split, names):
        return {n: np.load(f"data/{split}_{n}.npy") for n in names}

    model = sinter.load(path, threads=1)
    assert list(model.inputs) == ["image", "meta"]
    assert list(model.labels) == ["class", "box"]
    assert list(model.outputs) == ["class", "box"]
    samples = arrays("test", ["meta", "image"])
    model.load(weights)
    for name, array in model.predict(samples).items():
        if array.tobytes() != np.load(f"{outputs}_{name}.npy").tobytes():
            sys.exit(f"the library's {name} differs")
    raises(TypeError, "a dict with image, meta", model.predict, samples["image"])
    raises(TypeError, "a dict with class, box", model.train_step,
           {n: a[:16] for n, a in samples.items()})
    raises(ValueError, "arrays have [2, 3] samples", model.predict,
           {"image": samples["image"][:2], "meta": samples["meta"][:3]})
    train, labels = arrays("train", model.inputs), arrays("train", model.labels)
    wrong = dict(labels, **{"class": np.full(200, 5)})
    raises(ValueError, "class: sample 0 has 5, but Several has 5 classes",
           model.fit, train, wrong)
    history = model.fit(train, labels, epochs=6)
    assert history[-1]["loss"] < history[0]["loss"] / 2, history
    found = model.predict(samples)["class"].argmax(1)
    assert (found == np.load("data/test_class.npy")).mean() > 0.7


def close(got, outputs):
    assert list(got) == ["class", "box"], list(got)
    for name, array in got.items():
        want = np.load(f"{outputs}_{name}.npy")
        error = np.abs(array - want).max() / np.abs(want).max()
        if not error < 1e-5:
            sys.exit(f"{name} differs by {error:.2g} of its largest")


def onnx(path, outputs):
    import onnx
    import onnxruntime

    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path)
    names = [tensor.name for tensor in session.get_outputs()]
    assert [tensor.name for tensor in session.get_inputs()] == ["image", "meta"]
    arrays = {n: np.load(f"data/test_{n}.npy") for n in ("meta", "image")}
    close(dict(zip(names, session.run(None, arrays))), outputs)


def torch(path, outputs):
    import importlib.util

    import torch

    spec = importlib.util.spec_from_file_location("exported", path)
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    arrays = {n: torch.from_numpy(np.load(f"data/test_{n}.npy"))
              for n in ("meta", "image")}
    with torch.no_grad():
        got = exported.load()(**arrays)
    close({name: array.numpy() for name, array in got.items()}, outputs)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
