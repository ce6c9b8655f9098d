"""Prints tests/golden/numbers/augmentations.txt: torchvision's augmentations of
one image, for draws that are fixed, and for RandAugment all that may occur.

It needs torchvision, from PyPI; `regenerate` leaves it out.
"""
import torch
from torchvision.transforms import InterpolationMode, RandAugment
from torchvision.transforms import functional as F
from torchvision.transforms.autoaugment import _apply_op

H, W = 5, 6
BILINEAR, NEAREST = InterpolationMode.BILINEAR, InterpolationMode.NEAREST

# [C, H, W], from 0 to 255, as the test has it.
y, x, c = (torch.arange(n) for n in (H, W, 3))
y, x, c = y[None, :, None], x[None, None, :], c[:, None, None]
bytes_ = ((37 * y * y + 61 * x * c + 17 * x * y + 29 * y + 83 * c) % 256).to(
    torch.uint8
)
image = bytes_.double() / 255


def case(chain, *results):
    """Prints each result once: of 5 x 6 pixels, a small shear moves none."""
    lines = {}
    for r in results:
        r = r.double() * (1 if r.dtype == torch.uint8 else 255)
        values = r.permute(1, 2, 0).flatten().tolist()
        numbers = (f"{v:.4f}".rstrip("0").rstrip(".") for v in values)
        lines[" ".join(numbers)] = None
    print(f"# {chain}", *lines, sep="\n")


def rotated(angle, mode, fill=None):
    return F.rotate(image, angle, mode, fill=fill)


def mapped(angle, scale, shear, mode):
    return F.affine(image, angle, [0, 0], scale, shear, mode)


case("rotate([17, 17])", rotated(17, NEAREST))
case("rotate([-61, -61], interpolation=\"bilinear\")", rotated(-61, BILINEAR))
case("rotate([40, 40], fill=[30, 60, 90])",
     rotated(40, NEAREST, [30 / 255, 60 / 255, 90 / 255]))
case("affine([25, 25], scale=[0.8, 0.8], shear=[13, 13])",
     mapped(25, 0.8, [13, 0], NEAREST))
case("affine([-33, -33], scale=[1.3, 1.3], shear=[-9, -9], shear_y=[21, 21], "
     "interpolation=\"bilinear\")", mapped(-33, 1.3, [-9, 21], BILINEAR))
case("color_jitter(brightness=[1.4, 1.4])", F.adjust_brightness(image, 1.4))
case("color_jitter(contrast=[0.3, 0.3])", F.adjust_contrast(image, 0.3))
case("color_jitter(contrast=[1.9, 1.9])", F.adjust_contrast(image, 1.9))
case("color_jitter(saturation=[0.2, 0.2])", F.adjust_saturation(image, 0.2))
case("color_jitter(saturation=[2.5, 2.5])", F.adjust_saturation(image, 2.5))
case("color_jitter(hue=[0.2, 0.2])", F.adjust_hue(image, 0.2))
case("color_jitter(hue=[-0.45, -0.45])", F.adjust_hue(image, -0.45))
jittered = F.adjust_contrast(F.adjust_brightness(image, 1.2), 0.7)
case("color_jitter([1.2, 1.2], [0.7, 0.7], [1.5, 1.5], [0.1, 0.1])",
     F.adjust_hue(F.adjust_saturation(jittered, 1.5), 0.1))
case("grayscale(p=1)", F.rgb_to_grayscale(image, 3))
case("solarize(100, p=1)", F.solarize(image, 100 / 255))
case("posterize(3, p=1)", F.posterize(bytes_, 3))
case("autocontrast(p=1)", F.autocontrast(image))


def once(name, magnitude):
    if name == "Posterize":
        return _apply_op(bytes_, name, magnitude, NEAREST, None)
    if name == "Solarize":
        magnitude /= 255
    return _apply_op(image, name, magnitude, NEAREST, None)


for level in 9, 22:
    space = RandAugment()._augmentation_space(31, (H, W))
    results = []
    for name, (magnitudes, signed) in space.items():
        if name in ("Sharpness", "Equalize"):
            continue
        m = magnitudes[level].item() if magnitudes.ndim else 0.0
        results += [once(name, m)] + ([once(name, -m)] if signed else [])
    case(f"rand_augment(1, {level})", *results)
