"""Updates by group of parameters, and averages of weights, as recipes have them."""

from fnmatch import fnmatchcase

import torch

from muon import Muon


class Sgd:
    """A group under Nesterov's momentum; rate is a function of the step."""

    def __init__(self, glob, rate, momentum, decay, until=None):
        self.glob, self.rate, self.until = glob, rate, until
        self.numbers = {"momentum": momentum, "weight_decay": decay}

    def begin(self, params):
        self.params = params
        self.optimizer = torch.optim.SGD(
            params, lr=1, nesterov=True, **self.numbers
        )

    def step(self, step):
        if self.until is None or step < self.until:
            self.optimizer.param_groups[0]["lr"] = self.rate(step)
            self.optimizer.step()


class Orthogonal:
    """A group under Muon."""

    def __init__(self, glob, rate, **numbers):
        self.glob, self.rate, self.numbers = glob, rate, numbers

    def begin(self, params):
        self.optimizer = Muon(params, self.rate, **self.numbers)

    def step(self, step):
        self.optimizer.step(step)


class Groups:
    """Of the groups that name a parameter the last has it."""

    def __init__(self, net, groups):
        self.groups, self.now = groups, 0
        self.all = list(net.trained().values())
        chosen = [[] for _ in groups]
        for name, p in net.trained().items():
            fits = [fnmatchcase(name, g.glob) for g in groups]
            chosen[max(i for i, fit in enumerate(fits) if fit)].append(p)
        for group, params in zip(groups, chosen):
            group.begin(params)

    def set_step(self, step):
        self.now = step

    def zero_grad(self):
        for p in self.all:
            p.grad = None

    def step(self):
        for group in self.groups:
            group.step(self.now)


def by_group(*groups):
    def update(net):
        optimizer = Groups(net, groups)
        return optimizer, optimizer.set_step

    return update


class Averages:
    """Of weights and statistics, every few steps; lookahead writes them back."""

    def __init__(self, net, decay, every, start, back):
        self.decay, self.every, self.start, self.back = decay, every, start, back
        self.values = [*net.parameters.values(), *net.statistics.values()]
        self.average = [v.detach().clone() for v in self.values]

    @torch.no_grad()
    def step(self, done):
        if done > self.start and done % self.every != 0:
            return
        decay = self.decay(done) if done > self.start else 0
        for value, average in zip(self.values, self.average):
            average.lerp_(value, 1 - decay)
        if self.back:
            self.use()

    @torch.no_grad()
    def use(self):
        for value, average in zip(self.values, self.average):
            value.copy_(average)


def lookahead(decay, every=5, start=0):
    return lambda net: Averages(net, decay, every, start, True)


def ema(decay, every=5):
    return lambda net: Averages(net, lambda done: decay, every, 0, False)
