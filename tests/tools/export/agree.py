#!/usr/bin/env python3
"""Inputs for ONNX files, and their results beside those of the trainer.

usage: agree.py inputs FOLDER...    writes inputs.npy for the model.onnx there
       agree.py agree FOLDER...     reads these, and trainer.npy
"""

import os
import sys

import numpy as np
import onnx
import onnxruntime

COUNT = 100 if "EXPORT_ALL" in os.environ else 8
TYPES = {"tensor(uint8)": np.uint8, "tensor(int32)": np.int32,
         "tensor(float)": np.float32}


def open_session(path, level="ORT_ENABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = getattr(
        onnxruntime.GraphOptimizationLevel, level)
    return onnxruntime.InferenceSession(path, options,
                                        providers=["CPUExecutionProvider"])


def run(session, images):
    [name] = [value.name for value in session.get_inputs()]
    return np.concatenate([session.run(["prediction"], {name: part})[0]
                           for part in np.array_split(images, 3)])


def inputs(folder):
    [image] = open_session(f"{folder}/model.onnx").get_inputs()
    name = "text" if image.type == "tensor(int32)" else "image"
    assert image.name == name and image.shape[0] == "batch", image
    shape = [COUNT] + image.shape[1:]
    most = 60 if image.type == "tensor(int32)" else 256
    random = np.random.default_rng(0)
    values = random.integers(0, most, shape).astype(TYPES[image.type])
    np.save(f"{folder}/inputs.npy", values)


def agree(folder):
    path = f"{folder}/model.onnx"
    onnx.checker.check_model(onnx.load(path), full_check=True)
    images = np.load(f"{folder}/inputs.npy")
    expected = np.load(f"{folder}/trainer.npy")
    got = run(open_session(path), images)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    scale = np.abs(expected).max()
    spread = expected.reshape(COUNT, -1).std(axis=0).max()
    error = np.abs(got - expected).max()
    # Statistics of few steps amplify rounding, as onnxruntime shows by itself.
    plain = run(open_session(path, "ORT_DISABLE_ALL"), images)
    most = 1e-5 * scale + 4 * np.abs(got - plain).max()
    print(f"{path}: error {error / scale:.2g} of the largest output, at most "
          f"{most / scale:.2g}; it differs by {spread / scale:.2g} between "
          "inputs")
    assert spread > 1e-3 * scale, "the outputs do not depend on the input"
    assert error < most
    same = got.argmax(-1) == expected.argmax(-1)
    ordered = np.sort(expected, axis=-1)
    assert (same | (ordered[..., -1] - ordered[..., -2] < 2 * most)).all()


for folder in sys.argv[2:]:
    {"inputs": inputs, "agree": agree}[sys.argv[1]](folder)
