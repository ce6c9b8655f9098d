"""The models of models/ in PyTorch: what a forward pass computes.

Names are those that sinter gives to layers.
"""

import torch
import torch.nn.functional as F


def normalize(x, mean, std):
    mean, std = (torch.tensor(v).view(1, -1, 1, 1) for v in (mean, std))
    return (x - mean) / std


CIFAR = ([125.31, 122.95, 113.87], [62.99, 62.09, 66.70])
IMAGENET = ([123.675, 116.28, 103.53], [58.395, 57.12, 57.375])


def rows(x):
    """Flattens in the order of [N, H, W, C]."""
    return x.permute(0, 2, 3, 1).flatten(1)


def mlp(net, x):
    x = rows(normalize(x, [33.3], [78.6]))
    x = F.relu(net.linear(x, "linear_1"))
    x = F.relu(net.linear(x, "linear_2"))
    return net.linear(x, "linear_3")


def lenet(net, x):
    x = normalize(x, [33.3], [78.6])
    x = F.max_pool2d(F.relu(net.conv(x, "conv_1")), 2)
    x = F.max_pool2d(F.relu(net.conv(x, "conv_2", same=False)), 2)
    x = F.relu(net.linear(rows(x), "linear_1"))
    x = F.relu(net.linear(x, "linear_2"))
    return net.linear(x, "linear_3")


def multitask(net, x):
    """Of rows of an image and two numbers; a row of both outputs."""
    x = x.to(torch.get_default_dtype())
    image, meta = x[:, :-2].reshape(-1, 32, 32, 3), x[:, -2:]
    h = normalize(image.permute(0, 3, 1, 2), [111, 99, 82], [62, 50, 37])
    for n in (1, 2, 3):
        h = net.conv(h, f"body.conv_{n}")
        h = F.max_pool2d(F.relu(net.batch_norm(h, f"body.batch_norm_{n}")), 2)
    h = F.relu(net.linear(rows(h), "body.linear_1"))
    mean, std = torch.tensor([0.98, 0.95]), torch.tensor([0.1, 0.14])
    scale = F.relu(net.linear((meta - mean) / std, "scale"))
    h = F.relu(net.linear(torch.cat([h, scale], 1), "shared"))
    return torch.cat([net.linear(h, "coin"), net.linear(h, "edges")], 1)


def conv_bn_relu(net, x, path, n):
    x = net.conv(x, f"{path}.conv_{n}")
    return F.relu(net.batch_norm(x, f"{path}.batch_norm_{n}"))


def resnet9(net, x):
    x = normalize(x, *CIFAR)
    x = conv_bn_relu(net, x, "prep", 1)
    for stage in ("layer1", "layer2", "layer3"):
        x = F.max_pool2d(conv_bn_relu(net, x, stage, 1), 2)
        if stage != "layer2":
            h = conv_bn_relu(net, x, stage, 2)
            x = x + conv_bn_relu(net, h, stage, 3)
    return net.linear(x.amax((2, 3)), "linear_1") / 8


def vgg16_bn(net, x):
    x = normalize(x, *CIFAR)
    for stage, depth in enumerate((2, 2, 3, 3, 3), 1):
        for n in range(1, depth + 1):
            x = conv_bn_relu(net, x, f"stage{stage}", n)
        x = F.max_pool2d(x, 2)
    return net.linear(rows(x), "linear_1")


class Stage:
    """Convolutions with batch norm of one stage, numbered as they come."""

    def __init__(self, net, path):
        self.net, self.path, self.n = net, path, 0

    def conv_bn(self, x, **options):
        self.n += 1
        x = self.net.conv(x, f"{self.path}.conv_{self.n}", **options)
        return self.net.batch_norm(x, f"{self.path}.batch_norm_{self.n}")


def basic_block(stage, x, stride):
    h = F.relu(stage.conv_bn(x, stride=stride))
    h = stage.conv_bn(h)
    if stride > 1:
        x = stage.conv_bn(x, stride=stride)
    return F.relu(x + h)


def resnet18(net, x):
    x = F.relu(Stage(net, "stem").conv_bn(normalize(x, *CIFAR)))
    for i in range(1, 5):
        stage = Stage(net, f"layer{i}")
        x = basic_block(stage, x, 1 if i == 1 else 2)
        x = basic_block(stage, x, 1)
    return net.linear(x.mean((2, 3)), "linear_1")


def preact_block(stage, x, channels, stride=1):
    x = stage.norm(x)
    h = stage.conv(x, stride=stride)
    h = stage.conv(stage.norm(h))
    if stride > 1 or x.shape[1] != channels:
        x = stage.conv(x, stride=stride)
    return x + h


class PreactStage(Stage):
    """Convolutions and norms that are counted apart."""

    def __init__(self, net, path):
        super().__init__(net, path)
        self.norms = 0

    def conv(self, x, **options):
        self.n += 1
        return self.net.conv(x, f"{self.path}.conv_{self.n}", **options)

    def norm(self, x):
        self.norms += 1
        return F.relu(self.net.batch_norm(x, f"{self.path}.batch_norm_{self.norms}"))


def preact_resnet18(net, x):
    x = net.conv(normalize(x, *CIFAR), "stem")
    width = x.shape[1]
    for i, channels in enumerate((width, 2 * width, 4 * width, 4 * width), 1):
        stage = PreactStage(net, f"layer{i}")
        x = preact_block(stage, x, channels, 1 if i == 1 else 2)
        x = preact_block(stage, x, channels)
    return net.linear(torch.cat([x.amax((2, 3)), x.mean((2, 3))], 1), "linear_1")
