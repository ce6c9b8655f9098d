#!/usr/bin/env python3
"""The modules that sinter export --pytorch writes beside their trainers.

usage: agree_torch.py FOLDER...    with model.py, inputs.npy and trainer.npy
"""

import importlib.util
import sys

import numpy as np
import torch



def run(model, images, mkldnn):
    torch.backends.mkldnn.enabled = mkldnn
    with torch.no_grad():
        return torch.cat([model(part)
                          for part in images.tensor_split(3)]).numpy()


def agree(folder):
    spec = importlib.util.spec_from_file_location("exported",
                                                  f"{folder}/model.py")
    exported = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exported)
    model = exported.load()
    assert len(list(model.named_modules())) > 1
    images = torch.from_numpy(np.load(f"{folder}/inputs.npy"))
    expected = np.load(f"{folder}/trainer.npy")
    got = run(model, images, True)
    # Statistics of few steps amplify rounding: so does another order of sums.
    plain = run(model, images, False)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    scale = abs(expected).max()
    error, most = abs(got - expected).max(), 4 * abs(got - plain).max()
    most += 1e-5 * scale
    print(f"{folder}: error {error / scale:.2g} of the largest output, at "
          f"most {most / scale:.2g}")
    assert error < most


for folder in sys.argv[1:]:
    agree(folder)
