"""Muon, which PyTorch has not: Jordan et al., 2024."""

import math

import torch


def orthogonalize(u, iterations, coefficients):
    """Jordan's zeropower_via_newtonschulz5, in the type of u."""
    a, b, c = coefficients
    x = u / (u.norm() + 1e-7)
    if u.shape[0] > u.shape[1]:
        x = x.T
    for _ in range(iterations):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if u.shape[0] > u.shape[1] else x


class Muon:
    """As cifar10-airbench's speed run has it; filters are rows."""

    def __init__(
        self,
        params,
        lr,
        momentum=0.95,
        nesterov=True,
        decay=0,
        renormalize=False,
        iterations=5,
        coefficients=(3.4445, -4.7750, 2.0315),
    ):
        self.params, self.lr, self.momentum = list(params), lr, momentum
        self.nesterov, self.decay = nesterov, decay
        self.renormalize, self.iterations = renormalize, iterations
        self.coefficients = coefficients
        self.velocity = [torch.zeros_like(p) for p in self.params]

    @torch.no_grad()
    def step(self, update):
        for w, v in zip(self.params, self.velocity):
            v.mul_(self.momentum).add_(w.grad)
            u = w.grad + self.momentum * v if self.nesterov else v
            if self.renormalize:
                w.mul_(math.sqrt(w.shape[0]) / w.norm())
            w.mul_(1 - self.lr(update) * self.decay)
            u = orthogonalize(u.flatten(1), self.iterations, self.coefficients)
            w.sub_(self.lr(update) * u.view_as(w))
