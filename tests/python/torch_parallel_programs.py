# SPDX-License-Identifier: Apache-2.0
"""Models, batches and losses of the tests that train on many devices, and what PyTorch computes for them on the host."""

import torch
from torch import nn

STEPS = 3
BATCH = 16
WORDS = 32


class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width=16, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        parts = self.qkv(self.norm1(x)).chunk(3, -1)
        q, k, v = [p.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for p in parts]
        attention = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width)
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.logits = nn.Linear(width, WORDS)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.logits(x)


def model_of(kind):
    torch.manual_seed(0)
    if kind == "transformer":
        return Transformer()
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 4))


def layers_of(kind, model):
    return list(model.blocks) if kind == "transformer" else [model[0], model[2]]


def batch_of(kind, step):
    generator = torch.Generator().manual_seed(100 + step)
    if kind == "transformer":
        words = torch.randint(0, WORDS, (BATCH, 9), generator=generator)
        return words[:, :-1].contiguous(), words[:, 1:].contiguous()
    return torch.randn(BATCH, 8, generator=generator), torch.randn(BATCH, 4, generator=generator)


def loss_of(kind, out, labels):
    if kind == "transformer":
        return nn.functional.cross_entropy(out.reshape(-1, WORDS), labels.reshape(-1))
    return nn.functional.mse_loss(out, labels)


def optimizer_of(name, parameters, **options):
    if name == "SGD":
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9, **options)
    return torch.optim.AdamW(parameters, lr=0.01, **options)


def losses_on_host(kind, optimizer):
    """The losses of the whole batches, without hlokit."""
    model = model_of(kind)
    optimizer = optimizer_of(optimizer, model.parameters())
    losses = []
    for step in range(STEPS):
        inputs, labels = batch_of(kind, step)
        optimizer.zero_grad()
        loss = loss_of(kind, model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses
