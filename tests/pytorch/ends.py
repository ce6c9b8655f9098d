# writes ends.txt
"""Functions of one number where they jump or end, and at what is no number:
x, PyTorch's value and gradient there.

Each is of a tensor of one element, as PyTorch's kernels for vectors do not all
agree with those for what is left over: of `relu6` the gradient at NaN is 0 in
the one and passes in the other.
"""
import torch
import torch.nn.functional as F

NAN, INFINITY = float("nan"), float("inf")

# The chain in the language, PyTorch's function, and where it jumps or ends.
CASES = [
    ("relu", F.relu, [0]),
    ("relu6", F.relu6, [0, 6]),
    ("leaky_relu(0.1)", lambda x: F.leaky_relu(x, 0.1), [0]),
    ("elu(2)", lambda x: F.elu(x, 2), [0]),
    ("celu(0.5)", lambda x: F.celu(x, 0.5), [0]),
    ("hard_swish", F.hardswish, [-3, 3]),
    ("abs", torch.abs, [0]),
    ("clamp(-1,1)", lambda x: torch.clamp(x, -1, 1), [-1, 1]),
    ("gelu", F.gelu, []),
    ("gelu(tanh)", lambda x: F.gelu(x, approximate="tanh"), []),
    ("silu", F.silu, []),
    ("mish", F.mish, []),
    ("sigmoid", torch.sigmoid, []),
    ("tanh", torch.tanh, []),
    ("exp", torch.exp, []),
    ("log", torch.log, [0, -1]),
    ("sqrt", torch.sqrt, [0, -1]),
    ("rsqrt", torch.rsqrt, [0, -1]),
    ("square", torch.square, []),
]


def main():
    print("# Functions at their ends, of PyTorch: tests/pytorch/ends.py")
    for chain, function, ends in CASES:
        for at in [NAN, INFINITY, -INFINITY, *map(float, ends)]:
            x = torch.tensor([at], dtype=torch.float64, requires_grad=True)
            y = function(x)
            y.sum().backward()
            print(chain, at, y.item(), x.grad.item())


main()
