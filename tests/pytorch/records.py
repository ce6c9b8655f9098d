"""The networks of the speed records: a whitened stem that is frozen, pools
before batch norm, and filters that start as the identity.

Names are those that sinter gives to layers.
"""

import torch.nn.functional as F

import nets


def normalize_page(x):
    return nets.normalize(x, *nets.CIFAR)


def normalize(x):
    return nets.normalize(
        x, [125.307, 122.961, 113.8575], [62.985, 62.0925, 66.708]
    )


def whitened(net, x):
    """Patches of 2 x 2 pixels in 24 directions of equal variance."""
    return F.gelu(net.conv(normalize(x), "whiten", same=False))


class Group(nets.Stage):
    """A stage's convolutions with batch norm, the first before a pool."""

    def __init__(self, net, path, momentum):
        super().__init__(net, path)
        self.momentum = momentum

    def conv_norm(self, x, pool=1):
        self.n += 1
        x = self.net.conv(x, f"{self.path}conv_{self.n}")
        return self.net.batch_norm(
            F.max_pool2d(x, pool),
            f"{self.path}batch_norm_{self.n}",
            eps=1e-12,
            momentum=self.momentum,
        )

    def pair(self, x):
        x = F.gelu(self.conv_norm(x, pool=2))
        return F.gelu(self.conv_norm(x))

    def residual(self, x):
        x = F.gelu(self.conv_norm(x, pool=2))
        h = F.gelu(self.conv_norm(x))
        return F.gelu(x + self.conv_norm(h))


def head(net, x, path="linear_1"):
    return net.linear(F.max_pool2d(x, 3).flatten(1), path)


def hlb(net, x):
    x = whitened(net, x)
    for i in (1, 2, 3):
        x = Group(net, f"group{i}.", 0.4).pair(x)
    return head(net, x) / 9


def airbench94(net, x):
    x = whitened(net, x)
    groups = Group(net, "", 0.4)
    for _ in range(3):
        x = groups.pair(x)
    return head(net, x) / 9


def airbench94_muon(net, x):
    x = whitened(net, x)
    for i in (1, 2, 3):
        x = Group(net, f"group{i}.", 0.4).pair(x)
    return head(net, x, "head") / x.shape[1]


def airbench96(net, x):
    x = whitened(net, x)
    for i in (1, 2, 3):
        x = Group(net, f"group{i}.", 0.1).residual(x)
    return head(net, x) / 9


class GhostStage(nets.Stage):
    """Convolutions, pools and norms of splits of the batch, with CELU."""

    def conv_norm(self, x, pool=1):
        self.n += 1
        x = self.net.conv(x, f"{self.path}.conv_{self.n}")
        path = f"{self.path}.batch_norm_{self.n}"
        x = self.net.batch_norm(F.max_pool2d(x, pool), path, ghost=16)
        return F.celu(x, 0.3)


def resnet9_tricks(net, x):
    x = net.conv(normalize_page(x), "whiten")
    x = GhostStage(net, "prep").conv_norm(x)
    for name in ("layer1", "layer2", "layer3"):
        stage = GhostStage(net, name)
        x = stage.conv_norm(x, pool=2)
        if name != "layer2":
            x = x + stage.conv_norm(stage.conv_norm(x))
    return net.linear(x.amax((2, 3)), "linear_1") / 16
