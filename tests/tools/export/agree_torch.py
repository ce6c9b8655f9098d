#!/usr/bin/env python3
"""The modules that sinter export --pytorch writes beside their trainers.

usage: agree_torch.py FOLDER...    with model.py, inputs.npy and trainer.npy
"""

import importlib.util
import sys
import unittest.mock

import numpy as np
import torch


def run(model, images):
    with torch.no_grad():
        return torch.cat([model(part)
                          for part in images.tensor_split(3)]).numpy()


def in_double(model, images):
    """The same; a model turns bytes to numbers by Tensor.float."""
    if images.is_floating_point():
        images = images.double()
    with unittest.mock.patch.object(torch.Tensor, "float",
                                    torch.Tensor.double):
        return run(model.double(), images)


def agree(folder):
    spec = importlib.util.spec_from_file_location("exported",
                                                  f"{folder}/model.py")
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    model = exported.load()
    assert len(list(model.named_modules())) > 1
    images = torch.from_numpy(np.load(f"{folder}/inputs.npy"))
    expected = np.load(f"{folder}/trainer.npy")
    got = run(model, images)
    exact = in_double(model, images)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    scale = abs(exact).max()
    # Statistics of few steps amplify rounding, in PyTorch's f32 as well.
    error = abs(expected - exact).max() / scale
    most = 4 * abs(got - exact).max() / scale + 1e-5
    print(f"{folder}: error {error:.2g} of the largest output, at most "
          f"{most:.2g}")
    assert error < most


for folder in sys.argv[1:]:
    agree(folder)
