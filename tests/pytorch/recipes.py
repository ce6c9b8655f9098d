"""How each model of models/ is judged: its build, and its training step.

A model is built in f32, without augmentation, and where it would be too slow
for a test narrower or smaller; `build` says how.  `update` makes a PyTorch
optimizer, and a function that sets its numbers for a step.
"""

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

import nets

STEPS = 20


@dataclass
class Recipe:
    forward: callable
    loss: callable
    update: callable
    batch: int = 16
    samples: int = 16  # of the data set: the same batch again and again
    shape: tuple = (32, 32, 3)  # of an image
    settings: dict = field(default_factory=dict)  # of the build
    classes: int = 10
    frozen: tuple = ()


def mean_loss(logits, labels):
    return F.cross_entropy(logits, labels)


def sum_loss(logits, labels):
    return F.cross_entropy(logits, labels, reduction="sum")


def piecewise(*knots):
    """The line through (share of the run, value)."""

    def at(progress):
        for (a, u), (b, v) in zip(knots, knots[1:]):
            if progress < b:
                return u + (v - u) * (progress - a) / (b - a)
        return knots[-1][1]

    return at


def cosine(start):
    return lambda progress: start * (1 + math.cos(math.pi * progress)) / 2


def with_rate(make, rate):
    """An optimizer of all that trains, under a schedule."""

    def update(net):
        optimizer = make(net.trained().values())

        def set_step(step):
            for group in optimizer.param_groups:
                group["lr"] = rate(step / STEPS)

        return optimizer, set_step

    return update


def sgd(rate, momentum=0.9, nesterov=False, decay=5e-4):
    def make(parameters):
        return torch.optim.SGD(
            parameters,
            lr=1,
            momentum=momentum,
            nesterov=nesterov,
            weight_decay=decay,
        )

    return with_rate(make, rate)


def summed(peak, batch, *knots):
    """Nesterov under a summed loss: the rate per sample, decay per batch."""
    lr = piecewise(*((place, share * peak) for place, share in knots))
    return sgd(lambda p: lr(p) / batch, nesterov=True, decay=5e-4 * batch)


RECIPES = {
    "lenet": Recipe(
        forward=nets.lenet,
        loss=mean_loss,
        update=with_rate(
            lambda p: torch.optim.AdamW(p, weight_decay=0.01), lambda p: 1e-3
        ),
        shape=(28, 28, 1),
    ),
    "mlp": Recipe(
        forward=nets.mlp,
        loss=mean_loss,
        update=with_rate(torch.optim.Adam, lambda p: 1e-3),
        samples=80,
        shape=(28, 28, 1),
    ),
    "resnet9": Recipe(
        forward=nets.resnet9,
        loss=sum_loss,
        update=summed(0.002, 16, (0, 0), (5 / 24, 1), (1, 0)),
        settings={"width": "16", "lr": "piecewise(0: 0, 5/24: 0.002, 1: 0)"},
    ),
    "resnet18": Recipe(
        forward=nets.resnet18,
        loss=mean_loss,
        update=sgd(cosine(3e-4)),
        settings={"width": "8", "lr": "cosine(3e-4)"},
    ),
    "vgg16_bn": Recipe(
        forward=nets.vgg16_bn,
        loss=mean_loss,
        update=sgd(cosine(3e-4)),
        settings={"width": "8", "lr": "cosine(3e-4)"},
    ),
    "preact_resnet18": Recipe(
        forward=nets.preact_resnet18,
        loss=sum_loss,
        update=summed(0.0005, 16, (0, 0), (15 / 35, 1), (30 / 35, 0.05), (1, 0)),
        settings={
            "width": "8",
            "lr": "piecewise(0: 0, 15/35: 0.0005, 30/35: 0.000025, 1: 0)",
        },
    ),
}
