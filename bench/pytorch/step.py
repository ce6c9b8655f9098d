#!/usr/bin/python3
"""Training steps of resnet9 or airbench94 in PyTorch on a GPU.

usage: step.py MODEL [--compile] [--batch N] [--steps 50] [--rounds 5]
               [--precision f16|bf16|f32] [--width 64] [--device cuda]

channels_last and mixed precision (autocast, and a scaler of gradients with
f16).  The images are on the device as bytes; a step samples a batch of them,
augments and normalizes it there, trains and updates.  With --compile the
augmentation and the network are compiled by torch.compile with
mode="max-autotune".  Prints one line of JSON: the milliseconds of a step in
each round, which is timed from an idle device to an idle device.
"""
import argparse
import inspect
import json
import statistics
import time

import torch
from torch.nn.functional import cross_entropy, pad

from airbench94 import Lookahead, airbench94, parameter_groups
from resnet9 import resnet9

SAMPLES, WARM = 4096, 12
PRECISION = {"f16": torch.float16, "bf16": torch.bfloat16}
MEAN, STD = [125.31, 122.95, 113.87], [62.99, 62.09, 66.70]


def moved(images, border):
    """Crops each image to 32x32 at its own offset, with reflected edges."""
    n, where = len(images), images.device
    big = pad(images, (border,) * 4, mode="reflect")
    at = torch.arange(32, device=where)
    span = 2 * border + 1
    row = torch.randint(span, (n, 1), device=where) + at
    col = torch.randint(span, (n, 1), device=where) + at
    each = torch.arange(n, device=where)[:, None, None]
    # Indices on both sides of a slice come first.
    return big[each, :, row[:, :, None], col[:, None, :]].permute(0, 3, 1, 2)


def flipped(x):
    coin = torch.rand(len(x), 1, 1, 1, device=x.device) < 0.5
    return torch.where(coin, x.flip(3), x)


def holed(x):
    n, where = len(x), x.device
    at = torch.arange(32, device=where)
    row = at - torch.randint(25, (n, 1), device=where)
    col = at - torch.randint(25, (n, 1), device=where)
    hole = (((row >= 0) & (row < 8))[:, :, None]
            & ((col >= 0) & (col < 8))[:, None, :])
    return x.masked_fill(hole[:, None], 0.0)


def augmentation(model, mean, std):
    border = 4 if model == "resnet9" else 2

    def augment(images):
        x = (moved(images.float(), border) - mean) / std
        x = flipped(x)
        x = holed(x) if model == "resnet9" else x
        return x.contiguous(memory_format=torch.channels_last)
    return augment


class Training:
    def __init__(self, args):
        self.device = torch.device(args.device)
        self.batch, self.kind = args.batch, PRECISION.get(args.precision)
        lookahead = args.model == "airbench94"
        net = airbench94() if lookahead else resnet9(args.width)
        net = net.to(self.device, memory_format=torch.channels_last)
        fused = (self.device.type == "cuda"
                 and "fused" in inspect.signature(torch.optim.SGD).parameters)
        groups = parameter_groups(net) if lookahead else [
            {"params": list(net.parameters()), "lr": 0.4 / args.batch,
             "weight_decay": 5e-4 * args.batch}]
        self.sgd = torch.optim.SGD(groups, lr=0.0, nesterov=True,
                                   momentum=0.85 if lookahead else 0.9,
                                   **({"fused": True} if fused else {}))
        self.lookahead = Lookahead(net) if lookahead else None
        self.smoothing = 0.2 if lookahead else 0.0
        scaler = getattr(torch.amp, "GradScaler", None) \
            or torch.cuda.amp.GradScaler
        self.scaler = scaler(enabled=args.precision == "f16"
                             and self.device.type == "cuda")
        mean, std = (torch.tensor(v, device=self.device)[:, None, None]
                     for v in (MEAN, STD))
        self.augment, self.net = augmentation(args.model, mean, std), net
        self.begin = lambda: None
        if args.compile:
            self.begin = torch.compiler.cudagraph_mark_step_begin
            self.augment = torch.compile(self.augment, mode="max-autotune")
            self.net = torch.compile(net, mode="max-autotune")
        self.images = torch.randint(256, (SAMPLES, 3, 32, 32),
                                    dtype=torch.uint8, device=self.device)
        self.labels = torch.randint(10, (SAMPLES,), device=self.device)

    def loss(self, samples):
        x = self.augment(self.images[samples])
        with torch.autocast(self.device.type, dtype=self.kind,
                            enabled=self.kind is not None):
            return cross_entropy(self.net(x), self.labels[samples],
                                 reduction="sum",
                                 label_smoothing=self.smoothing)

    def step(self):
        self.begin()
        samples = torch.randint(SAMPLES, (self.batch,), device=self.device)
        self.sgd.zero_grad(set_to_none=True)
        self.scaler.scale(self.loss(samples)).backward()
        self.scaler.step(self.sgd)
        self.scaler.update()
        if self.lookahead:
            self.lookahead.step()

    def wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def milliseconds(self, steps):
        self.wait()
        began = time.perf_counter()
        for _ in range(steps):
            self.step()
        self.wait()
        return 1e3 * (time.perf_counter() - began) / steps


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("model", choices=["resnet9", "airbench94"])
    ap.add_argument("--compile", action="store_true")
    ap.add_argument("--batch", type=int)
    ap.add_argument("--steps", type=int, default=50)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--precision", default="f16",
                    choices=[*PRECISION, "f32"])
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--device", default="cuda")
    args = ap.parse_args()
    args.batch = args.batch or (512 if args.model == "resnet9" else 1024)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True

    training = Training(args)
    training.milliseconds(min(WARM, args.steps))
    rounds = [training.milliseconds(args.steps) for _ in range(args.rounds)]
    print(json.dumps({"ms": statistics.median(rounds), "rounds": rounds,
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
