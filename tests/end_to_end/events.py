#!/usr/bin/env python3
"""Compares event files with the rows of a run and its last checkpoint.

usage: events.py FOLDER METRICS.jsonl CHECKPOINT
       events.py FOLDER BEFORE AFTER RATE: checkpoints around a step of SGD
"""

import json
import math
import sys

import numpy as np
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator)


def scalars(board, tag):
    return {event.step: event.value for event in board.Scalars(tag)}


def check_rows(boards, rows):
    compared = 0
    for row in rows:
        if row["split"] not in ("train", "test", "step"):
            continue
        board = boards["test" if row["split"] == "test" else "train"]
        before = "step/" if row["split"] == "step" else ""
        for key in "loss", "accuracy":
            value = scalars(board, before + key)[row["step"]]
            assert math.isclose(value, row[key], rel_tol=1e-6), (row, value)
            compared += 1
        if row["split"] == "train":
            value = scalars(board, "learning_rate")[row["step"]]
            assert math.isclose(value, row["lr"], rel_tol=1e-6)
    assert compared > 20, compared


def tensors_read(path):
    data = open(path, "rb").read()
    length = int.from_bytes(data[:8], "little")
    for name, entry in json.loads(data[8:8 + length]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            yield name, np.frombuffer(
                data[8 + length + begin:8 + length + end], np.float32)


def check_histograms(board, checkpoint, steps):
    tags = [tag for tag in board.Tags()["histograms"]
            if not tag.startswith("gradients/")]
    weights = dict(tensors_read(checkpoint))
    assert "first.conv_1.weight" in tags
    for tag in tags:
        assert [h.step for h in board.Histograms(tag)] == steps, tag
        found = board.Histograms(tag)[-1].histogram_value
        value = weights[tag].astype(float)
        assert found.num == sum(found.bucket) == value.size
        assert math.isclose(found.min, value.min())
        assert math.isclose(found.max, value.max())
        assert math.isclose(found.sum, value.sum(), abs_tol=1e-9)
        assert math.isclose(found.sum_squares, (value ** 2).sum())


def check_graph(graph):
    names = {node.name for node in graph.node}
    assert len(names) == len(graph.node) > 100
    assert all(name in names for node in graph.node for name in node.input)
    ops = {node.name: node for node in graph.node}
    weight = ops["first/conv_1/weight"]
    assert weight.op == "param"
    shape = weight.attr["_output_shapes"].list.shape[0]
    assert [dim.size for dim in shape.dim] == [8, 3, 3, 1], shape
    assert any(name.startswith("first/conv_1/conv_") for name in names)
    assert any(name.startswith("backward/second/") for name in names)


def write_images(board):
    tags = board.Tags()["images"]
    assert tags == [f"train/image/{i}" for i in range(8)], tags
    for i, tag in enumerate(tags):
        image = board.Images(tag)[0]
        assert (image.width, image.height) == (12, 12)
        with open(f"image_{i}.png", "wb") as file:
            file.write(image.encoded_image_string)


def check_gradients(folder, before, after, rate):
    """Of the last step, without momentum: the change of the weights."""
    board = EventAccumulator(f"{folder}/train", {"histograms": 0})
    board.Reload()
    old, new = dict(tensors_read(before)), dict(tensors_read(after))
    names = [tag for tag in board.Tags()["histograms"]
             if not tag.startswith("gradients/")]
    assert "first.conv_1.weight" in names and "linear_1.bias" in names
    for name in names:
        found = board.Histograms(f"gradients/{name}")[-1].histogram_value
        moved = (old[name].astype(float) - new[name]) / rate
        # A weight is rounded to 2^-24 of itself.
        off = (abs(new[name]).max() * 2.0 ** -23 / rate +
               abs(moved).max() * 1e-5)
        assert found.num == moved.size
        assert abs(moved).max() > 100 * off, name
        assert abs(found.min - moved.min()) < off, (name, found.min)
        assert abs(found.max - moved.max()) < off, (name, found.max)
        assert abs(found.sum - moved.sum()) < off * moved.size, name
        root = math.sqrt(found.sum_squares / moved.size)
        assert abs(root - math.sqrt((moved ** 2).mean())) < off, name


def main(folder, metrics, checkpoint):
    rows = [json.loads(line) for line in open(metrics)]
    boards = {}
    for name in "train", "test":
        boards[name] = EventAccumulator(f"{folder}/{name}",
                                        {"scalars": 0, "histograms": 0,
                                         "images": 0})
        boards[name].Reload()
        steps = [event.step for event in boards[name].Scalars("loss")]
        assert len(set(steps)) == len(steps), "a step has two values"
    check_rows(boards, rows)
    epochs = [row["step"] for row in rows if row["split"] == "train"]
    check_histograms(boards["train"], checkpoint, epochs)
    check_graph(boards["train"].Graph())
    write_images(boards["train"])


if len(sys.argv) == 5:
    check_gradients(*sys.argv[1:4], float(sys.argv[4]))
else:
    main(*sys.argv[1:])
