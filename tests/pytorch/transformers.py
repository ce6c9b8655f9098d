"""Transformers and recurrent networks of models/: what a forward pass computes."""

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


def gpt2_block(net, x, path, heads):
    def dense(x, name):
        weight = net.parameter(f"{path}.{name}.weight.value")
        return x @ weight + net.parameter(f"{path}.{name}.bias.value")

    def norm(x, name):
        scale = net.parameter(f"{path}.{name}.scale")
        bias = net.parameter(f"{path}.{name}.bias")
        return F.layer_norm(x, x.shape[-1:], scale, bias)

    n, t, c = x.shape
    q, k, v = (
        part.view(n, t, heads, c // heads).transpose(1, 2)
        for part in dense(norm(x, "ln_1"), "attn.c_attn").chunk(3, -1)
    )
    y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + dense(y.transpose(1, 2).reshape(n, t, c), "attn.c_proj")
    h = F.gelu(dense(norm(x, "ln_2"), "mlp.c_fc"), approximate="tanh")
    return x + dense(h, "mlp.c_proj")


def gpt2(net, tokens):
    table = net.parameter("wte.value")
    places = net.parameter("wpe.value")[:, : tokens.shape[1]]
    x = F.embedding(tokens, table) + places
    for path in ("h", "h_2"):
        x = gpt2_block(net, x, path, heads=2)
    scale, bias = net.parameter("ln_f.scale"), net.parameter("ln_f.bias")
    return F.layer_norm(x, x.shape[-1:], scale, bias) @ table.t()


def rms_norm(net, x, path):
    root = (x.square().mean(-1, keepdim=True) + 1e-6).sqrt()
    return x / root * net.parameter(path + ".rms_norm.scale.value")


def rotated(x):
    """Halves of each head, of [N, heads, T, S], turn by the position."""
    a, b = x.chunk(2, -1)
    rate = 10000 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = torch.outer(torch.arange(x.shape[2]), rate)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def llama_block(net, x, path, heads, kv_heads):
    n, t, c = x.shape
    h = rms_norm(net, x, path + ".attention")
    q, k, v = (
        net.linear(h, f"{path}.attention.{name}")
        .view(n, t, -1, c // heads)
        .transpose(1, 2)
        for name in ("query", "key", "value")
    )
    k, v = (part.repeat_interleave(heads // kv_heads, 1) for part in (rotated(k), v))
    scores = rotated(q) @ k.transpose(2, 3) / math.sqrt(c // heads)
    scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -math.inf)
    y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, t, c)
    x = x + net.linear(y, path + ".attention.out")
    h = rms_norm(net, x, path + ".mlp")
    h = F.silu(net.linear(h, path + ".mlp.gate")) * net.linear(h, path + ".mlp.up")
    return x + net.linear(h, path + ".mlp.down")


def llama_nano(net, tokens):
    x = F.embedding(tokens, net.parameter("tokens.weight"))
    for path in ("layer", "layer_2", "layer_3"):
        x = llama_block(net, x, path, heads=6, kv_heads=2)
    return net.linear(rms_norm(net, x, "head"), "head.linear_1")


def gru_text(net, tokens):
    x = F.embedding(tokens, net.parameter("bytes.weight"))
    weights = [
        net.parameter("gru." + name)
        for name in (
            "input.weight", "state.value", "input_bias.value", "state_bias.value"
        )
    ]  # fmt: skip
    h = x.new_zeros(1, len(x), weights[1].shape[1])
    y, _ = torch.gru(x, h, weights, True, 1, 0, True, False, True)
    return net.linear(y, "head")
