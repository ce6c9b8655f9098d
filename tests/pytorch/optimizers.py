# writes optimizers.txt
"""Parameters after some updates of each optimizer, in double.

PyTorch has the gradients and, where it has the optimizer too, the update. What
it has not is written here from the papers, on its tensors.
"""
import math

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from muon import Muon

torch.set_default_dtype(torch.float64)
UPDATES, BATCH = 6, 4
NET = """model Net(image: u8[N, 1, 3, 1]) -> f32[N, 2] {
  image |> normalize(mean=128, std=64) |> flatten
        |> linear(5%s) |> tanh |> linear(2%s)
}
train Net {
  data      = synthetic()
  batch     = 4, drop_last
  epochs    = 1
  loss      = mean(cross_entropy(output, label))
  optimizer = %s
}"""


def rate(update):
    """What the model file calls 0.1 * (1 - step / 10)."""
    return 0.1 * (1 - update / 10)


def norm_or_one(above, below, factor=1):
    return factor * above / below if above > 0 and below > 0 else 1


class Sgd:
    """With a decay outside the gradient, or steps in the velocity (Sutskever
    et al., 2013), or a rate for each parameter (LARS: You et al., 2017)."""

    def __init__(self, params, lr=rate, momentum=0, nesterov=False, decay=0,
                 decoupled=False, in_velocity=False, trust=None):
        self.params, self.lr, self.momentum = list(params), lr, momentum
        self.nesterov, self.decay, self.trust = nesterov, decay, trust
        self.decoupled, self.in_velocity = decoupled, in_velocity
        self.velocity = [torch.zeros_like(p) for p in self.params]

    def layer_rate(self, w, g):
        if self.trust is None:
            return 1
        if w.norm() == 0 or g.norm() == 0:
            return 1
        below = g.norm() + self.decay * w.norm() + 1e-8
        return self.trust * w.norm() / below

    def step(self, update):
        for w, v in zip(self.params, self.velocity):
            lr = self.lr(update) * self.layer_rate(w, w.grad)
            g = w.grad if self.decoupled else w.grad + self.decay * w
            if self.decoupled:
                w.mul_(1 - self.lr(update) * self.decay)
            inside, outside = (lr, 1) if self.in_velocity else (1, lr)
            g = inside * g
            v.mul_(self.momentum).add_(g)
            w.sub_(outside * (g + self.momentum * v if self.nesterov else v))


class Lamb:
    """You et al., 2020, algorithm 2, with phi the identity."""

    def __init__(self, params, lr=rate, decay=0.01, eps=1e-6):
        self.params, self.lr, self.decay, self.eps = list(params), lr, decay, eps
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]

    def step(self, update):
        t = update + 1
        for w, m, v in zip(self.params, self.m, self.v):
            m.mul_(0.9).add_(0.1 * w.grad)
            v.mul_(0.999).add_(0.001 * w.grad**2)
            r = m / (1 - 0.9**t) / ((v / (1 - 0.999**t)).sqrt() + self.eps)
            u = r + self.decay * w
            w.sub_(self.lr(update) * norm_or_one(w.norm(), u.norm()) * u)


class Lion:
    """Chen et al., 2023, algorithm 2."""

    def __init__(self, params, beta1=0.9, beta2=0.99, decay=0):
        self.params, self.decay = list(params), decay
        self.beta1, self.beta2 = beta1, beta2
        self.m = [torch.zeros_like(p) for p in self.params]

    def step(self, update):
        for w, m in zip(self.params, self.m):
            c = self.beta1 * m + (1 - self.beta1) * w.grad
            w.sub_(rate(update) * (c.sign() + self.decay * w))
            m.mul_(self.beta2).add_((1 - self.beta2) * w.grad)


