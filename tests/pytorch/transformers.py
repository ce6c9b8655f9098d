"""The transformers of models/: what a forward pass computes."""

import math

import torch
import torch.nn.functional as F

from nets import normalize


class Layers:
    """Layers that are numbered as they come, each kind apart."""

    def __init__(self, net):
        self.net, self.count = net, {}

    def next(self, kind):
        self.count[kind] = self.count.get(kind, 0) + 1
        return f"{kind}_{self.count[kind]}"

    def linear(self, x):
        return self.net.linear(x, self.next("linear"))

    def layer_norm(self, x, eps=1e-5):
        path = self.next("layer_norm")
        scale = self.net.parameter(path + ".scale")
        bias = self.net.parameter(path + ".bias")
        return F.layer_norm(x, x.shape[-1:], scale, bias, eps)

    def attention(self, x, heads, causal=False):
        n, t, c = x.shape
        path = self.next("attention")
        q, k, v = (
            part.view(n, t, heads, c // heads).transpose(1, 2)
            for part in self.net.linear(x, path + ".qkv").chunk(3, -1)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(c // heads)
        if causal:
            later = torch.ones(t, t).triu(1).bool()
            scores = scores.masked_fill(later, -math.inf)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
        return self.net.linear(y, path + ".out")


def vit_block(layers, x, heads):
    h = layers.layer_norm(x, eps=1e-6)
    x = x + layers.attention(h, heads)
    h = F.gelu(layers.linear(layers.layer_norm(x, eps=1e-6)))
    return x + layers.linear(h)


def vit(depth, heads, patch):
    def forward(net, x):
        layers = Layers(net)
        x = normalize(x, [127.5] * 3, [127.5] * 3)
        x = net.conv(x, "patches.conv_1", same=False, stride=patch)
        x = x.flatten(2).transpose(1, 2)
        first = net.parameter("patches.parameter_1.value")
        x = torch.cat([first.expand(len(x), 1, -1), x], 1)
        x = x + net.parameter("parameter_1.value")
        for _ in range(depth):
            x = vit_block(layers, x, heads)
        return layers.linear(layers.layer_norm(x, eps=1e-6)[:, 0])

    return forward


def gpt_block(layers, x, heads):
    h = layers.layer_norm(x)
    x = x + layers.attention(h, heads, causal=True)
    h = F.gelu(layers.linear(layers.layer_norm(x)), approximate="tanh")
    return x + layers.linear(h)


def gpt_nano(net, tokens):
    layers = Layers(net)
    x = F.embedding(tokens, net.parameter("embedding_1.weight"))
    x = x + net.parameter("parameter_1.value")
    for _ in range(3):
        x = gpt_block(layers, x, heads=3)
    return layers.linear(layers.layer_norm(x))
