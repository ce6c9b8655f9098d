#!/usr/bin/python3
"""Training steps of models/resnet9.net in PyTorch, channels_last.

usage: steps.py [--width 16] [--batch 128] [--steps 32] [--threads 2] [--compile]
                [--model resnet9|gpt_nano] [--fused]
                [--layer gru|lstm|rnn [--positions 256] [--vocabulary 65]]

Prints seconds and CPU seconds of a step, after warm-up.  The batch is prepared
before: no loading, no augmentation.  --compile compiles the model and its loss
by torch.compile, which PyTorch has from version 2 on.  --layer takes a recurrent
layer between an embedding and a linear layer instead.  --fused computes the
attention of gpt_nano by scaled_dot_product_attention.
"""
import argparse
import pathlib
import sys
import time

import torch
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "pytorch"))
from gpt_nano import LENGTH, GptNano, adamw  # noqa: E402
from resnet9 import resnet9  # noqa: E402

WARM = 4


def images(args):
    """A batch of images and their labels, ResNet-9, its update and loss."""
    x = torch.randn(args.batch, 3, 32, 32)
    x = x.to(memory_format=torch.channels_last)
    label = torch.randint(10, (args.batch,))
    model = resnet9(args.width).to(memory_format=torch.channels_last)
    sgd = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9,
                          nesterov=True, weight_decay=5e-4)
    return x, label, model, sgd.step, lambda x, label: cross_entropy(
        model(x), label, reduction="sum")


def texts(args):
    """The same of a recurrent layer and a batch of texts."""
    kind = getattr(torch.nn, args.layer.upper())
    layers = torch.nn.ModuleList([
        torch.nn.Embedding(args.vocabulary, args.width),
        kind(args.width, args.width, batch_first=True),
        torch.nn.Linear(args.width, args.vocabulary)])
    x, label = torch.randint(args.vocabulary, (2, args.batch, args.positions))
    optimizer = torch.optim.AdamW(layers.parameters(), lr=1e-3)

    def loss_of(x, label):
        embed, recur, head = layers
        output = head(recur(embed(x))[0])
        return cross_entropy(output.flatten(0, 1), label.flatten())

    return x, label, layers, optimizer.step, loss_of


def characters(args):
    """The same of GPT and a batch of texts, whose gradients are clipped."""
    model = GptNano(args.width, fused=args.fused)
    x, label = torch.randint(args.vocabulary, (2, args.batch, LENGTH))
    optimizer = adamw(model)

    def update():
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return x, label, model, update, lambda x, label: cross_entropy(
        model(x).flatten(0, 1), label.flatten())


def main():
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--width", type=int, default=16)
    ap.add_argument("--batch", type=int, default=128)
    ap.add_argument("--steps", type=int, default=32)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--compile", action="store_true")
    ap.add_argument("--model", default="resnet9",
                    choices=("resnet9", "gpt_nano"))
    ap.add_argument("--fused", action="store_true")
    ap.add_argument("--layer")
    ap.add_argument("--positions", type=int, default=256)
    ap.add_argument("--vocabulary", type=int, default=65)
    args = ap.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)

    network = (texts if args.layer else
               characters if args.model == "gpt_nano" else images)
    x, label, model, update, loss_of = network(args)
    if args.compile:
        loss_of = torch.compile(loss_of)
    for step in range(WARM + args.steps):
        if step == WARM:
            began, used = time.perf_counter(), time.process_time()
        loss = loss_of(x, label)
        model.zero_grad()
        loss.backward()
        update()
        loss.item()
    seconds, spent = time.perf_counter() - began, time.process_time() - used
    print(seconds / args.steps, spent / args.steps)


if __name__ == "__main__":
    main()
