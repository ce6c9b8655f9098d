# writes initial.txt
"""Mean, standard deviation and largest size of what PyTorch starts with.

A case is a weight in the language, drawn by PyTorch until there are a million
numbers.  The largest size is 0 where a distribution has none.
"""
import torch
from torch import nn

NUMBERS = 1 << 20
CONV = (64, 16, 3, 3)


def case(parameter, layers, draw, bounded=True):
    torch.manual_seed(0)
    drawn, count = [], 0
    while count < NUMBERS:
        drawn.append(draw().detach().double().flatten())
        count += drawn[-1].numel()
    x = torch.cat(drawn)
    most = x.abs().max() if bounded else 0
    print(f"{parameter} of {layers}")
    print(f"{x.mean():.6g} {x.std(unbiased=False):.6g} {most:.6g}")


def filters(init, fill, bounded=True):
    def draw():
        w = torch.empty(CONV)
        fill(w)
        return w

    layers = f"conv(16, 1) |> conv(64, 3, init={init}) as it"
    case("it.conv_2.weight", layers, draw, bounded)


def layer(parameter, layers, make, name, bounded=True):
    case(parameter, layers, lambda: getattr(make(), name), bounded)


def attention():
    return nn.MultiheadAttention(16, 2)


init = nn.init
print("# Moments of PyTorch's initialisers: tests/pytorch/initial.py")
filters("zeros", init.zeros_)
filters("ones", init.ones_)
filters("constant(0.25)", lambda w: init.constant_(w, 0.25))
filters("-2", lambda w: init.constant_(w, -2))
filters("uniform(-1, 3)", lambda w: init.uniform_(w, -1, 3))
filters("uniform()", init.uniform_)
filters("normal", init.normal_, False)
filters("normal(3, std=0.5)", lambda w: init.normal_(w, 3, 0.5), False)
filters("kaiming",
        lambda w: init.kaiming_normal_(w, nonlinearity="relu"), False)
filters("kaiming(fan_out)",
        lambda w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"),
        False)
filters("kaiming(distribution=uniform)",
        lambda w: init.kaiming_uniform_(w, nonlinearity="relu"))
filters("kaiming(gain=1)",
        lambda w: init.kaiming_normal_(w, nonlinearity="linear"), False)
filters("xavier", init.xavier_uniform_)
filters("xavier(normal, gain=2)", lambda w: init.xavier_normal_(w, 2), False)
filters("orthogonal", init.orthogonal_, False)
filters("orthogonal(gain=3)", lambda w: init.orthogonal_(w, 3), False)
case("it.conv_2.weight", "conv(16, 1) |> conv(16, 3, init=dirac) as it",
     lambda: init.dirac_(torch.empty(16, 16, 3, 3)))

CONV_LAYER = "conv(16, 1) |> conv(64, 3) as it"
layer("it.conv_2.weight", CONV_LAYER, lambda: nn.Conv2d(16, 64, 3), "weight")
layer("it.conv_2.bias", CONV_LAYER, lambda: nn.Conv2d(16, 64, 3), "bias")
DEPTHWISE = "conv(16, 1) |> conv(64, 3, groups=16) as it"
layer("it.conv_2.weight", DEPTHWISE,
      lambda: nn.Conv2d(16, 64, 3, groups=16), "weight")
LINEAR = "flatten |> linear(64)"
layer("linear_1.weight", LINEAR, lambda: nn.Linear(16, 64), "weight")
layer("linear_1.bias", LINEAR, lambda: nn.Linear(16, 64), "bias")
NORM = "conv(16, 1, bias=false) |> batch_norm"
layer("batch_norm_1.scale", NORM, lambda: nn.BatchNorm2d(16), "weight")
layer("batch_norm_1.bias", NORM, lambda: nn.BatchNorm2d(16), "bias")
layer("group_norm_1.scale", "conv(16, 1) |> group_norm(4)",
      lambda: nn.GroupNorm(4, 16), "weight")
layer("layer_norm_1.scale", "flatten |> layer_norm",
      lambda: nn.LayerNorm(16), "weight")
layer("layer_norm_1.bias", "flatten |> layer_norm",
      lambda: nn.LayerNorm(16), "bias")
layer("embedding_1.weight", "flatten |> argmax |> embedding(512, 16)",
      lambda: nn.Embedding(512, 16), "weight", False)
ATTENTION = "conv(16, 1) |> reshape([N, 16, 16]) |> attention(2)"
layer("attention_1.qkv.weight", ATTENTION, attention, "in_proj_weight")
layer("attention_1.qkv.bias", ATTENTION, attention, "in_proj_bias")
layer("attention_1.out.weight", ATTENTION, lambda: attention().out_proj,
      "weight")
layer("attention_1.out.bias", ATTENTION, lambda: attention().out_proj, "bias")
