"""The U-Net of models/unet_small.net: what a forward pass computes."""

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


def unet_small(net, x):
    x = double(PreactStage(net, "down1"), normalize(x, *IMAGENET))
    across = []
    for path in ("down2", "down3", "bottom"):
        across.append(x)
        x = double(PreactStage(net, path), F.max_pool2d(x, 2))
    for path in ("up3", "up2", "up1"):
        x = up(PreactStage(net, path), x, across.pop())
    return net.conv(x, "head")
