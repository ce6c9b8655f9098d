"""A network of PyTorch's own, and its weights as a trainer starts with them.

    turned.py FOLDER

writes turned.safetensors to tests/golden/weights, by the recipe of
docs/trainer.md, and turned.txt: the loss of the test split in double, and the
share that is right; then the losses of training on, on one batch, while
batch_norm stays in eval().  Filters are in f16, statistics in f32.
"""

import json
import os
import struct
import sys

import numpy as np
import torch
from torch import nn

import data

SAMPLES, SHAPE, CLASSES = 192, (6, 6, 3), 10
BATCH, STEPS, RATE = 64, 10, 0.05


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 3, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(3)
        self.conv2 = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(72, CLASSES)

    def forward(self, x):
        x = torch.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        return self.fc(torch.relu(self.conv2(x)).flatten(1))


NAMES = {
    "conv1.weight": "stem.conv_1.weight",
    "bn1.weight": "stem.batch_norm_1.scale",
    "bn1.bias": "stem.batch_norm_1.bias",
    "bn1.running_mean": "stem.batch_norm_1.running_mean",
    "bn1.running_var": "stem.batch_norm_1.running_var",
    "conv2.weight": "body.weight",
    "conv2.bias": "body.bias",
    "fc.weight": "head.weight",
    "fc.bias": "head.bias",
}


def turned(net):
    """The weights by the names of the model, with channels last."""
    weights = {}
    for name, w in net.state_dict().items():
        if name == "fc.weight":  # its columns are 8 channels of 3 x 3 places
            w = w.view(-1, 8, 3, 3)
        if w.dim() == 4:
            w = w.permute(0, 2, 3, 1)
        if name == "fc.weight":
            w = w.flatten(1)
        if name in NAMES:
            weights[NAMES[name]] = w
    return weights


def save(path, tensors):
    """What safetensors.torch.save_file writes."""
    header, parts, at = {}, [], 0
    for name, t in tensors.items():
        bytes_ = t.contiguous().numpy().tobytes()
        kind = {torch.float16: "F16", torch.float32: "F32"}[t.dtype]
        header[name] = {
            "dtype": kind,
            "shape": list(t.shape),
            "data_offsets": [at, at + len(bytes_)],
        }
        parts.append(bytes_)
        at += len(bytes_)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(parts))


def trained():
    """A network whose statistics are not those that it begins with."""
    torch.manual_seed(0)
    net = Net()
    samples = data.Synthetic(SHAPE, CLASSES, SAMPLES)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for step in range(30):
        x, labels = as_tensors(*samples.batch(step, BATCH))
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), labels).backward()
        optimizer.step()
    with torch.no_grad():
        for w in net.parameters():
            w.copy_(w.half())
    return net.eval()


def as_tensors(images, labels):
    x = torch.from_numpy(images).permute(0, 3, 1, 2).float()
    return (x - 128) / 64, torch.from_numpy(labels.astype(np.int64))


def tuned(net):
    """The losses of more steps on one batch, whose statistics do not count."""
    samples = data.Synthetic(SHAPE, CLASSES, BATCH)
    x, labels = as_tensors(*samples.batch(0, BATCH))
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x.double()), labels)
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    folder = sys.argv[1]
    net = trained()
    save(
        os.path.join(folder, "turned.safetensors"),
        {
            name: w if "running" in name else w.half()
            for name, w in turned(net).items()
        },
    )
    samples = data.Synthetic(SHAPE, CLASSES, SAMPLES, test=True)
    x, labels = as_tensors(*samples.whole())
    output = net.double()(x.double())
    loss = nn.functional.cross_entropy(output, labels).item()
    right = (output.argmax(1) == labels).double().mean().item()
    with open(os.path.join(folder, "turned.txt"), "w") as f:
        f.write(f"{SAMPLES} {loss:.9g} {right:.9g}\n")
        f.write(f"{BATCH} {STEPS} {RATE}\n")
        for loss in tuned(net):
            f.write(f"{loss:.9g}\n")


main()
