"""The networks of the speed records: a whitened stem that is frozen, pools
before batch norm, and filters that start as the identity.

Names are those that sinter gives to layers.
"""

import torch.nn.functional as F

import nets


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


def head(net, x, path="linear_1"):
    return net.linear(F.max_pool2d(x, 3).flatten(1), path)


def hlb(net, x):
    x = whitened(net, x)
    for i in (1, 2, 3):
        x = Group(net, f"group{i}.", 0.4).pair(x)
    return head(net, x) / 9


def airbench94_muon(net, x):
    x = whitened(net, x)
    for i in (1, 2, 3):
        x = Group(net, f"group{i}.", 0.4).pair(x)
    return head(net, x, "head") / x.shape[1]