class Adan:
    """Xie et al., 2022, algorithm 1, with the authors' betas, shares of what
    was there, and their corrections of the moments' start at 0."""

    def __init__(self, params, betas=(0.98, 0.92, 0.99), eps=1e-8, decay=0):
        self.params, self.betas = list(params), betas
        self.eps, self.decay = eps, decay
        self.m, self.d, self.v = (
            [torch.zeros_like(p) for p in self.params] for _ in range(3))
        self.before = [None] * len(self.params)

    def step(self, update):
        lr, rest = rate(update), [1 - b ** (update + 1) for b in self.betas]
        for i, w in enumerate(self.params):
            m, d, v, g = self.m[i], self.d[i], self.v[i], w.grad.clone()
            change = torch.zeros_like(g)
            if self.before[i] is not None:
                change = g - self.before[i]
            self.before[i] = g
            b1, b2, b3 = self.betas
            m.mul_(b1).add_((1 - b1) * g)
            d.mul_(b2).add_((1 - b2) * change)
            v.mul_(b3).add_((1 - b3) * (g + b2 * change) ** 2)
            size = lr / ((v / rest[2]).sqrt() + self.eps)
            w.sub_(size * (m / rest[0] + b2 * d / rest[1]))
            w.div_(1 + lr * self.decay)


class Torch:
    """An optimizer of PyTorch, with the rate of each update."""

    def __init__(self, make):
        self.make = make

    def __call__(self, params):
        self.optimizer = self.make(params)
        return self

    def step(self, update):
        for group in self.optimizer.param_groups:
            group["lr"] = rate(update)
        self.optimizer.step()


def image(update):
    count = BATCH * 3
    return torch.tensor([(i * 37 + update * 53) % 251 for i in range(count)],
                        dtype=torch.float64).reshape(BATCH, 3)


