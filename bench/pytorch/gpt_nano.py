"""models/gpt_nano.net in PyTorch: the network and its optimizer."""
import torch
from torch import nn
from torch.nn import functional
from torch.nn.functional import gelu, softmax


LENGTH = 128


class Attention(nn.Module):
    """Causal attention; its scores are dropped out, too."""

    def __init__(self, width, heads, drop, fused):
        super().__init__()
        self.heads, self.drop, self.fused = heads, drop, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        n, t, c = x.shape
        q, k, v = (part.view(n, t, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        if self.fused:
            y = functional.scaled_dot_product_attention(
                q, k, v, dropout_p=self.drop * self.training, is_causal=True)
        else:
            scores = q @ k.transpose(2, 3) * (c // self.heads) ** -0.5
            later = torch.ones(t, t, dtype=torch.bool).triu(1)
            shares = softmax(scores.masked_fill(later, -torch.inf), -1)
            y = nn.functional.dropout(shares, self.drop, self.training) @ v
        return self.out(y.transpose(1, 2).reshape(n, t, c))


class Block(nn.Module):
    def __init__(self, width, heads, drop, fused):
        super().__init__()
        self.attention = Attention(width, heads, drop, fused)
        self.norm, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x):
        x = x + self.drop(self.attention(self.norm(x)))
        wide = gelu(self.up(self.norm_2(x)), approximate="tanh")
        return x + self.drop(self.down(wide))


class GptNano(nn.Module):
    def __init__(self, width=48, vocabulary=65, layers=3, heads=3, drop=0.1,
                 fused=False):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.position = nn.Parameter(0.02 * torch.randn(LENGTH, width))
        self.drop = nn.Dropout(drop)
        self.blocks = nn.Sequential(*(Block(width, heads, drop, fused)
                                      for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(self, tokens):
        x = self.drop(self.tokens(tokens) + self.position)
        return self.head(self.norm(self.blocks(x)))


def adamw(model, **options):
    """Biases and the layer norms do not decay."""
    plain, decayed = [], []
    for name, parameter in model.named_parameters():
        kept = name.endswith("bias") or "norm" in name
        (plain if kept else decayed).append(parameter)
    return torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                              {"params": plain, "weight_decay": 0}],
                             lr=5e-4, betas=(0.9, 0.95), **options)
