"""Every layer, function and loss: values and gradients, in double.

    layers.py SINTER SOURCE [NET...]

writes tests/golden/numbers/*.net, or those of named NETS and LOSSES, and, for each, a .txt with what PyTorch makes
of it: the data it is fed, the loss, the gradient of each parameter, and the
statistics after a step.  In layers.net the result of each case is weighted by a
parameter of its own, whose gradient therefore is the value of the case.
"""

import math
import os
import re
import shutil
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F

import data
import weights

BATCH = 2


def images(f):
    """f, which knows [N, C, H, W], for [N, H, W, C]."""
    return lambda x, *rest: f(x.permute(0, 3, 1, 2), *rest).permute(0, 2, 3, 1)


def attention(causal):
    def forward(x, net, path):
        n, t, c = x.shape
        path, heads = f"{path}.attention_1", 2
        q, k, v = (
            part.view(n, t, heads, c // heads).transpose(1, 2)
            for part in net.linear(x, path + ".qkv").split(c, -1)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(c // heads)
        if causal:
            later = torch.ones(t, t).triu(1).bool()
            scores = scores.masked_fill(later, -math.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
        return net.linear(y, path + ".out")

    return forward


def dot_product(heads, kv_heads, causal):
    """Of queries, keys and values side by side."""

    def forward(x, *_):
        n, t, c = x.shape
        size = c // (heads + 2 * kv_heads)
        q, k, v = (
            part.view(n, t, -1, size).transpose(1, 2)
            for part in x.split([heads * size, kv_heads * size, kv_heads * size], -1)
        )
        k, v = (part.repeat_interleave(heads // kv_heads, 1) for part in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return y.transpose(1, 2).reshape(n, t, heads * size)

    return forward


def layer_norm(x, net, path):
    path += ".layer_norm_1"
    w, b = net.parameter(path + ".scale"), net.parameter(path + ".bias")
    return F.layer_norm(x, x.shape[-1:], w, b)


def group_norm(x, net, path):
    path += ".group_norm_1"
    w, b = net.parameter(path + ".scale"), net.parameter(path + ".bias")
    return F.group_norm(x, 2, w, b)


def ghost(x, net, path):
    """Batch norm where sample n belongs to part n mod 2."""
    path += ".batch_norm_1"
    n, c, h, w = x.shape
    mean = net.statistics[path + ".running_mean"] = net.tensors[
        path + ".running_mean"
    ]
    var = net.statistics[path + ".running_var"] = net.tensors[
        path + ".running_var"
    ]
    y = F.batch_norm(
        x.reshape(n // 2, 2 * c, h, w), mean.view(-1), var.view(-1),
        net.parameter(path + ".scale").repeat(2),
        net.parameter(path + ".bias").repeat(2), True, 0.1, 1e-5,
    )  # fmt: skip
    return y.view(n, c, h, w)


def frozen(x, net, path):
    """Batch norm in eval(), which leaves its statistics alone."""
    path += ".batch_norm_1"
    return F.batch_norm(
        x, net.tensors[path + ".running_mean"],
        net.tensors[path + ".running_var"], net.parameter(path + ".scale"),
        net.parameter(path + ".bias"), False, 0.1, 0.5,
    )  # fmt: skip


def conv(**options):
    return images(
        lambda x, net, path: net.conv(x, path + ".conv_1", **options)
    )


def rms_norm(x, net, path):
    scale = net.parameter(path + ".rms_norm.scale.value")
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * scale


def swiglu(x, net, path):
    gate, up = (net.linear(x, f"{path}.{name}") for name in ("gate", "up"))
    return net.linear(F.silu(gate) * up, path + ".down")


def recurrent(function, name, width):
    """A recurrent layer, with the names of sinter's parameters."""

    def forward(x, net, path):
        path = f"{path}.{name}"
        weights = [
            net.parameter(f"{path}.{own}")
            for own in (
                "input.weight", "state.value", "input_bias.value",
                "state_bias.value",
            )
        ]  # fmt: skip
        h = x.new_zeros(1, len(x), width)
        start = (h, h) if function is torch.lstm else h
        return function(x, start, weights, True, 1, 0, True, False, True)[0]

    return forward


def last(forward):
    return lambda x, net, path: forward(x, net, path)[:, -1]


def twice(x, net, path):
    first = recurrent(torch.gru, "gru", 5)(x, net, path)
    return recurrent(torch.gru, "gru_2", 3)(first, net, path)


def rotary(x, size, base=10000, interleaved=False):
    """A pair of channels is a complex number, and turns."""
    t = x.shape[1]
    heads = x.view(*x.shape[:2], -1, size)
    a, b = (
        (heads[..., ::2], heads[..., 1::2])
        if interleaved
        else heads.chunk(2, -1)
    )
    rate = base ** (-torch.arange(0, size, 2) / size)
    angle = torch.outer(torch.arange(t), rate)[:, None]
    turned = torch.complex(a, b) * torch.polar(torch.ones_like(angle), angle)
    parts = [turned.real, turned.imag]
    y = torch.stack(parts, -1) if interleaved else torch.cat(parts, -1)
    return y.reshape(x.shape)


def attend(q, k, v, size, causal=False):
    """Heads one after the other, each with its k and v."""
    heads, group = q.shape[-1] // size, q.shape[-1] // k.shape[-1]
    results = []
    for h in range(heads):
        own = slice(h // group * size, (h // group + 1) * size)
        scores = q[..., h * size : (h + 1) * size] @ k[..., own].transpose(1, 2)
        if causal:
            later = torch.ones(scores.shape[1:]).triu(1).bool()
            scores = scores.masked_fill(later, -math.inf)
        results.append((scores / math.sqrt(size)).softmax(-1) @ v[..., own])
    return torch.cat(results, -1)


def grouped_attention(causal, base):
    def forward(x, net, path):
        q, k, v = (
            net.linear(x, f"{path}.{name}") for name in ("query", "key", "value")
        )
        if base:
            q, k = rotary(q, 2, base), rotary(k, 2, base)
        return net.linear(attend(q, k, v, 2, causal), path + ".out")

    return forward


def crossed(x, net, path):
    x, memory = x[:, :2], x[:, 2:, :6]
    q = net.linear(x, path + ".query")
    k, v = (net.linear(memory, f"{path}.{name}") for name in ("key", "value"))
    return net.linear(attend(q, k, v, 4), path + ".out")


def conv_transpose(**options):
    def forward(x, net, path):
        path += ".conv_transpose_1"
        w = net.parameter(path + ".weight", images=True)
        bias = net.optional(path + ".bias")
        return F.conv_transpose2d(x, w, bias, **options)

    return images(forward)


def rows(f):
    """f, which knows [N, C, T], for [N, T, C]."""
    return lambda x, *rest: f(x.transpose(1, 2), *rest).transpose(1, 2)


def conv1d(before=0, after=0, **options):
    def forward(x, net, path):
        path += ".conv1d"
        w = net.parameter(path + ".weight", images=True).squeeze(2)
        bias = net.optional(path + ".bias")
        return F.conv1d(F.pad(x, (before, after)), w, bias, **options)

    return rows(forward)


def reduced(f):
    """f over rows and columns of an image."""
    return lambda x, *_: f(x, (1, 2))


# name: the chain in the language, the shape of x, the function in PyTorch.
ROWS, IMAGE, SEQUENCE, HEADS = "N, 5", "N, 5, 4, 4", "N, 4, 6", "N, 5, 8"
LAYERS = {
    # Functions of each element.
    "relu": ("relu", ROWS, lambda x, *_: F.relu(x)),
    "leaky_relu": ("leaky_relu(0.1)", ROWS, lambda x, *_: F.leaky_relu(x, 0.1)),
    "relu6": ("scale(5) |> relu6", ROWS, lambda x, *_: F.relu6(5 * x)),
    "elu": ("elu(0.7)", ROWS, lambda x, *_: F.elu(x, 0.7)),
    # PyTorch 1.13 takes the gradient's alpha for an f32.
    "celu": ("celu(0.25)", ROWS, lambda x, *_: F.celu(x, 0.25)),
    "gelu": ("gelu", ROWS, lambda x, *_: F.gelu(x)),
    "gelu_tanh": (
        "gelu(tanh)", ROWS, lambda x, *_: F.gelu(x, approximate="tanh")),
    "silu": ("silu", ROWS, lambda x, *_: F.silu(x)),
    "mish": ("mish", ROWS, lambda x, *_: F.mish(x)),
    "hard_swish": (
        "scale(3) |> hard_swish", ROWS, lambda x, *_: F.hardswish(3 * x)),
    "sigmoid": ("sigmoid", ROWS, lambda x, *_: torch.sigmoid(x)),
    "tanh": ("tanh", ROWS, lambda x, *_: torch.tanh(x)),
    "exp": ("exp", ROWS, lambda x, *_: torch.exp(x)),
    "log": ("exp |> log", ROWS, lambda x, *_: x.exp().log()),
    "sqrt": ("exp |> sqrt", ROWS, lambda x, *_: x.exp().sqrt()),
    "rsqrt": ("exp |> rsqrt", ROWS, lambda x, *_: x.exp().rsqrt()),
    "sin": ("scale(3) |> sin", ROWS, lambda x, *_: torch.sin(3 * x)),
    "cos": ("scale(3) |> cos", ROWS, lambda x, *_: torch.cos(3 * x)),
    "abs": ("abs", ROWS, lambda x, *_: x.abs()),
    "square": ("square", ROWS, lambda x, *_: x.square()),
    "clamp": ("clamp(-0.5, 1)", ROWS, lambda x, *_: x.clamp(-0.5, 1)),
    "maximum": ("maximum(0.25)", ROWS, lambda x, *_: x.clamp(min=0.25)),
    "minimum": ("minimum(0.25)", ROWS, lambda x, *_: x.clamp(max=0.25)),
    "floor": (
        "steps", ROWS, lambda x, *_: x * x.floor() + x * (2 * x).ceil()),
    "scale": ("scale(1/3)", ROWS, lambda x, *_: x / 3),
    "where": (
        "either", ROWS, lambda x, *_: torch.where(x > 0.5, x * x, 3 * x)),
    "stop_gradient": (
        "held", ROWS, lambda x, *_: x * x.detach()),
    "arithmetic": (
        "sums", ROWS, lambda x, *_: (x - 2) / (3 + x * x) + (-x) ** 3),
    # Over axes.
    "softmax": ("softmax", ROWS, lambda x, *_: F.softmax(x, -1)),
    "softmax_rows": (
        "softmax(axis=height)", IMAGE, lambda x, *_: F.softmax(x, 1)),
    "log_softmax": ("log_softmax", ROWS, lambda x, *_: F.log_softmax(x, -1)),
    "sum": ("sum(axes=[height, width])", IMAGE, reduced(torch.sum)),
    "mean": ("mean(axes=[height, width])", IMAGE, reduced(torch.mean)),
    "max": ("max(axes=[height, width])", IMAGE, reduced(torch.amax)),
    "min": ("min(axes=[height, width])", IMAGE, reduced(torch.amin)),
    "var": ("var(axes=[height, width])", IMAGE, reduced(torch.var)),
    "var_biased": (
        "var(axes=[height, width], unbiased=false)", IMAGE,
        lambda x, *_: x.var((1, 2), unbiased=False)),
    # Shapes.
    "flatten": ("flatten", IMAGE, lambda x, *_: x.flatten(1)),
    "reshape": (
        "reshape([N, 10, 8])", IMAGE, lambda x, *_: x.reshape(-1, 10, 8)),
    "transpose": (
        "transpose([batch, channels, height, width])", IMAGE,
        lambda x, *_: x.permute(0, 3, 1, 2)),
    "slice": (
        "slice(axis=height, from=1, to=4)", IMAGE, lambda x, *_: x[:, 1:4]),
    "slice_end": (
        "slice(channels, -3, -1)", IMAGE, lambda x, *_: x[..., -3:-1]),
    "split": (
        "halves", IMAGE, lambda x, *_: x[..., :2] * x[..., 2:]),
    "concat": (
        "doubled", IMAGE, lambda x, *_: torch.cat([x, x * x], 2)),
    "stack": (
        "stacked", IMAGE, lambda x, *_: torch.stack([x, x * x], 1).flatten(1)),
    "pad": (
        "pad([1, 0, 2, 1])", IMAGE,
        images(lambda x, *_: F.pad(x, (2, 1, 1, 0)))),
    "pad_reflect": (
        "pad(2, mode=reflect)", IMAGE,
        images(lambda x, *_: F.pad(x, (2, 2, 2, 2), mode="reflect"))),
    "pad_edge": (
        "pad(2, mode=edge)", IMAGE,
        images(lambda x, *_: F.pad(x, (2, 2, 2, 2), mode="replicate"))),
    "resize_nearest": (
        "resize([4, 9])", IMAGE,
        images(lambda x, *_: F.interpolate(x, (4, 9), mode="nearest"))),
    "resize_bilinear": (
        "resize([9, 4], mode=bilinear)", IMAGE,
        images(lambda x, *_: F.interpolate(x, (9, 4), mode="bilinear"))),
    # Windows.
    "max_pool": ("max_pool(2)", IMAGE, images(lambda x, *_: F.max_pool2d(x, 2))),
    "max_pool_overlapping": (
        "max_pool(3, stride=2, pad=1)", IMAGE,
        images(lambda x, *_: F.max_pool2d(x, 3, 2, 1))),
    "avg_pool": ("avg_pool(2)", IMAGE, images(lambda x, *_: F.avg_pool2d(x, 2))),
    "avg_pool_padded": (
        "avg_pool(3, stride=2, pad=1)", IMAGE,
        images(lambda x, *_: F.avg_pool2d(x, 3, 2, 1))),
    "global_max_pool": ("global_max_pool", IMAGE, reduced(torch.amax)),
    "global_avg_pool": ("global_avg_pool", IMAGE, reduced(torch.mean)),
    # Layers with parameters.
    "conv": ("conv(3, 3)", IMAGE, conv()),
    "conv_strided": (
        "conv(2, [2, 3], stride=[2, 1], pad=0, bias=false)", IMAGE,
        conv(same=False, stride=(2, 1))),
    "conv_dilated": (
        "conv(2, 3, dilation=2, pad=2)", IMAGE,
        conv(same=False, padding=2, dilation=2)),
    "conv_grouped": ("conv(6, 3, groups=2)", IMAGE, conv(groups=2)),
    "conv_depthwise": ("conv(4, 3, groups=4)", IMAGE, conv(groups=4)),
    "conv_transpose": ("conv_transpose(3, 3)", IMAGE, conv_transpose()),
    "conv_transpose_strided": (
        "conv_transpose(2, [2, 3], stride=[2, 3], pad=[0, 1], bias=false)", IMAGE,
        conv_transpose(stride=(2, 3), padding=(0, 1))),
    "conv_transpose_grouped": (
        "conv_transpose(6, 3, stride=2, pad=1, output_pad=1, groups=2)", IMAGE,
        conv_transpose(stride=2, padding=1, output_padding=1, groups=2)),
    "conv_transpose_dilated": (
        "conv_transpose(2, 3, dilation=2)", IMAGE, conv_transpose(dilation=2)),
    "linear": (
        "linear(4)", ROWS, lambda x, net, path: net.linear(x, path + ".linear_1")),
    "linear_sequence": (
        "linear(4)", SEQUENCE,
        lambda x, net, path: net.linear(x, path + ".linear_1")),
    "product": ("product", SEQUENCE, lambda x, *_: x @ x.transpose(1, 2)),
    "batch_norm": (
        "batch_norm", IMAGE,
        images(lambda x, net, p: net.batch_norm(x, p + ".batch_norm_1"))),
    "batch_norm_rows": (
        "batch_norm(eps=0.1, momentum=0.4, scale=false)", ROWS,
        lambda x, net, p: net.batch_norm(x, p + ".batch_norm_1", 0.1, 0.4)),
    "ghost": ("batch_norm(ghost=2)", IMAGE, images(ghost)),
    "frozen": ("batch_norm(eps=0.5, frozen)", IMAGE, images(frozen)),
    "layer_norm": ("layer_norm", SEQUENCE, layer_norm),
    "group_norm": ("group_norm(2)", IMAGE, images(group_norm)),
    "attention": ("attention(2)", SEQUENCE, attention(False)),
    "attention_causal": ("attention(2, causal)", SEQUENCE, attention(True)),
    "dot_product": (
        "dot_product_attention(1)", "N, 5, 48", dot_product(1, 1, False)),
    "dot_product_causal": (
        "dot_product_attention(2, causal=true)", "N, 3, 144", dot_product(2, 2, True)),
    "dot_product_grouped": (
        "dot_product_attention(4, 2, causal=true)", "N, 9, 24",
        dot_product(4, 2, True)),
    "dot_product_single": (
        "dot_product_attention(2)", "N, 1, 12", dot_product(2, 2, False)),
    "embedding": (
        "tokens |> embedding(5, 3)", ROWS,
        lambda x, net, path: F.embedding(
            x.argmax(1), net.parameter(path + ".embedding_1.weight"))),
    "embedding_tied": (
        "tied", ROWS,
        lambda x, *_: F.embedding(x.argmax(1), x.t()) @ x),
    "one_hot": (
        "hot", ROWS, lambda x, *_: x * F.one_hot(x.argmax(1), 5)),
}  # fmt: skip

# The functions of std/transformers.net.
TRANSFORMERS = {
    "rms_norm": ("rms_norm", SEQUENCE, rms_norm),
    "swiglu": ("swiglu(5)", SEQUENCE, swiglu),
    "rotary": ("rotary(4)", HEADS, lambda x, *_: rotary(x, 4)),
    "rotary_interleaved": (
        "rotary(4, base=100, interleaved=true)", HEADS,
        lambda x, *_: rotary(x, 4, 100, True)),
    "attend": (
        "attended", HEADS,
        lambda x, *_: attend(x, x[..., :4], x[..., 4:].square(), 2)),
    "grouped": ("grouped_attention(4, 2)", HEADS, grouped_attention(True, 10000)),
    "plain": (
        "grouped_attention(4, causal=false, base=0)", HEADS,
        grouped_attention(False, 0)),
    "cross": ("crossed", HEADS, crossed),
}  # fmt: skip

# The functions of std/sequences.net.
LONG = "N, 9, 4"
SEQUENCES = {
    "conv1d": ("conv1d(3, 3)", LONG, conv1d(1, 1)),
    "conv1d_strided": (
        "conv1d(6, 4, stride=2, pad=1, groups=2, bias=false)", LONG,
        conv1d(1, 1, stride=2, groups=2)),
    "conv1d_causal": (
        "conv1d(3, 2, dilation=3, causal=true)", LONG, conv1d(3, 0, dilation=3)),
    "max_pool1d": (
        "max_pool1d(3, stride=2, pad=1)", LONG,
        rows(lambda x, *_: F.max_pool1d(x, 3, 2, 1))),
    "avg_pool1d": (
        "avg_pool1d(2)", LONG, rows(lambda x, *_: F.avg_pool1d(x, 2))),
}  # fmt: skip

# The functions of std/recurrent.net.
RECURRENT = {
    "rnn": ("rnn(5)", LONG, recurrent(torch.rnn_tanh, "rnn", 5)),
    "gru": ("gru(5)", LONG, recurrent(torch.gru, "gru", 5)),
    "gru_last": ("gru(3, last=true)", LONG, last(recurrent(torch.gru, "gru", 3))),
    "gru_twice": ("gru(5) |> gru(3)", LONG, twice),
    "lstm": ("lstm(5)", LONG, recurrent(torch.lstm, "lstm", 5)),
    "lstm_last": ("lstm(3, last=true)", LONG, last(recurrent(torch.lstm, "lstm", 3))),
}  # fmt: skip

RECURRENT_IMPORT = """\
import "std/recurrent.net" { gru, lstm, rnn }

"""

SEQUENCES_IMPORT = """\
import "std/sequences.net" { avg_pool1d, conv1d, max_pool1d }

"""

LAYERS_FUNCTIONS = """\
fn either(x) = where(x > 0.5, x * x, 3 * x)

fn held(x) = x * stop_gradient(x)

fn steps(x) = x * floor(x) + x * ceil(2 * x)

fn sums(x) = (x - 2) / (3 + x * x) + (-x) ^ 3

fn halves(x) {
  y = 1
  for part in split(x, [2, 2]) { y = y * part }
  y
}

fn doubled(x) = concat([x, x * x], axis=width)

fn stacked(x) = stack([x, x * x]) |> flatten

fn product(x) = x @ transpose(x, [batch, channels, positions])

fn tokens(x) = argmax(x) |> reshape([2])

fn tied(x) = embedding(tokens(x), table=transpose(x, [1, 0])) @ x

fn hot(x) = x * one_hot(tokens(x), 5)
"""

TRANSFORMERS_IMPORT = """\
import "std/transformers.net" {
  attend, cross_attention, grouped_attention, rms_norm, rotary, swiglu
}

"""

TRANSFORMERS_FUNCTIONS = """\
fn attended(x) {
  half = split(x, 2)
  attend(x, half[0], square(half[1]), 4)
}

fn crossed(x) {
  memory = slice(x, positions, 2) |> slice(channels, to=6)
  slice(x, positions, to=2) |> cross_attention(memory, 2, bias=false)
}
"""

# name: the file in tests/golden/numbers; its import, functions and cases.
NETS = {
    "layers": ("", LAYERS_FUNCTIONS, LAYERS),
    "recurrent": (RECURRENT_IMPORT, "", RECURRENT),
    "sequences": (SEQUENCES_IMPORT, "", SEQUENCES),
    "transformers": (TRANSFORMERS_IMPORT, TRANSFORMERS_FUNCTIONS, TRANSFORMERS),
}

WEIGHTED = """\
fn start(shape) = parameter(shape, init=uniform(-2, 2))

fn weighted(y, shape) = sum(flatten(y * start(shape)), axes=channels, keep)
"""

def focal(y, t, alpha=(1, 2, 0.5, 4, 1), gamma=2):
    """Lin et al. (2017), equations 4 and 5, with alpha by class."""
    p = y.softmax(-1).gather(-1, t[:, None])[:, 0]
    return (-torch.tensor(alpha)[t] * (1 - p) ** gamma * p.log()).mean()


def sigmoid_focal(y, t, alpha, gamma):
    """The same of logits, as torchvision.ops.sigmoid_focal_loss."""
    p = y.sigmoid()
    right, balance = p * t + (1 - p) * (1 - t), alpha * t + (1 - alpha) * (1 - t)
    e = F.binary_cross_entropy_with_logits(y, t, reduction="none")
    return (balance * (1 - right) ** gamma * e).mean()


# name: the data set, the loss in the language, and in PyTorch.
LOSSES = {
    "cross-entropy": (
        "synthetic()",
        "sum(cross_entropy(output, label))",
        lambda y, t: F.cross_entropy(y, t, reduction="sum"),
    ),
    "smoothed": (
        "synthetic()",
        "mean(cross_entropy(output, label, smoothing=0.2))",
        lambda y, t: F.cross_entropy(y, t, label_smoothing=0.2),
    ),
    "soft-targets": (
        "synthetic(targets)",
        "mean(cross_entropy(output, label, smoothing=0.1))",
        lambda y, t: F.cross_entropy(y, t, label_smoothing=0.1),
    ),
    "weighted": (
        "synthetic()",
        "mean(cross_entropy(output, label, weights=[1, 2, 0.5, 4, 1]))",
        lambda y, t: F.cross_entropy(
            y, t, weight=torch.tensor([1, 2, 0.5, 4, 1])
        ),
    ),
    "ignored-smoothed": (
        "synthetic()",
        "mean(cross_entropy(output, label, 0.2, weights=[1, 2, 0.5, 4, 1], ignore=3))",
        lambda y, t: F.cross_entropy(
            y, t, weight=torch.tensor([1, 2, 0.5, 4, 1]), ignore_index=3,
            label_smoothing=0.2,
        ),
    ),  # fmt: skip
    "focal": (
        "synthetic()",
        "mean(softmax_focal_loss(output, label, [1, 2, 0.5, 4, 1]))",
        focal,
    ),
    "sigmoid-focal": (
        "synthetic()",
        "mean(sigmoid_focal_loss(output, one_hot(label, 5), gamma=1.5))",
        lambda y, t: sigmoid_focal(y, F.one_hot(t, 5).double(), 0.25, 1.5),
    ),
    # The two labels are 3 and 1.
    "ignored": (
        "synthetic()",
        "mean(cross_entropy(output, label, smoothing=0.1, ignore=3))",
        lambda y, t: F.cross_entropy(
            y, t, ignore_index=3, label_smoothing=0.1
        ),
    ),
    "mse": (
        "synthetic(targets)",
        "mean(mse(output, label))",
        lambda y, t: F.mse_loss(y, t),
    ),
    "l1": (
        "synthetic(targets)",
        "sum(l1(output, label))",
        lambda y, t: F.l1_loss(y, t, reduction="sum"),
    ),
    "bce": (
        "synthetic(targets)",
        "mean(bce_with_logits(output, label))",
        lambda y, t: F.binary_cross_entropy_with_logits(y, t),
    ),
}


def right(y, t):
    """How many samples are, each by the share of its labels."""
    return ((y > 0) == (t > 0.5)).double().mean(1).sum()


def train_block(loss, data_set, more=""):
    return f"""
train Numbers {{
  data      = {data_set}
  batch     = {BATCH}, drop_last
  steps     = 1
  loss      = {loss}
  optimizer = sgd(lr=1, momentum=0.5){more}
}}
"""


def shape_text(y):
    return "[" + ", ".join(["N", *map(str, y.shape[1:])]) + "]"


def layers_model(name, shapes):
    """The network of all cases; shapes of results as far as they are known."""
    text = "# Each line is a case of tests/pytorch/layers.py, which made this.\n"
    imported, functions, cases = NETS[name]
    text += imported + WEIGHTED + "\n" + functions
    if not shapes:
        text += "\nfn flat(y) = sum(flatten(y), axes=channels, keep)\n"
    text += "\nmodel Numbers(image: f32[N, 1]) -> f32[N, 1] {\n"
    text += "  t = 0 * image\n"
    for case, (chain, shape, _) in cases.items():
        weight = f"weighted({shapes[case]})" if shapes else "flat"
        text += f"  t = t + (start([{shape}]) |> {chain} |> {weight} as {case})\n"
    loss = "sum(output + 0 * label)"
    # What chooses rows of a table does not train.
    frozen = '\n  freeze "embedding.parameter_1.value"' * ("embedding" in cases)
    return text + "  t\n}\n" + train_block(loss, "synthetic(targets)", frozen)


def loss_model(data_set, loss):
    name = re.search(r"\w*focal\w*", loss)
    load = f'import "std/losses.net" {{ {name[0]} }}\n\n' if name else ""
    return f"""\
# What a loss is of: a matrix that trains.
{load}model Numbers(image: f32[N, 1]) -> f32[N, 5] {{
  parameter([N, 5], init=uniform(-2, 2)) + 0 * image
}}
{train_block(loss, data_set)}"""


def start(sinter, text, folder):
    """The parameters that a trainer of this model starts from, in double."""
    model = os.path.join(folder, "numbers.net")
    trainer = os.path.join(folder, "numbers")
    out = os.path.join(folder, "start")
    shutil.rmtree(out, ignore_errors=True)
    with open(model, "w") as f:
        f.write(text)
    subprocess.run([sinter, "build", model, "-o", trainer], check=True)
    subprocess.run(
        [trainer, f"--data=synthetic:{BATCH}", "--device=host", "--init-only",
         "--quiet", f"--out={out}"],
        check=True,
    )  # fmt: skip
    tensors = weights.load(f"{out}/step-00000000.safetensors")
    return {
        name: t.double() if t.is_floating_point() else t
        for name, t in tensors.items()
    }


def numbers_text(values):
    return " ".join(f"{v:.11g}" for v in values.detach().reshape(-1).tolist())


def write(folder, name, model, net, loss, inputs=(), states={}):
    """The model, and what one step of it comes to."""
    loss.backward()
    with open(os.path.join(folder, name + ".net"), "w") as f:
        f.write(model)
    with open(os.path.join(folder, name + ".txt"), "w") as f:
        f.write(f"loss {loss.item():.11g}\n")
        for key, value in inputs:
            f.write(f"input {key} {numbers_text(value)}\n")
        for key, value in net.gradients().items():
            f.write(f"gradient {key} {numbers_text(value)}\n")
        for key, value in {**net.statistics, **states}.items():
            f.write(f"state {key} {numbers_text(value)}\n")


def judge_layers(sinter, folder, scratch, name):
    cases = NETS[name][2]
    tensors = start(sinter, layers_model(name, None), scratch)
    net = weights.Net(tensors)
    shapes = {}
    for case, (_, _, forward) in cases.items():
        x = net.parameter(f"{case}.parameter_1.value")
        shapes[case] = shape_text(forward(x, net, case))
    model = layers_model(name, shapes)
    net = weights.Net(start(sinter, model, scratch))
    loss = 0
    for case, (_, _, forward) in cases.items():
        y = forward(net.parameter(f"{case}.parameter_1.value"), net, case)
        loss = loss + (y * net.parameter(f"{case}.parameter_2.value")).sum()
    write(folder, name, model, net, loss)


def labels(data_set):
    """Of the one batch: classes, or numbers from 0 to 1."""
    targets = "targets" in data_set
    samples = data.Synthetic((1, 1, 1), 10 if targets else 5, BATCH)
    classes = torch.from_numpy(samples.batch(0, BATCH)[1])
    if not targets:
        return classes
    turns = (classes[:, None] + 1) * (torch.arange(5) % 7 + 1) / 11
    return (0.5 + 0.5 * torch.cos(2 * math.pi * turns)).float().double()


def judge_loss(sinter, folder, scratch, name):
    data_set, loss, forward = LOSSES[name]
    model = loss_model(data_set, loss)
    net = weights.Net(start(sinter, model, scratch))
    label = labels(data_set)
    output = net.parameter("parameter_1.value")
    states = {}
    if name == "bce":
        states["metric.correct"] = right(output, label)
    value = forward(output, label)
    write(
        folder, "loss-" + name, model, net, value, [("label", label)], states
    )


def main(sinter, source, *names):
    torch.set_default_dtype(torch.float64)
    folder = os.path.join(source, "tests", "golden", "numbers")
    with tempfile.TemporaryDirectory() as scratch:
        for name in names or [*NETS, *LOSSES]:
            if name in NETS:
                judge_layers(sinter, folder, scratch, name)
            else:
                judge_loss(sinter, folder, scratch, name)


main(*sys.argv[1:])
