# writes contractions.txt
"""The outputs of tests/codegen/nets/tile-shapes.ir, in double.

Prints for each output four sums of its elements with drawn weights, and the
root mean square of its elements.  Leaves have the numbers that
tests/codegen/tensors.c gives them, rounded to f16."""

import os
import re

import numpy as np
import torch
import torch.nn.functional as F

from augment import stream_of

NODE = re.compile(r"  %(\d+) = (\w+) ?([%\d, ]*?) ?(?:\{(.*)\})? : \w+\[(.*)\]$")
MASK, SUMS = np.uint64(0xFFFFFFFF), 4
OF_INPUTS, OF_PARAMS, OF_SUMS = 1, 2, 3  # seeds; each sum has its own


def uniform(seed, name, count):
    """Numbers 0 .. count-1 of ir/random.c's random_uniform in epoch 0."""
    x = [np.arange(count, dtype=np.uint64)] + [np.zeros(count, np.uint64)] * 3
    keys = [seed, stream_of(name)]
    for _ in range(10):
        a, b = np.uint64(0xD2511F53) * x[0], np.uint64(0xCD9E8D57) * x[2]
        x = [b >> np.uint64(32) ^ x[1] ^ np.uint64(keys[0]), b & MASK,
             a >> np.uint64(32) ^ x[3] ^ np.uint64(keys[1]), a & MASK]
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF,
                (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return (x[0] >> np.uint64(8)) * 2.0**-24


def leaf(op, name, shape):
    u = uniform(OF_INPUTS if op == "input" else OF_PARAMS, name,
                int(np.prod(shape)))
    value = 2 * u - 1 if op == "input" else u - 0.5
    return torch.from_numpy(value).half().double().reshape(shape)


def conv(x, w, attrs):
    top, bottom, left, right = attrs["pad"]
    x = F.pad(x.permute(0, 3, 1, 2), (left, right, top, bottom))
    return F.conv2d(x, w.permute(0, 3, 1, 2), None, attrs["stride"], 0,
                    attrs["dilation"], attrs["groups"][0]).permute(0, 2, 3, 1)


def gradient(dy, attrs, x, w, of):
    of.requires_grad_()
    return torch.autograd.grad(conv(x, w, attrs), of, dy)[0]


def compute(op, arg, attrs, shape):
    if op == "conv":
        return conv(*arg, attrs)
    if op == "conv_grad_input":
        x = torch.zeros(shape, dtype=torch.double)
        return gradient(arg[0], attrs, x, arg[1], x)
    if op == "conv_grad_weight":
        w = torch.zeros(shape, dtype=torch.double)
        return gradient(arg[0], attrs, arg[1], w, w)
    if op == "matmul":
        a = arg[0].mT if attrs.get("ta", [0])[0] else arg[0]
        return a @ (arg[1].mT if attrs.get("tb", [0])[0] else arg[1])
    return {"add": torch.add, "mul": torch.mul, "tanh": torch.tanh,
            "cast": torch.clone, "output": torch.clone}[op](*arg)


def main():
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                        "../codegen/nets/tile-shapes.ir")
    value = {}
    for line in open(path):
        match = NODE.match(line)
        if not match:
            continue
        number, op, args, words, shape = match.groups()
        shape = [int(n) for n in shape.split(",")]
        name = re.search(r'name = "(.*)"', words or "")
        if op in ("input", "param"):
            value[number] = leaf(op, name[1], shape)
            continue
        attrs = {key: [int(n) for n in re.findall(r"-?\d+", text)]
                 for key, text in re.findall(r"(\w+) = (\[.*?\]|-?\d+)",
                                             words or "")}
        arg = [value[n] for n in re.findall(r"%(\d+)", args)]
        y = value[number] = compute(op, arg, attrs, shape).detach()
        if op == "output":
            flat = y.reshape(-1).numpy()
            sums = [(2 * uniform(OF_SUMS + k, name[1], flat.size) - 1) @ flat
                    for k in range(SUMS)]
            print(name[1], *(f"{x:.12g}" for x in sums),
                  f"{np.sqrt(np.mean(flat**2)):.12g}")


main()
