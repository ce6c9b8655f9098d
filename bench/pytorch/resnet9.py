#!/usr/bin/python3
"""models/resnet9.net in PyTorch: the same recipe on the same files.

usage: resnet9.py DATA_DIR [--width 16] [--epochs 8] [--seed 0] [--threads 2]

DATA_DIR holds CIFAR-10's binary files.  Prints one line for each epoch; the
seconds and images/s count training with its augmentation, not evaluation.
"""
import argparse
import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

MEAN = np.array([125.31, 122.95, 113.87], np.float32)
STD = np.array([62.99, 62.09, 66.70], np.float32)
BATCH = 512


def conv_bn(c_in, c_out):
    return [nn.Conv2d(c_in, c_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(c_out), nn.ReLU()]


class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.body = nn.Sequential(*conv_bn(c, c), *conv_bn(c, c))

    def forward(self, x):
        return x + self.body(x)


class Scale(nn.Module):
    def forward(self, x):
        return x * 0.125


def resnet9(w):
    return nn.Sequential(
        *conv_bn(3, w),
        *conv_bn(w, 2 * w), nn.MaxPool2d(2), Residual(2 * w),
        *conv_bn(2 * w, 4 * w), nn.MaxPool2d(2),
        *conv_bn(4 * w, 8 * w), nn.MaxPool2d(2), Residual(8 * w),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(),
        nn.Linear(8 * w, 10, bias=False), Scale())


def load(files):
    raw = np.concatenate([np.fromfile(f, np.uint8) for f in files])
    raw = raw.reshape(-1, 3073)
    image = raw[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(image), raw[:, 0].astype(np.int64)


def normalize(image):
    """uint8 [N,H,W,C] -> float [N,C,H,W], channels last in memory."""
    return torch.from_numpy((image - MEAN) / STD).permute(0, 3, 1, 2)


def windows(image):
    """A view of every 32x32 crop of the images, padded by 4 with reflection."""
    padded = np.pad(image, ((0, 0), (4, 4), (4, 4), (0, 0)), mode="reflect")
    view = np.lib.stride_tricks.sliding_window_view(padded, (32, 32), (1, 2))
    return view.transpose(0, 1, 2, 4, 5, 3)  # [N,9,9,32,32,3]


def augment(crops, samples, rng):
    """Crop, flip with probability 1/2, and an 8x8 hole of the mean color."""
    n = len(samples)
    x = normalize(crops[samples, rng.integers(9, size=n),
                        rng.integers(9, size=n)])
    flip = torch.from_numpy(rng.integers(2, size=n).astype(bool))
    x = torch.where(flip[:, None, None, None], x.flip(3), x)
    at = np.arange(32)
    rows = at - rng.integers(25, size=n)[:, None]
    cols = at - rng.integers(25, size=n)[:, None]
    hole = (((rows >= 0) & (rows < 8))[:, :, None]
            & ((cols >= 0) & (cols < 8))[:, None, :])
    return x.masked_fill(torch.from_numpy(hole)[:, None], 0.0)


def accuracy(model, x, label):
    model.eval()
    with torch.no_grad():
        hits = [(model(xs).argmax(1) == ys).sum().item()
                for xs, ys in zip(x.split(500), label.split(500))]
    model.train()
    return sum(hits) / len(label)


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("data", type=pathlib.Path)
    ap.add_argument("--width", type=int, default=16)
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--steps", type=int, help="stop after this many updates")
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    image, label = load(sorted(args.data.glob("data_batch_*.bin")))
    test_image, test_label = load([args.data / "test_batch.bin"])
    crops, test_x = windows(image), normalize(test_image)
    label, test_label = torch.from_numpy(label), torch.from_numpy(test_label)

    model = resnet9(args.width).to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), lr=0.0, momentum=0.9,
                          nesterov=True, weight_decay=5e-4 * BATCH)
    per_epoch = len(image) // BATCH
    total, step, train_s = per_epoch * args.epochs, 0, 0.0
    last = min(total, args.steps or total)
    while step < last:
        began, first, order = time.time(), step, rng.permutation(len(image))
        loss_sum = 0.0
        for s in range(min(per_epoch, last - step)):
            samples = order[s * BATCH:(s + 1) * BATCH]
            lr = np.interp(step / total, [0, 5 / 24, 1], [0, 0.4, 0])
            sgd.param_groups[0]["lr"] = lr / BATCH
            loss = cross_entropy(model(augment(crops, samples, rng)),
                                 label[samples], reduction="sum")
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            loss_sum += loss.item()
            step += 1
        train_s += time.time() - began
        print(f"epoch {step / per_epoch:5.2f}  "
              f"loss {loss_sum / BATCH / (step - first):.4f}  "
              f"accuracy {accuracy(model, test_x, test_label):.4f}  "
              f"{step * BATCH / train_s:.0f} images/s  "
              f"{train_s:.1f} s of training", flush=True)


if __name__ == "__main__":
    main()
