"""ResNet-50 and MobileNetV2: what a forward pass computes."""

import torch.nn.functional as F

from nets import IMAGENET, Stage, normalize


def bottleneck(stage, x, channels, stride):
    h = F.relu(stage.conv_bn(x))
    h = F.relu(stage.conv_bn(h, stride=stride))
    h = stage.conv_bn(h)
    if x.shape[1] != 4 * channels:
        x = stage.conv_bn(x, stride=stride)
    return F.relu(x + h)


def resnet50(net, x):
    x = normalize(x, *IMAGENET)
    x = F.relu(Stage(net, "stem").conv_bn(x, stride=2))
    x = F.max_pool2d(x, 3, stride=2, padding=1)
    width = x.shape[1]
    for i, depth in enumerate((3, 4, 6, 3)):
        stage = Stage(net, f"layer{i + 1}")
        for n in range(depth):
            stride = 2 if i > 0 and n == 0 else 1
            x = bottleneck(stage, x, width << i, stride)
    return net.linear(x.mean((2, 3)), "linear_1")


def inverted(stage, x, widen, stride):
    """A block that is wide inside; its result has no activation."""
    h = x
    if widen > 1:
        h = F.relu6(stage.conv_bn(h))
    h = F.relu6(stage.conv_bn(h, stride=stride, groups=h.shape[1]))
    h = stage.conv_bn(h)
    return x + h if stride == 1 and h.shape == x.shape else h


def mobilenetv2(net, x):
    x = normalize(x, *IMAGENET)
    x = F.relu6(Stage(net, "stem").conv_bn(x, stride=2))
    strides = (1,), (2, 1), (2, 1, 1), (2, 1, 1, 1), (1, 1, 1), (2, 1, 1), (1,)
    for i, of_stage in enumerate(strides, 1):
        stage = Stage(net, f"stage{i}")
        for stride in of_stage:
            x = inverted(stage, x, 1 if i == 1 else 6, stride)
    x = F.relu6(Stage(net, "last").conv_bn(x))
    return net.linear(x.mean((2, 3)), "linear_1")
