#!/usr/bin/env python3
"""The network of state_dict.net in PyTorch.

usage: state_dict.py write WEIGHTS.safetensors INPUTS.npy LOGITS.npy
       state_dict.py compare LOGITS.npy LOGITS.npy
"""

import collections
import json
import sys

import numpy as np


def save(path, tensors):
    """What safetensors.torch.save_file writes."""
    kinds = {"float32": "F32", "int64": "I64"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        array = tensor.numpy()
        header[name] = {"dtype": kinds[str(array.dtype)],
                        "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def network():
    from torch import nn
    return nn.Sequential(collections.OrderedDict([
        ("stem", nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False),
                               nn.BatchNorm2d(8), nn.ReLU())),
        ("pool", nn.MaxPool2d(2)),
        ("body", nn.Sequential(collections.OrderedDict([
            ("conv", nn.Conv2d(8, 12, 3, padding=1, groups=2, bias=False)),
            ("norm", nn.BatchNorm2d(12)), ("relu", nn.ReLU())]))),
        ("mix", nn.Conv2d(12, 6, 1)),
        ("mean", nn.AdaptiveAvgPool2d(1)),
        ("flat", nn.Flatten()),
        ("classifier", nn.Linear(6, 5))]))


def write(weights, inputs, logits):
    import torch
    torch.manual_seed(1)
    net = network()
    images = np.random.default_rng(1).integers(0, 256, (40, 8, 8, 3))
    x = torch.tensor((images - 128) / 64).float().permute(0, 3, 1, 2)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn_like(parameter) / 2)
        net.train()
        net(x * 2)  # moves the running statistics
        net.eval()
        np.save(logits, net(x).numpy())
    np.save(inputs, images.astype(np.uint8))
    save(weights, net.state_dict())


def compare(one, other):
    one, other = np.load(one), np.load(other)
    error = np.abs(one - other).max() / np.abs(other).max()
    print(f"error {error:.2g} of the largest logit")
    assert error < 1e-5


{"write": write, "compare": compare}[sys.argv[1]](*sys.argv[2:])
