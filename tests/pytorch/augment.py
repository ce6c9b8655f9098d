"""Augmentation of images and what follows them, with a trainer's draws.

Draws are Philox4x32-10 of (seed, stream, epoch, sample); a stream is the hash of
the call's name in `input` and of what is drawn.  Images are [N, H, W, C] in
double; labels are classes [N, H, W], with -1 where a place is left out, or
targets [N, H, W, C], with NaN there.  A batch is (epoch, samples, x, y).
"""

import numpy as np
import torch
import torch.nn.functional as F

OUT = -1


def stream_of(name):
    key = 2166136261
    for byte in name.encode():
        key = (key ^ byte) * 16777619 & 0xFFFFFFFF
    return key & 0x7FFFFFFF


def philox(seed, stream, epoch, index):
    """The upper 24 bits of the first word, as a number from 0 to 1."""
    x = [index, epoch, 0, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [b >> 32 ^ x[1] ^ seed, b & 0xFFFFFFFF,
             a >> 32 ^ x[3] ^ stream, a & 0xFFFFFFFF]  # fmt: skip
        seed = seed + 0x9E3779B9 & 0xFFFFFFFF
        stream = stream + 0xBB67AE85 & 0xFFFFFFFF
    return (x[0] >> 8) / 2**24


class Draws:
    def __init__(self, epoch, samples, seed=0):
        self.epoch, self.samples, self.seed = epoch, samples, seed
        self.calls = {}

    def call(self, function):
        """Names the next call of a function."""
        number = self.calls.get(function, 0) + 1
        self.calls[function] = number
        self.path = f"input.{function}_{number}"

    def share(self, what, epoch=None):
        stream = stream_of(f"{self.path}.{what}")
        epoch = self.epoch if epoch is None else epoch
        return np.array(
            [philox(self.seed, stream, epoch, int(i)) for i in self.samples]
        )

    def place(self, what, count):
        return np.floor(self.share(what) * count).astype(int)


def is_target(y):
    return y.dtype.kind == "f"


def scale_of(x, y):
    return y.shape[1] // x.shape[1]


def nothing(y):
    return np.nan if is_target(y) else OUT


def flipped(x, where):
    return np.where(where.reshape(-1, *[1] * (x.ndim - 1)), x[:, :, ::-1], x)


def flip_lr(p):
    def step(draws, x, y):
        draws.call("flip_lr")
        where = draws.share("flip") < p
        return flipped(x, where), flipped(y, where)

    return step


def alternating_flip(draws, x, y):
    draws.call("alternating_flip")
    first = draws.share("flip", epoch=0) < 0.5
    where = (draws.epoch + first) % 2 == 1
    return flipped(x, where), flipped(y, where)


def window(x, top, left, rows, columns, pad, mode, fill=0):
    """Cut out of x with `pad` places on all sides."""
    widths = [(0, 0), (pad, pad), (pad, pad)] + [(0, 0)] * (x.ndim - 3)
    how = {"mode": mode}
    if mode == "constant":
        how["constant_values"] = fill
    padded = np.pad(x, widths, **how)
    return np.stack(
        [
            image[i : i + rows, j : j + columns]
            for image, i, j in zip(padded, top, left)
        ]
    )


def cut(draws, x, y, rows, columns, pad, mode):
    s, (h, w) = scale_of(x, y), x.shape[1:3]
    top = draws.place("y", h + 2 * pad - rows + 1)
    left = draws.place("x", w + 2 * pad - columns + 1)
    kept = mode if s == 1 else "constant"
    return (
        window(x, top, left, rows, columns, pad, mode),
        window(y, s * top, s * left, s * rows, s * columns, s * pad, kept,
               nothing(y)),
    )  # fmt: skip


def random_crop(size, pad, mode="constant"):
    def step(draws, x, y):
        draws.call("random_crop")
        return cut(draws, x, y, size, size, pad, mode)

    return step


def random_translate(most, mode="constant"):
    def step(draws, x, y):
        draws.call("random_translate")
        return cut(draws, x, y, *x.shape[1:3], most, mode)

    return step


def channels_first(x):
    return torch.from_numpy(x if x.ndim == 4 else x[..., None]).permute(0, 3, 1, 2)


def channels_last(t, like):
    x = t.permute(0, 2, 3, 1).numpy()
    return x if like.ndim == 4 else x[..., 0].astype(like.dtype)


def sampled(x, top, left, rows, columns, size):
    """size[0] x size[1] places of rectangles, by PyTorch's grid_sample."""
    h, w = x.shape[1:3]
    grid = np.empty((len(x), *size, 2))
    i = (np.arange(size[0]) + 0.5) / size[0]
    j = (np.arange(size[1]) + 0.5) / size[1]
    grid[..., 1] = (2 * (top[:, None] + rows[:, None] * i) / h - 1)[:, :, None]
    grid[..., 0] = (2 * (left[:, None] + columns[:, None] * j) / w - 1)[:, None]
    return channels_last(
        F.grid_sample(
            channels_first(x.astype(float)),
            torch.from_numpy(grid),
            "bilinear" if is_target(x) else "nearest",
            "border",
            align_corners=False,
        ),
        x,
    )


def random_resized_crop(size, scale=(0.08, 1), ratio=(3 / 4, 4 / 3)):
    def step(draws, x, y):
        draws.call("random_resized_crop")
        s, (h, w) = scale_of(x, y), x.shape[1:3]
        area = scale[0] * h * w + draws.share("area") * (scale[1] - scale[0]) * h * w
        low, high = np.log(ratio)
        shape = np.exp(low + draws.share("ratio") * (high - low))
        rows = np.minimum(np.sqrt(area / shape), h)
        columns = np.minimum(np.sqrt(area * shape), w)
        top = draws.share("y") * (h - rows)
        left = draws.share("x") * (w - columns)
        at = [top, left, rows, columns]
        return (
            sampled(x, *at, (size, size)),
            sampled(y, *[s * v for v in at], (s * size, s * size)),
        )

    return step


def resize(rows, columns, mode="bilinear"):
    how = {} if mode == "nearest" else {"align_corners": False}

    def step(draws, x, y):
        small = F.interpolate(channels_first(x), (rows, columns), mode=mode, **how)
        label = channels_first(y.astype(float))
        if is_target(y):
            label = F.interpolate(label, (rows, columns), mode=mode, **how)
        else:
            label = F.interpolate(label, (rows, columns), mode="nearest")
        return channels_last(small, x), channels_last(label, y)

    return step


def cutmix(size):
    def step(draws, x, y):
        draws.call("cutmix")
        s, x, y = scale_of(x, y), x.copy(), y.copy()
        top = draws.place("y", x.shape[1] - size + 1)
        left = draws.place("x", x.shape[2] - size + 1)
        others = np.roll(x, -1, 0), np.roll(y, -1, 0)
        for n, (i, j) in enumerate(zip(top, left)):
            for image, other, k in zip((x, y), others, (1, s)):
                box = np.s_[n, k * i : k * (i + size), k * j : k * (j + size)]
                image[box] = other[box]
        return x, y

    return step


def mixup_evenly(draws, x, y):
    """alpha = 1, of targets."""
    draws.call("mixup")
    share = draws.share("share").reshape(-1, 1, 1, 1)
    return tuple(share * v + (1 - share) * np.roll(v, -1, 0) for v in (x, y))


def middle(rows, columns):
    """Crops as an evaluation makes them."""

    def step(draws, x, y):
        s, (h, w) = scale_of(x, y), x.shape[1:3]
        i, j = (h - rows) // 2, (w - columns) // 2
        return (
            x[:, i : i + rows, j : j + columns],
            y[:, s * i : s * (i + rows), s * j : s * (j + columns)],
        )

    return step


def applied(steps, epoch, samples, x, y):
    draws = Draws(epoch, samples)
    x = x.astype(float)
    for step in steps:
        x, y = step(draws, x, y)
    return x, y
