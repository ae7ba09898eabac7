# SPDX-License-Identifier: Apache-2.0
"""Models, batches and losses of the tests that train on many devices, and what PyTorch computes for them on the host."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

import hlokit.torch as ht
import hlokit.torch.xla_model as xm

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


# ---- ranks ----


def new_session():
    """A session of one device with the default options."""
    ht.configure(devices=1, pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0, spmd=False)


def answers_of(fn, count, backend="hlokit"):
    """What fn(rank) returns on each device, with a group of all."""
    answers = [None] * count

    def run(index):
        dist.init_process_group(backend)
        assert (dist.get_rank(), dist.get_world_size()) == (index, count)
        answers[index] = fn(index)
        dist.destroy_process_group()

    ht.spawn(run, nprocs=count)
    return answers


def filled(value, *sizes, device):
    return torch.full(sizes, float(value), device=device)


def train(kind, optimizer, model, rank, count, device="tpu", **options):
    """The losses of this rank's part of each batch, their mean over the ranks."""
    optimizer = optimizer_of(optimizer, model.parameters(), **options)
    losses = []
    for step in range(STEPS):
        inputs, labels = (part.chunk(count)[rank].to(device) for part in batch_of(kind, step))
        optimizer.zero_grad()
        loss = loss_of(kind, model(inputs), labels)
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        xm.mark_step()
        losses.append(mean)
    return [loss.item() for loss in losses]


def check_losses(found, kind, optimizer):
    expected = losses_on_host(kind, optimizer)
    for losses in found:
        assert losses == pytest.approx(expected, abs=1e-5)
