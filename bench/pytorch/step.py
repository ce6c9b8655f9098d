#!/usr/bin/python3
"""Training steps of resnet9, airbench94 or gpt_nano in PyTorch on a GPU.

usage: step.py MODEL [--compile] [--compile-optimizer] [--batch N] [--steps 50]
               [--rounds 5] [--precision f16|bf16|half|f32] [--width 64]
               [--device cuda]

Images are channels_last.  f16 and bf16 are autocast, f16 with a scaler of
gradients; half has weights, activations and gradients in f16 but for the norms,
and no scaler, as airbench94's author trains it.  The samples are on the device,
images as bytes; a step takes a batch of them, augments and normalizes it there,
trains and updates.  With --compile the augmentation and the network are
compiled by torch.compile with mode="max-autotune", with --compile-optimizer the
update, which is otherwise PyTorch's fused one.  Prints one line of JSON: the
milliseconds of a step in each round, which is timed from an idle device to an
idle device.
"""
import argparse
import inspect
import json
import statistics
import time

import torch
from torch.nn.functional import cross_entropy, pad
from torch.nn.utils import clip_grad_norm_

from airbench94 import Lookahead, airbench94, parameter_groups
from gpt_nano import LENGTH, GptNano, adamw
from resnet9 import resnet9

SAMPLES, WARM, VOCABULARY = 4096, 12, 65
BATCH = {"resnet9": 512, "airbench94": 1024, "gpt_nano": 64}
AUTOCAST = {"f16": torch.float16, "bf16": torch.bfloat16}
MEAN, STD = [125.31, 122.95, 113.87], [62.99, 62.09, 66.70]


def moved(images, border):
    """Crops each image to 32x32 at its own offset, with reflected edges."""
    n, where = len(images), images.device
    span = 2 * border + 1
    row, col = torch.randint(span, (2, n), device=where)
    windows = pad(images, (border,) * 4, mode="reflect")
    windows = windows.unfold(2, 32, 1).unfold(3, 32, 1)
    return windows[torch.arange(n, device=where), :, row, col]


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


class Images:
    """Batches of augmented images."""

    def __init__(self, args):
        device = args.device
        mean, std = (torch.tensor(v, device=device)[:, None, None]
                     for v in (MEAN, STD))
        self.augment = augmentation(args.model, mean, std)
        if args.compile:
            self.augment = torch.compile(self.augment, mode="max-autotune")
        self.type = torch.half if args.precision == "half" else torch.float
        self.images = torch.randint(256, (SAMPLES, 3, 32, 32),
                                    dtype=torch.uint8, device=device)
        self.labels = torch.randint(10, (SAMPLES,), device=device)

    def batch(self, samples):
        x = self.augment(self.images[samples])
        return x.to(self.type), self.labels[samples]


class Texts:
    """Batches of texts, each with the next token of each of its tokens."""

    def __init__(self, args):
        self.tokens = torch.randint(VOCABULARY, (SAMPLES, LENGTH + 1),
                                    device=args.device)

    def batch(self, samples):
        text = self.tokens[samples]
        return text[:, :-1], text[:, 1:]


def halved(net):
    """All in f16 but for the norms."""
    net.half()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.float()


def fused(args, optimizer):
    """Asks for PyTorch's own kernel of the whole update."""
    known = "fused" in inspect.signature(optimizer).parameters
    ours = args.device.startswith("cuda") and not args.compile_optimizer
    return {"fused": True} if known and ours else {}


def network(args):
    """The network, its optimizer, and the factor of the labels' smoothing."""
    sgd = fused(args, torch.optim.SGD)
    if args.model == "gpt_nano":
        net = GptNano(fused=True).to(args.device)
        return net, adamw(net, **fused(args, torch.optim.AdamW)), 0.0
    net = resnet9(args.width) if args.model == "resnet9" else airbench94()
    net.to(args.device, memory_format=torch.channels_last)
    if args.precision == "half":
        halved(net)
    if args.model == "resnet9":
        rate, decay = 0.4 / args.batch, 5e-4 * args.batch
        return net, torch.optim.SGD(net.parameters(), lr=rate, momentum=0.9,
                                    nesterov=True, weight_decay=decay,
                                    **sgd), 0.0
    return net, torch.optim.SGD(parameter_groups(net), lr=0.0, momentum=0.85,
                                nesterov=True, **sgd), 0.2


class Training:
    def __init__(self, args):
        self.device = torch.device(args.device)
        self.batch, self.kind = args.batch, AUTOCAST.get(args.precision)
        self.data = (Texts if args.model == "gpt_nano" else Images)(args)
        self.net, self.optimizer, self.smoothing = network(args)
        self.reduction = "mean" if args.model == "gpt_nano" else "sum"
        self.clipped = (list(self.net.parameters())
                        if args.model == "gpt_nano" else [])
        self.lookahead = (Lookahead(self.net)
                          if args.model == "airbench94" else None)
        scaler = getattr(torch.amp, "GradScaler", None) \
            or torch.cuda.amp.GradScaler
        self.scaler = scaler(enabled=args.precision == "f16"
                             and self.device.type == "cuda")
        self.begin = lambda: None
        if args.compile:
            self.begin = torch.compiler.cudagraph_mark_step_begin
            self.net = torch.compile(self.net, mode="max-autotune")
        if args.compile_optimizer:
            self.update = torch.compile(self.update)

    def loss(self, samples):
        x, label = self.data.batch(samples)
        with torch.autocast(self.device.type, dtype=self.kind,
                            enabled=self.kind is not None):
            y = self.net(x)
            return cross_entropy(y.flatten(0, -2), label.flatten(),
                                 reduction=self.reduction,
                                 label_smoothing=self.smoothing)

    def update(self):
        if self.clipped:
            clip_grad_norm_(self.clipped, 1.0)
        self.optimizer.step()

    def step(self):
        self.begin()
        samples = torch.randint(SAMPLES, (self.batch,), device=self.device)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(self.loss(samples)).backward()
        if self.scaler.is_enabled():
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.update()
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
    ap.add_argument("model", choices=BATCH)
    ap.add_argument("--compile", action="store_true")
    ap.add_argument("--compile-optimizer", action="store_true")
    ap.add_argument("--batch", type=int)
    ap.add_argument("--steps", type=int, default=50)
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--precision", choices=[*AUTOCAST, "half", "f32"])
    ap.add_argument("--width", type=int, default=64)
    ap.add_argument("--device", default="cuda")
    args = ap.parse_args()
    args.batch = args.batch or BATCH[args.model]
    args.precision = args.precision or (
        "bf16" if args.model == "gpt_nano" else "f16")
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True

    training = Training(args)
    training.milliseconds(min(WARM, args.steps))
    rounds = [training.milliseconds(args.steps) for _ in range(args.rounds)]
    print(json.dumps({"ms": statistics.median(rounds), "rounds": rounds,
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
