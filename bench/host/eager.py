#!/usr/bin/python3
"""Training steps of models/resnet9.net in PyTorch, eager and channels_last.

usage: eager.py [--width 16] [--batch 128] [--steps 8] [--threads 2]

Prints the images/s of the steps after the first two.  The batch is made
beforehand: no loading, no augmentation.
"""
import argparse
import pathlib
import sys
import time

import torch
from torch.nn.functional import cross_entropy

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "pytorch"))
from resnet9 import resnet9  # noqa: E402

WARM = 2


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--width", type=int, default=16)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--steps", type=int, default=8)
    ap.add_argument("--threads", type=int, default=2)
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    x = torch.randn(args.batch, 3, 32, 32)
    x = x.to(memory_format=torch.channels_last)
    label = torch.randint(10, (args.batch,))
    model = resnet9(args.width).to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9,
                          nesterov=True, weight_decay=5e-4)
    for step in range(WARM + args.steps):
        if step == WARM:
            began = time.perf_counter()
        loss = cross_entropy(model(x), label, reduction="sum")
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        loss.item()
    seconds = time.perf_counter() - began
    print(f"{args.steps * args.batch / seconds:.0f}")


if __name__ == "__main__":
    main()
