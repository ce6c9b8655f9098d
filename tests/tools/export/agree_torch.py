#!/usr/bin/env python3
"""The module that sinter export --pytorch writes beside the trainer.

usage: agree_torch.py FILE.py INPUTS.npy PREDICTIONS.npy
"""

import importlib.util
import sys

import numpy as np
import torch

path, images, predictions = sys.argv[1:]
spec = importlib.util.spec_from_file_location("exported", path)
exported = importlib.util.module_from_spec(spec)
spec.loader.exec_module(exported)
model = exported.load()
assert len(list(model.named_modules())) > 1
images, expected = torch.from_numpy(np.load(images)), np.load(predictions)
parts = images.tensor_split(3)
with torch.no_grad():
    got = torch.cat([model(part) for part in parts]).numpy()
    # Statistics of few steps amplify rounding: so does another order of sums.
    torch.backends.mkldnn.enabled = False
    plain = torch.cat([model(part) for part in parts]).numpy()
assert got.shape == expected.shape, (got.shape, expected.shape)
scale = abs(expected).max()
error, most = abs(got - expected).max(), 4 * abs(got - plain).max()
most += 1e-5 * scale
print(f"{path}: error {error / scale:.2g} of the largest output, at most "
      f"{most / scale:.2g}")
assert error < most
