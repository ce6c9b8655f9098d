"""An evaluation: outputs, averaged over the views of an image by their weights,
and the share that is right."""

import torch
import torch.nn.functional as F

# Outputs that differ by less than this share of the largest are as good as
# equal: f32 may choose either.
TIE = 1e-3


def identity(x):
    return x


def flip_lr(x):
    return x.flip(3)


def shift(by):
    """Moves rows and columns; a mirror at the edge says what comes in."""

    def view(x):
        h, w = x.shape[2:]
        x = F.pad(x, (max(by, 0), max(-by, 0)) * 2, mode="reflect")
        return x[:, :, -h:, -w:] if by < 0 else x[:, :, :h, :w]

    return view


def of_mirrored(view):
    return lambda x: view(flip_lr(x))


def unshift(by):
    """Moves an output back; NaN where the view had no place of the image."""

    def back(x):
        h, w = x.shape[2:]
        x = F.pad(x, (max(-by, 0), max(by, 0)) * 2, value=torch.nan)
        return x[:, :, -h:, -w:] if by > 0 else x[:, :, :h, :w]

    return back


PLAIN = ((1, identity),)
MIRRORED = ((0.5, identity), (0.5, flip_lr))
SHIFTED = ((0.25, identity), (0.125, shift(1)), (0.125, shift(-1)))
SHIFTED += tuple((weight, of_mirrored(view)) for weight, view in SHIFTED)


# With what turns an output of places back.
TURNED = (
    (0.5, identity, identity),
    (0.3, flip_lr, flip_lr),
    (0.1, shift(2), unshift(2)),
    (0.1, of_mirrored(shift(-1)), lambda x: flip_lr(unshift(-1)(x))),
)


def right(output, labels):
    """The least and the largest share, as ties are broken."""
    if output.dim() == 4:
        output = output.permute(0, 2, 3, 1)
    gap = output.gather(-1, labels[..., None]).squeeze(-1)
    gap = gap - output.scatter(-1, labels[..., None], -torch.inf).amax(-1)
    near = TIE * output.abs().max()
    return [(gap > d).double().mean().item() for d in (near, -near)]


@torch.no_grad()
def evaluated(forward, views, x, labels):
    """Outputs, and the share that is right of classes."""
    if len(views[0]) == 2:
        output = sum(weight * forward(view(x)) for weight, view in views)
    else:
        output = turned(forward, views, x)
    targets = labels.is_floating_point()
    return output, None if targets else right(output, labels)


def turned(forward, views, x):
    """The mean over the views that have a place."""
    parts = [back(forward(view(x))) for _, view, back in views]
    weights = [
        weight * ~part.isnan() for part, (weight, *_) in zip(parts, views)
    ]
    total = sum(w * part.nan_to_num() for w, part in zip(weights, parts))
    return total / sum(weights)
