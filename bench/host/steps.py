#!/usr/bin/python3
"""Training steps of models/resnet9.net in PyTorch, channels_last.

usage: steps.py [--width 16] [--batch 128] [--steps 32] [--threads 2] [--compile]

Prints seconds and CPU seconds of a step, after warm-up.  The batch is prepared
before: no loading, no augmentation.  --compile compiles the model and its loss
by torch.compile, which PyTorch has from version 2 on.
"""
import argparse
import pathlib
import sys
import time

import torch
from torch.nn.functional import cross_entropy

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "pytorch"))
from resnet9 import resnet9  # noqa: E402

WARM = 4


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--width", type=int, default=16)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--steps", type=int, default=32)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--compile", action="store_true")
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    x = torch.randn(args.batch, 3, 32, 32)
    x = x.to(memory_format=torch.channels_last)
    label = torch.randint(10, (args.batch,))
    model = resnet9(args.width).to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9,
                          nesterov=True, weight_decay=5e-4)

    def loss_of(x, label):
        return cross_entropy(model(x), label, reduction="sum")

    if args.compile:
        loss_of = torch.compile(loss_of)
    for step in range(WARM + args.steps):
        if step == WARM:
            began, used = time.perf_counter(), time.process_time()
        loss = loss_of(x, label)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        loss.item()
    seconds, spent = time.perf_counter() - began, time.process_time() - used
    print(seconds / args.steps, spent / args.steps)


if __name__ == "__main__":
    main()
