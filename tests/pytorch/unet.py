"""Networks whose output has the places of the image: the U-Net of
models/unet_seg.net and denoise.net, and those of tests/end_to_end/segment.net
and restore.net."""

import torch
import torch.nn.functional as F

from nets import IMAGENET, PreactStage, normalize


def double(stage, x):
    for _ in range(2):
        x = stage.norm(stage.conv(x))
    return x


def up(stage, x, across):
    x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
    return double(stage, torch.cat([stage.conv(x), across], 1))


def unet_seg(net, x):
    x = double(PreactStage(net, "down1"), normalize(x, *IMAGENET))
    across = []
    for path in ("down2", "down3", "bottom"):
        across.append(x)
        x = double(PreactStage(net, path), F.max_pool2d(x, 2))
    for path in ("up3", "up2", "up1"):
        x = up(PreactStage(net, path), x, across.pop())
    return net.conv(x, "head")


def conv_bn(net, x, path, **options):
    x = net.conv(x, path + ".conv_1", same=False, padding=1, **options)
    return F.relu(net.batch_norm(x, path + ".batch_norm_1"))


def doubled(net, x, across, path):
    w = net.parameter(path + ".conv_transpose_1.weight", images=True)
    bias = net.parameter(path + ".conv_transpose_1.bias")
    x = F.conv_transpose2d(x, w, bias, stride=2, padding=1)
    return conv_bn(net, torch.cat([x, across], 1), path)


def denoise(net, x):
    """Without noise: what is drawn is not PyTorch's."""
    x = x / 255
    a = conv_bn(net, 2 * x, "full")
    b = conv_bn(net, a, "half", stride=2)
    c = conv_bn(net, b, "quarter", stride=2)
    h = doubled(net, conv_bn(net, c, "bottom"), b, "up2")
    return x - net.conv(doubled(net, h, a, "up1"), "head")


SCENES = [90] * 3, [60] * 3


def segment(net, x):
    stage = normalize(x, *SCENES)
    for path in ("one", "two"):
        layer = PreactStage(net, path)
        stage = layer.norm(layer.conv(stage))
    return net.conv(stage, "head")


def restore(factor):
    def forward(net, x):
        y = F.relu(net.conv(normalize(x, *SCENES), "one"))
        return net.conv(F.interpolate(y, scale_factor=factor), "head")

    return forward
