"""models/airbench94.net in PyTorch: the network and its optimizer.

Initial values are PyTorch's defaults except for the dirac weights: they do not
affect the time of a step.
"""
import torch
from torch import nn

RATE, DECAY = 11.5 / 7850.67, 0.0153 * 1024 / 11.5
BIAS_FASTER = 64


def conv(c_in, c_out):
    layer = nn.Conv2d(c_in, c_out, 3, padding=1, bias=False)
    nn.init.dirac_(layer.weight[:c_in])
    return layer


def norm(c):
    layer = nn.BatchNorm2d(c, eps=1e-12, momentum=0.4)
    layer.weight.requires_grad = False
    return layer


def group(c_in, c_out):
    return [conv(c_in, c_out), nn.MaxPool2d(2), norm(c_out), nn.GELU(),
            conv(c_out, c_out), norm(c_out), nn.GELU()]


class Scale(nn.Module):
    def forward(self, x):
        return x * (1 / 9)


def airbench94():
    whiten = nn.Conv2d(3, 24, 2)
    whiten.weight.requires_grad = False
    return nn.Sequential(
        whiten, nn.GELU(),
        *group(24, 64), *group(64, 256), *group(256, 256),
        nn.MaxPool2d(3), nn.Flatten(), nn.Linear(256, 10, bias=False), Scale())


def parameter_groups(model):
    """Norms' biases have a higher learning rate; whiten's has the layers'."""
    norms = [m.bias for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    fast = {id(p) for p in norms}
    rest = [p for p in model.parameters()
            if p.requires_grad and id(p) not in fast]
    return [{"params": norms, "lr": RATE * BIAS_FASTER,
             "weight_decay": DECAY / BIAS_FASTER},
            {"params": rest, "lr": RATE, "weight_decay": DECAY}]


class Lookahead:
    """Every few steps the weights become their mean with an older copy."""

    def __init__(self, model, every=5, decay=0.95 ** 5):
        self.live = [p for p in model.parameters() if p.requires_grad]
        self.slow = [p.detach().clone() for p in self.live]
        self.every, self.decay, self.steps = every, decay, 0

    @torch.no_grad()
    def step(self):
        self.steps += 1
        if self.steps % self.every == 0:
            torch._foreach_mul_(self.slow, self.decay)
            torch._foreach_add_(self.slow, self.live, alpha=1 - self.decay)
            for live, slow in zip(self.live, self.slow):
                live.copy_(slow)
