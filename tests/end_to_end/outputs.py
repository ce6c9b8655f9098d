#!/usr/bin/env python3
"""The metrics of four named outputs against numpy, in double.

outputs.py make                writes their data set
outputs.py check RUN LOGITS    compares the last rows of RUN/metrics.jsonl with
                               LOGITS_class.npy, _kind, _tags and _box
outputs.py column FILE NAME RUN   the last number of a column of
                               comma-separated rows is that of RUN
outputs.py weighted RUN LOGITS    the loss and accuracies of weighted rows
outputs.py trained RUN            the loss of the training is that of an
                               evaluation of the same samples
outputs.py pixels              writes images, and mirrored ones
outputs.py views RUN           the outputs of views are means of those of the
                               images and of the mirrored ones, and so are
                               RUN's metrics
outputs.py spoil NAME VALUE       writes a number into data/train_NAME.npy
"""

import csv
import json
import os
import sys

import numpy as np

from metrics import of_classes, of_labels, of_values

CLASSES = {"class": 5, "kind": 3}


def make():
    draw = np.random.default_rng(1)
    os.makedirs("data")
    for split, count in ("train", 200), ("test", 53):
        x = draw.normal(size=(count, 8)).astype(np.float32)
        noise = draw.normal(size=(count, 4))
        arrays = {
            "x": x,
            "class": x[:, :5].argmax(1),
            "kind": (x[:, 5:8] + noise[:, :3]).argmax(1),
            "tags": (x[:, :4] + noise > 0.3).astype(np.float32),
            "box": (3 * x[:, :2] + noise[:, :2]).astype(np.float32),
            "part": np.where(noise[:, 0] > 0, x[:, :5].argmax(1), 255),
            "trust": (draw.integers(0, 4, count) / 2).astype(np.float32),
        }
        for name, array in arrays.items():
            np.save(f"data/{split}_{name}.npy", array)


def wanted(logits):
    """The metrics of each output."""
    of = {}
    for name in "class", "kind", "tags", "box":
        output = np.load(f"{logits}_{name}.npy").astype(np.float64)
        label = np.load(f"data/test_{name}.npy")
        if name in CLASSES:
            of[name] = of_classes(output, label, CLASSES[name])
            of[name]["accuracy"] = (output.argmax(-1) == label).mean()
        elif name == "tags":
            of[name] = of_labels(output, label)
            of[name]["accuracy"] = ((output > 0) == (label > 0.5)).mean()
        else:
            of[name] = of_values(output, label.astype(np.float64))
    return of


# The name in a row, and its output: the first of the list has the plain name.
LISTED = {
    "accuracy": "class", "kind.accuracy": "kind", "tags.accuracy": "tags",
    "f1": "kind", "tags.f1": "tags", "precision": "class", "auc": "tags",
    "kind.auc": "kind", "mae": "box", "r2": "box",
}


def check(run, logits):
    rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    row = [row for row in rows if row["split"] == "test"][-1]
    of = wanted(logits)
    for name, output in LISTED.items():
        value = of[output][name.split(".")[-1]]
        if not abs(row[name] - value) <= 2e-6 * abs(value):
            sys.exit(f"{name} is {row[name]}, and not {value}")
    assert [name for name in row if name.endswith(("accuracy", "f1", "auc"))] \
        == ["accuracy", "f1", "auc", "kind.accuracy", "tags.accuracy",
            "tags.f1", "kind.auc"], list(row)
    matrices = {row["output"]: row["counts"] for row in rows
                if row["split"] == "confusion"}
    for name in CLASSES:
        assert matrices[name] == of[name]["counts"], (name, matrices[name])


def weighted(run, logits):
    """Each mean divides by its own weights."""
    label = {name: np.load(f"data/test_{name}.npy")
             for name in ("part", "kind", "tags", "box", "trust")}
    output = {name: np.load(f"{logits}_{name}.npy").astype(float)
              for name in ("part", "kind", "tags", "box")}
    loss, accuracy = 0, {}
    for name, weights in (("part", np.array([1, 2, 3, 4, 5])),
                          ("kind", np.array([1, 1, 1]))):
        rows, own = output[name], label[name]
        kept = own < 5
        rows, own = rows[kept], own[kept]
        e = np.log(np.exp(rows).sum(1)) - rows[np.arange(len(own)), own]
        w = weights[own] if name == "part" else label["trust"]
        loss += (e * w).sum() / w.sum()
        accuracy[name] = (rows.argmax(1) == own).mean()
    trust = label["trust"][:, None]
    x, y = output["tags"], label["tags"]
    bce = np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))
    loss += (bce * trust).sum() / trust.sum() / 4
    square = (output["box"] - label["box"].astype(float)) ** 2
    loss += 0.5 * (square * trust).sum() / trust.sum() / 2
    loss += np.abs(output["box"] - label["box"]).mean()
    rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    row = [row for row in rows if row["split"] == "test"][-1]
    for name, value in (("loss", loss), ("perplexity", np.exp(loss)),
                        ("accuracy", accuracy["part"]),
                        ("kind.accuracy", accuracy["kind"])):
        if not abs(row[name] - value) <= 5e-6 * abs(value):
            sys.exit(f"{name} is {row[name]}, and not {value}")


def trained(run):
    rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    train, test = ([row["loss"] for row in rows if row["split"] == split][-1]
                   for split in ("train", "test"))
    assert abs(train - test) <= 2e-6 * test, (train, test)


def pixels():
    draw = np.random.default_rng(2)
    os.makedirs("pixels")
    for split, count in ("train", 40), ("test", 13):
        x = draw.normal(size=(count, 6, 6, 2)).astype(np.float32)
        np.save(f"pixels/{split}_x.npy", x)
        np.save(f"pixels/{split}_mask.npy", (x.sum(3) > 0) + (x[..., 0] > 1))
        np.save(f"pixels/{split}_kind.npy", draw.integers(0, 4, count))
        for name, as_ in ("x", "x"), ("mask", "y"):
            os.makedirs("alone", exist_ok=True)
            np.save(f"alone/{split}_{as_}.npy",
                    np.load(f"pixels/{split}_{name}.npy"))
    np.save("pixels/test_flipped.npy", x[:, :, ::-1].copy())


def views(run):
    rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    row = [row for row in rows if row["split"] == "test"][-1]
    for name, metric in ("mask", "accuracy"), ("kind", "kind.accuracy"):
        plain, flipped, seen = (np.load(f"{image}_{name}.npy").astype(float)
                                for image in ("x", "flipped", "seen"))
        flipped = flipped[:, :, ::-1] if name == "mask" else flipped
        error = np.abs(seen - 0.75 * plain - 0.25 * flipped).max()
        assert error < 1e-6 * np.abs(seen).max(), (name, error)
        assert np.abs(seen - plain).max() > 0.1, name
        hits = seen.argmax(-1) == np.load(f"pixels/test_{name}.npy")
        assert abs(row[metric] - hits.mean()) < 1e-6, (row[metric], hits.mean())


def spoil(name, value):
    path = f"data/train_{name}.npy"
    array = np.load(path)
    array.reshape(-1)[len(array.reshape(-1)) // 2] = float(value)
    np.save(path, array)


def column(path, name, run):
    rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    last = [row for row in rows if row["split"] == "test"][-1]
    found = [row for row in csv.DictReader(open(path))
             if row["split"] == "test"][-1]
    assert float(found[name]) == last[name], (found[name], last[name])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
