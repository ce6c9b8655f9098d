# writes schedules.txt
"""Learning rates of PyTorch's schedulers, one for each update of a run."""
import warnings

import numpy as np
import torch
from torch.optim import lr_scheduler as lr

warnings.simplefilter("ignore")
EPOCH = 5  # updates


def rates(base, make, steps, every=1):
    """What the optimizer uses for each update; the scheduler moves on after
    `every` of them."""
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=base)
    scheduler = make(optimizer)
    values = []
    for step in range(steps):
        values.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if (step + 1) % every == 0 and step + 1 < steps:
            scheduler.step()
    return values


def case(expression, steps, values):
    print(f"steps = {steps}, epoch = {EPOCH}, lr = {expression}")
    print(" ".join(repr(float(value)) for value in values))


def cycle(steps, **rest):
    return lambda o: lr.OneCycleLR(o, total_steps=steps, cycle_momentum=False,
                                   **rest)


def line(*knots):
    steps, values = zip(*knots)
    return lambda o: lr.LambdaLR(o, lambda s: np.interp(s, steps, values))


print("# Learning rates of PyTorch's schedulers: tests/pytorch/schedules.py")
for steps in (1, 20):
    case("cosine(0.4)", steps, rates(
        0.4, lambda o: lr.CosineAnnealingLR(o, T_max=steps), steps))
    case("one_cycle(0.1)", steps, rates(
        0.1, cycle(steps, max_lr=0.1), steps))
    case("poly(0.1, power=2)", steps, rates(
        0.1, lambda o: lr.PolynomialLR(o, total_iters=steps, power=2), steps))
case("cosine(0.4, to=0.01, until=3 epoch)", 15, rates(
    0.4, lambda o: lr.CosineAnnealingLR(o, T_max=15, eta_min=0.01), 15))
case("one_cycle(2, warmup=2 epoch, start=0.5, end=0.01, shape=linear)", 30,
     rates(2, cycle(30, max_lr=2, pct_start=1 / 3, div_factor=4,
                    final_div_factor=50, anneal_strategy="linear"), 30))
case("poly(0.1, power=0.9, until=12 step)", 20, rates(
    0.1, lambda o: lr.PolynomialLR(o, total_iters=12, power=0.9), 20))
case("cyclic(0.01, 0.1, period=8 step)", 30, rates(
    0.01, lambda o: lr.CyclicLR(o, 0.01, 0.1, step_size_up=4,
                                cycle_momentum=False), 30))
case("cyclic(0.01, 0.1, period=2 epoch, rise=20%)", 30, rates(
    0.01, lambda o: lr.CyclicLR(o, 0.01, 0.1, step_size_up=2, step_size_down=8,
                                cycle_momentum=False), 30))
case("step(0.1, every=4 step, gamma=0.5)", 20, rates(
    0.1, lambda o: lr.StepLR(o, 4, gamma=0.5), 20))
case("step(0.1, every=2 epoch)", 25, rates(
    0.1, lambda o: lr.StepLR(o, 2), 25, every=EPOCH))
case("step(0.1, milestones=[6 step, 3 epoch])", 20, rates(
    0.1, lambda o: lr.MultiStepLR(o, [6, 15]), 20))
case("step(0.1, gamma=0.3, milestones=50%)", 20, rates(
    0.1, lambda o: lr.MultiStepLR(o, [10], gamma=0.3), 20))
case("exponential(0.1, 0.9, every=1 step)", 20, rates(
    0.1, lambda o: lr.ExponentialLR(o, 0.9), 20))
case("warmup(0.1, 8 step, from=0.25)", 20, rates(
    0.1, lambda o: lr.LinearLR(o, start_factor=0.25, total_iters=8), 20))
case("warmup(cosine(0.1, since=1 epoch), 1 epoch, from=0.01)", 20, rates(
    0.1, lambda o: lr.SequentialLR(o, [
        lr.LinearLR(o, start_factor=0.01, total_iters=EPOCH),
        lr.CosineAnnealingLR(o, T_max=15)], milestones=[EPOCH]), 20))
case("piecewise(0: 0.01, 25%: 0.4, 1: 0)", 20, rates(
    1, line((0, 0.01), (5, 0.4), (20, 0)), 20))
case("piecewise(1 epoch: 0.1, 2 epoch: 0.3, 3 epoch: 0.05)", 20, rates(
    1, line((5, 0.1), (10, 0.3), (15, 0.05)), 20))
