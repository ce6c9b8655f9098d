#!/usr/bin/env python3
"""The metrics of an evaluation against numpy, in double.

metrics.py make                writes a data set for each kind of output
metrics.py check RUN KIND LOGITS   compares the last row of RUN/metrics.jsonl
"""

import json
import os
import sys

import numpy as np

KINDS = {  # inputs and labels of a sample; whether labels are classes
    "classes": ((8,), (), 5),
    "ignored": ((8,), (), 5),
    "sampled": ((8,), (), 5),
    "pixels": ((6, 6, 2), (6, 6), 3),
    "labels": ((8,), (4,), 0),
    "values": ((8,), (3,), 0),
}


def make():
    draw = np.random.default_rng(1)
    for kind, (x, y, classes) in KINDS.items():
        os.makedirs(kind)
        for split, count in ("train", 200), ("test", 53):
            image = draw.normal(size=(count, *x)).astype(np.float32)
            if kind == "labels":  # equal rows have equal outputs
                image[count // 2 :] = image[: count - count // 2]
            if classes:  # the last class never occurs
                label = draw.integers(0, classes - 1, size=(count, *y))
                if kind == "ignored":  # whole batches, too
                    label[: count // 2] = 3
            else:
                label = image[:, : y[0]] + draw.normal(size=(count, *y)) + 0.3
                label = label > 0 if kind == "labels" else 2000 + 3 * label
                label = label.astype(np.float32)
                if kind == "values":  # one number, which f32 cannot sum up
                    label[:, 0] = 12345.67
            weight = draw.integers(0, 4, size=count) / np.float32(2)
            if kind == "sampled":
                np.save(f"{kind}/{split}_weight.npy", weight)
            np.save(f"{kind}/{split}_x.npy", image)
            np.save(f"{kind}/{split}_y.npy", label)


def counted(both, given, found):
    """The metrics of counts, as scikit-learn's with zero_division=0."""
    divided = lambda a, b: np.divide(a, b, out=np.zeros(len(a)), where=b > 0)
    occurs = given + found > 0
    all_both, all_given, all_found = both.sum(), given.sum(), found.sum()
    return {
        "precision": divided(both, found)[occurs].mean(),
        "recall": divided(both, given)[occurs].mean(),
        "f1": divided(2 * both, given + found)[occurs].mean(),
        "iou": divided(both, given + found - both)[occurs].mean(),
        "precision_micro": all_both / all_found,
        "recall_micro": all_both / all_given,
        "f1_micro": 2 * all_both / (all_given + all_found),
    }


def area(score, positive):
    """Under the ROC curve, from the mean ranks of equal scores."""
    values, which, count = np.unique(score, return_inverse=True,
                                     return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[which]
    p, n = positive.sum(), (~positive).sum()
    return (rank[positive].sum() - p * (p + 1) / 2) / (p * n) if p * n else None


def mean_area(score, positive):
    """Over the columns that have both kinds of rows."""
    areas = [area(score[:, k], positive[:, k]) for k in range(score.shape[1])]
    return np.mean([a for a in areas if a is not None])


def of_classes(output, label, classes):
    rows = output.reshape(-1, classes)
    share = np.exp(rows - rows.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    auc = mean_area(share, label.reshape(-1, 1) == np.arange(classes))
    matrix = np.zeros((classes, classes))
    np.add.at(matrix, (label.ravel(), output.argmax(-1).ravel()), 1)
    both, given, found = matrix.diagonal(), matrix.sum(1), matrix.sum(0)
    any_of = given + found - both
    iou = [b / a if a else None for b, a in zip(both, any_of)]
    return dict(counted(both, given, found), auc=auc, counts=matrix.tolist(),
                iou_by_class=iou)


def of_weighted(output, label):
    """Labels of 3 do not count, and class k has the weight k + 1."""
    output, label = output[label != 3], label[label != 3]
    own = output[np.arange(len(label)), label]
    loss = np.log(np.exp(output).sum(-1)) - own
    return dict(of_classes(output, label, 5),
                loss=(loss * (label + 1)).sum() / (label + 1).sum(),
                accuracy=(output.argmax(-1) == label).mean())


def of_sampled(output, label, weight):
    """Samples have weights, which the loss divides by."""
    own = output[np.arange(len(label)), label]
    loss = (np.log(np.exp(output).sum(-1)) - own) * weight
    return dict(of_classes(output, label, 5), loss=loss.sum() / weight.sum(),
                accuracy=(output.argmax(-1) == label).mean())


def of_labels(output, label):
    is_label, found = label > 0.5, output > 0
    return dict(counted(*(x.sum(0).astype(float)
                          for x in (is_label & found, is_label, found))),
                auc=mean_area(output, is_label))


def of_values(output, label):
    error = output - label
    deviation = ((label - label.mean(0)) ** 2).sum(0)
    deviation[(label == label[0]).all(0)] = 0
    return {
        "mae": np.abs(error).mean(),
        "rmse": np.sqrt((error ** 2).mean()),
        "r2": np.where(deviation > 0, 1 - (error ** 2).sum(0) /
                       np.maximum(deviation, 1e-300), 0).mean(),
    }


def check(run, kind, logits):
    rows = [json.loads(line) for line in open(f"{run}/metrics.jsonl")]
    rows = [row for row in rows if row["split"] != "time"]
    row = [row for row in rows if row["split"] == "test"][-1]
    output = np.load(logits).astype(np.float64)
    label = np.load(f"{kind}/test_y.npy")
    classes = KINDS[kind][2]
    row.update({k: v for k, v in rows[-1].items() if k not in row})
    wanted = (of_weighted(output, label) if kind == "ignored"
              else of_sampled(output, label, np.load("sampled/test_weight.npy"))
              if kind == "sampled"
              else of_classes(output, label, classes) if classes
              else of_labels(output, label) if kind == "labels"
              else of_values(output, label.astype(np.float64)))
    for name, value in wanted.items():
        if isinstance(value, list):
            assert json.dumps(row[name]) == json.dumps(value) or np.allclose(
                np.array(row[name], float), np.array(value, float), 1e-6,
                equal_nan=True), (name, row[name], value)
        else:
            # The sums of a batch are f32; R2 divides two of them.
            room = 5e-6 if name == "r2" else 2e-6
            assert abs(row[name] - value) <= room * abs(value), (
                name, row[name], value)
    assert 0 < row.get("f1", 0.5) < 1, row
    assert all("f1" not in r and "mae" not in r for r in rows
               if r["split"] == "train")
    print(kind, {k: v for k, v in wanted.items() if not isinstance(v, list)})


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
