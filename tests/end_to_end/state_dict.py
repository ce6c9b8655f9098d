#!/usr/bin/env python3
"""The network of state_dict.net in PyTorch.

usage: state_dict.py write WEIGHTS.safetensors INPUTS.npy LOGITS.npy
       state_dict.py compare LOGITS.npy LOGITS.npy
       state_dict.py torchvision NAME MODEL.net SIZE    writes the same files

torchvision's networks get random weights, and the statistics of the images.
"""

import collections
import json
import re
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
        ("up", nn.Sequential(
            nn.ConvTranspose2d(12, 8, 3, 2, 1, 1, groups=2), nn.ReLU())),
        ("mix", nn.Conv2d(8, 6, 1)),
        ("rows", nn.Flatten(2)),
        ("line", nn.Conv1d(6, 7, 3, padding=1)),
        ("mean", nn.AdaptiveAvgPool1d(1)),
        ("flat", nn.Flatten()),
        ("classifier", nn.Linear(7, 5))]))


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


def torchvision(name, model, size):
    import torch
    import torchvision as vision
    torch.manual_seed(1)
    net = getattr(vision.models, name)()
    mean, std = (torch.tensor([float(v) for v in re.search(
        key + r"=\[([^\]]*)\]", open(model).read())[1].split(",")])
        for key in ("mean", "std"))
    size = int(size)
    images = np.random.default_rng(1).integers(0, 256, (8, size, size, 3))
    x = ((torch.tensor(images).float() - mean) / std).permute(0, 3, 1, 2)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
        net.train()
        net(x)
        net.eval()
        np.save("torch.npy", net(x).numpy())
    np.save("inputs.npy", images.astype(np.uint8))
    save("weights.safetensors", net.state_dict())


def compare(one, other):
    one, other = np.load(one), np.load(other)
    largest = np.abs(other).max()
    error = np.abs(one - other).max() / largest
    spread = other.std(axis=0).max() / largest
    print(f"error {error:.2g} of the largest logit, spread {spread:.2g}")
    assert error < 1e-4 and spread > 0.01


if __name__ == "__main__":
    {"write": write, "compare": compare, "torchvision": torchvision}[
        sys.argv[1]](*sys.argv[2:])