def labels(update):
    return torch.tensor([(i + update // 2) % 2 for i in range(BATCH)])


def start(bias):
    """Parameters by name; element i of number k begins with sin(i + 10 k)."""
    shapes = {"linear_1.weight": (5, 3), "linear_1.bias": (5,),
              "linear_2.weight": (2, 5), "linear_2.bias": (2,)}
    params = {}
    for k, (name, shape) in enumerate(shapes.items()):
        if bias or not name.endswith("bias"):
            count = math.prod(shape)
            value = [math.sin(i + 10 * k) for i in range(count)]
            params[name] = torch.tensor(value).reshape(shape)
    return {name: p.requires_grad_() for name, p in params.items()}


def loss_of(params, update):
    x = (image(update) - 128) / 64
    x = x @ params["linear_1.weight"].T + params.get("linear_1.bias", 0)
    x = x.tanh() @ params["linear_2.weight"].T + params.get("linear_2.bias", 0)
    return torch.nn.functional.cross_entropy(x, labels(update))


def case(text, make, clip=None, keys="", bias=True):
    params = start(bias)
    optimizer = make(list(params.values()))
    flag = "" if bias else ", bias=false"
    print("model")
    print((NET % (flag, flag, text))[:-1] + keys + "}")
    for update in range(UPDATES):
        for p in params.values():
            p.grad = None
        loss_of(params, update).backward()
        with torch.no_grad():
            if clip is not None:
                clip(list(params.values()))
            optimizer.step(update)
    for name, p in params.items():
        values = " ".join(repr(x) for x in p.detach().flatten().tolist())
        print(f"{name} {values}")


LR = "lr=0.1 * (1 - step / 10)"
optim = torch.optim
print("# Parameters after some updates: tests/pytorch/optimizers.py")
print(f"updates {UPDATES}")
case(f"sgd({LR})", Torch(lambda p: optim.SGD(p, lr=1)))
case(f"sgd({LR}, weight_decay=0.2)",
     Torch(lambda p: optim.SGD(p, lr=1, weight_decay=0.2)))
case(f"sgd({LR}, momentum=0.9)",
     Torch(lambda p: optim.SGD(p, lr=1, momentum=0.9)))
case(f"sgd({LR}, momentum=0.9, nesterov, weight_decay=0.2)",
     Torch(lambda p: optim.SGD(p, lr=1, momentum=0.9, nesterov=True,
                               weight_decay=0.2)))
case(f"sgd({LR}, momentum=0.9, weight_decay=0.2, decoupled)",
     lambda p: Sgd(p, momentum=0.9, decay=0.2, decoupled=True))
case(f"sgd({LR}, momentum=0.9, weight_decay=0.2, rate_in_velocity)",
     lambda p: Sgd(p, momentum=0.9, decay=0.2, in_velocity=True))
case(f"sgd({LR}, momentum=0.9, nesterov, rate_in_velocity)",
     lambda p: Sgd(p, momentum=0.9, nesterov=True, in_velocity=True))
case(f"adam({LR})", Torch(lambda p: optim.Adam(p)))
case(f"adam({LR}, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.2)",
     Torch(lambda p: optim.Adam(p, betas=(0.8, 0.95), eps=1e-3,
                                weight_decay=0.2)))
case(f"adamw({LR}, weight_decay=0.2)",
     Torch(lambda p: optim.AdamW(p, weight_decay=0.2)))
case(f"lars({LR}, trust=0.3, weight_decay=0.2)",
     lambda p: Sgd(p, momentum=0.9, decay=0.2, in_velocity=True, trust=0.3))
case(f"lars({LR}, momentum=0.8, nesterov, trust=0.3)",
     lambda p: Sgd(p, momentum=0.8, nesterov=True, in_velocity=True,
                   trust=0.3))
case(f"lamb({LR})", Lamb)
case(f"lamb({LR}, eps=1e-3, weight_decay=0.3)",
     lambda p: Lamb(p, eps=1e-3, decay=0.3))
case(f"muon({LR})", lambda p: Muon(p, rate), bias=False)
case(f"muon({LR}, momentum=0.6, nesterov=false, weight_decay=0.2, "
     "coefficients=[2, -1.5, 0.5])",
     lambda p: Muon(p, rate, momentum=0.6, nesterov=False, decay=0.2,
                    coefficients=(2, -1.5, 0.5)), bias=False)
case(f"muon({LR}, momentum=0.6, renormalize, iterations=3)",
     lambda p: Muon(p, rate, momentum=0.6, renormalize=True, iterations=3),
     bias=False)
case(f"rmsprop({LR})", Torch(lambda p: optim.RMSprop(p)))
case(f"rmsprop({LR}, alpha=0.8, eps=1e-3, weight_decay=0.2, momentum=0.7, "
     "centered)",
     Torch(lambda p: optim.RMSprop(p, alpha=0.8, eps=1e-3, weight_decay=0.2,
                                   momentum=0.7, centered=True)))
case(f"adagrad({LR})", Torch(lambda p: optim.Adagrad(p)))
case(f"adagrad({LR}, lr_decay=0.3, weight_decay=0.2, "
     "initial_accumulator_value=0.01, eps=1e-3)",
     Torch(lambda p: optim.Adagrad(p, lr_decay=0.3, weight_decay=0.2,
                                   initial_accumulator_value=0.01, eps=1e-3)))
case(f"lion({LR})", Lion)
case(f"lion({LR}, beta1=0.7, beta2=0.8, weight_decay=0.2)",
     lambda p: Lion(p, beta1=0.7, beta2=0.8, decay=0.2))
# Without foreach PyTorch 1.13 has one momentum too many in the second product;
# its documentation and later versions have not.
case(f"nadam({LR})", Torch(lambda p: optim.NAdam(p, foreach=True)))
case(f"nadam({LR}, beta1=0.8, beta2=0.95, eps=1e-3, weight_decay=0.2, "
     "momentum_decay=3)",
     Torch(lambda p: optim.NAdam(p, betas=(0.8, 0.95), eps=1e-3,
                                 weight_decay=0.2, momentum_decay=3,
                                 foreach=True)))
# The sixth update is the first that averages more than 5 gradients.
case(f"radam({LR})", Torch(lambda p: optim.RAdam(p)))
case(f"radam({LR}, beta1=0.8, beta2=0.9, eps=1e-3, weight_decay=0.2)",
     Torch(lambda p: optim.RAdam(p, betas=(0.8, 0.9), eps=1e-3,
                                 weight_decay=0.2)))
case(f"adan({LR})", Adan)
case(f"adan({LR}, beta1=0.9, beta2=0.7, beta3=0.8, eps=1e-3, "
     "weight_decay=0.2)",
     lambda p: Adan(p, betas=(0.9, 0.7, 0.8), eps=1e-3, decay=0.2))
case(f"sgd({LR}, momentum=0.9)",
     Torch(lambda p: optim.SGD(p, lr=1, momentum=0.9)),
     lambda p: clip_grad_norm_(p, 0.3), "  clip      = norm(0.3)\n")
case(f"adam({LR}, eps=0.01)", Torch(lambda p: optim.Adam(p, eps=0.01)),
     lambda p: clip_grad_value_(p, 0.05), "  clip      = value(0.05)\n")
