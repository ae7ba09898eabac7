# SPDX-License-Identifier: Apache-2.0
"""Small models of the kinds that people capture with torch.export and torch.compile, and their inputs."""

import math

import torch
from torch import nn
from torch.nn import functional


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))

    def forward(self, x):
        return self.layers(x)


class Block(nn.Module):
    def __init__(self, inner, outer, stride):
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outer)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outer)
        self.shortcut = nn.Conv2d(inner, outer, 1, stride, bias=False)

    def forward(self, x):
        y = functional.relu(self.norm1(self.first(x)))
        return functional.relu(self.norm2(self.second(y)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.blocks = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        return self.head(self.blocks(self.pool(self.stem(x))).mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, size, heads, kv_heads, causal):
        super().__init__()
        self.heads, self.kv_heads, self.causal, self.each = heads, kv_heads, causal, size // heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, self.each * kv_heads)
        self.value = nn.Linear(size, self.each * kv_heads)
        self.output = nn.Linear(size, size)

    def forward(self, x, rotate=None):
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, self.heads, self.each).transpose(1, 2)
        key = self.key(x).view(batch, length, self.kv_heads, self.each).transpose(1, 2)
        value = self.value(x).view(batch, length, self.kv_heads, self.each).transpose(1, 2)
        if rotate is not None:
            query, key = rotate(query), rotate(key)
        group = self.heads // self.kv_heads
        key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, -1))


class Bert(nn.Module):
    """Norms behind the sums, learned positions, kinds of tokens."""

    def __init__(self, size=16):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(50, size), nn.Embedding(32, size), nn.Embedding(2, size)
        self.norm = nn.LayerNorm(size)
        self.attention = nn.ModuleList(Attention(size, 4, 4, False) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(4))
        self.wide = nn.ModuleList(nn.Linear(size, 2 * size) for _ in range(2))
        self.narrow = nn.ModuleList(nn.Linear(2 * size, size) for _ in range(2))
        self.pooler = nn.Linear(size, size)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = self.norm(self.words(ids) + self.places(places) + self.kinds(torch.zeros_like(ids)))
        for i, attention in enumerate(self.attention):
            x = self.norms[2 * i](x + attention(x))
            x = self.norms[2 * i + 1](x + self.narrow[i](functional.gelu(self.wide[i](x))))
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt(nn.Module):
    """Norms before the layers, a causal mask, logits by the embedding's weight."""

    def __init__(self, size=16):
        super().__init__()
        self.words, self.places = nn.Embedding(50, size), nn.Embedding(32, size)
        self.attention = nn.ModuleList(Attention(size, 4, 4, True) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(5))
        self.wide = nn.ModuleList(nn.Linear(size, 4 * size) for _ in range(2))
        self.narrow = nn.ModuleList(nn.Linear(4 * size, size) for _ in range(2))

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        for i, attention in enumerate(self.attention):
            x = x + attention(self.norms[2 * i](x))
            x = x + self.narrow[i](functional.gelu(self.wide[i](self.norms[2 * i + 1](x)), approximate="tanh"))
        return self.norms[4](x) @ self.words.weight.t()


class Llama(nn.Module):
    """RMS norms, rotary positions, grouped heads, gates."""

    def __init__(self, size=16):
        super().__init__()
        self.words = nn.Embedding(50, size)
        self.attention = nn.ModuleList(Attention(size, 4, 2, True) for _ in range(2))
        self.norms = nn.ModuleList(nn.RMSNorm(size) for _ in range(5))
        self.gate = nn.ModuleList(nn.Linear(size, 2 * size, bias=False) for _ in range(2))
        self.wide = nn.ModuleList(nn.Linear(size, 2 * size, bias=False) for _ in range(2))
        self.narrow = nn.ModuleList(nn.Linear(2 * size, size, bias=False) for _ in range(2))
        self.head = nn.Linear(size, 50, bias=False)
        self.register_buffer("frequencies", 10000.0 ** -(torch.arange(0, size // 4, 2) / (size // 4)), persistent=False)

    def forward(self, ids):
        angles = torch.outer(torch.arange(ids.shape[1], device=ids.device).float(), self.frequencies).repeat(1, 2)
        cosine, sine = angles.cos(), angles.sin()

        def rotate(x):
            low, high = x.chunk(2, -1)
            return x * cosine + torch.cat([-high, low], -1) * sine

        x = self.words(ids)
        for i, attention in enumerate(self.attention):
            x = x + attention(self.norms[2 * i](x), rotate)
            y = self.norms[2 * i + 1](x)
            x = x + self.narrow[i](functional.silu(self.gate[i](y)) * self.wide[i](y))
        return self.head(self.norms[4](x))


class VisionTransformer(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.patches = nn.Conv2d(3, size, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, size))
        self.places = nn.Parameter(torch.randn(1, 17, size) / math.sqrt(size))
        layer = nn.TransformerEncoderLayer(size, 2, 32, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(size, 5)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.layers(x)[:, 0])


class Recurrent(nn.Module):
    """Cells written as loops, which Dynamo captures; it does not capture nn.LSTM."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.LSTMCell(8, 12), nn.GRUCell(12, 4)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[1], 12)
        g = x.new_zeros(x.shape[1], 4)
        rows = []
        for row in x:
            h, c = self.first(row, (h, c))
            g = self.second(h, g)
            rows.append(g)
        return torch.stack(rows), c


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 12, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(24, 4)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.gru(y)[0], h, c


def ids():
    return torch.randint(0, 50, (2, 9))


# A model, and its input.
MODELS = {
    "mlp": (Mlp, lambda: torch.randn(3, 8)),
    "resnet": (ResNet, lambda: torch.randn(2, 3, 16, 16)),
    "bert": (Bert, ids),
    "gpt": (Gpt, ids),
    "llama": (Llama, ids),
    "vit": (VisionTransformer, lambda: torch.randn(2, 3, 16, 16)),
    "recurrent": (Recurrent, lambda: torch.randn(5, 2, 8)),
    "lstm": (Lstm, lambda: torch.randn(2, 5, 8)),
}


def make(name):
    """A model with its input, the same ones each time."""
    torch.manual_seed(5)
    model, data = MODELS[name]
    return model(), data()
