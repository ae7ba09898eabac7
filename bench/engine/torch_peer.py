#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs training steps and ops in PyTorch, one on each line of standard input, for hlokit_bench_engine.

A line is the name of a case and the number of threads; the answer is the processor and the elapsed time of one run in
milliseconds, or the reason why there is none. The first run of a case builds it and warms it up.
"""
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, hidden, heads, joined):
        super().__init__()
        self.heads = heads
        self.joined = joined
        self.parts = nn.ModuleList([nn.Linear(hidden, 3 * hidden)] if joined
                                   else [nn.Linear(hidden, hidden) for _ in range(3)])
        self.out = nn.Linear(hidden, hidden)

    def forward(self, x, bias=None, above=None):
        batch, tokens, hidden = x.shape
        parts = self.parts[0](x).split(hidden, 2) if self.joined else [part(x) for part in self.parts]
        q, k, v = (p.view(batch, tokens, self.heads, -1).transpose(1, 2) for p in parts)
        scores = q @ k.transpose(2, 3) / (hidden // self.heads) ** 0.5
        if bias is not None:
            scores = scores + bias
        if above is not None:
            scores = scores.masked_fill(above, float("-inf"))
        return self.out((scores.softmax(3) @ v).transpose(1, 2).reshape(batch, tokens, hidden))


class Block(nn.Module):
    def __init__(self, hidden, heads, before, approximate="none"):
        super().__init__()
        self.before = before  # normalizes before the parts, not after the sums
        self.approximate = approximate
        eps = 1e-5 if before else 1e-12
        self.ln1, self.ln2 = nn.LayerNorm(hidden, eps), nn.LayerNorm(hidden, eps)
        self.attention = Attention(hidden, heads, joined=approximate == "tanh")
        self.fc1, self.fc2 = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def feed(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate=self.approximate))

    def forward(self, x, bias=None, above=None):
        if self.before:
            x = x + self.attention(self.ln1(x), bias, above)
            return x + self.feed(self.ln2(x))
        x = self.ln1(x + self.attention(x, bias, above))
        return self.ln2(x + self.feed(x))


class Bert(nn.Module):
    def __init__(self, hidden=768, vocab=30522, tokens=128):
        super().__init__()
        self.tok, self.pos, self.typ = nn.Embedding(vocab, hidden), nn.Embedding(tokens, hidden), nn.Embedding(2, hidden)
        self.ln, self.head_ln = nn.LayerNorm(hidden, 1e-12), nn.LayerNorm(hidden, 1e-12)
        self.blocks = nn.ModuleList([Block(hidden, 12, before=False) for _ in range(12)])
        self.dense = nn.Linear(hidden, hidden)
        self.bias = nn.Parameter(torch.zeros(vocab))

    def forward(self, ids, types, attention_bias):
        x = self.ln(self.tok(ids) + self.pos.weight + self.typ(types))
        for block in self.blocks:
            x = block(x, attention_bias)
        return F.linear(self.head_ln(F.gelu(self.dense(x))), self.tok.weight, self.bias)


class Gpt2(nn.Module):
    def __init__(self, hidden=768, vocab=50257, tokens=128):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, hidden), nn.Embedding(tokens, hidden)
        self.blocks = nn.ModuleList([Block(hidden, 12, before=True, approximate="tanh") for _ in range(12)])
        self.ln = nn.LayerNorm(hidden)
        self.register_buffer("above", torch.ones(tokens, tokens).triu(1).bool())

    def forward(self, ids):
        x = self.tok(ids) + self.pos.weight
        for block in self.blocks:
            x = block(x, above=self.above)
        return F.linear(self.ln(x), self.tok.weight)


class Vit(nn.Module):
    def __init__(self, hidden=768, classes=1000):
        super().__init__()
        self.cls = nn.Parameter(torch.zeros(1, 1, hidden))
        self.pos = nn.Parameter(torch.zeros(1, 197, hidden))
        self.patch = nn.Conv2d(3, hidden, 16, 16)
        self.blocks = nn.ModuleList([Block(hidden, 12, before=True) for _ in range(12)])
        self.ln, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, classes)

    def forward(self, images):
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln(x)[:, 0])


def training(model, inputs, labels, rate=0.01):
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)

    def step():
        optimizer.zero_grad()
        logits = model(*inputs)
        loss = F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))
        loss.backward()
        optimizer.step()

    return step


def residual(name):
    import torchvision
    return training(getattr(torchvision.models, name)(), [torch.randn(8, 3, 224, 224)], torch.randint(1000, (8,)))


def mlp():
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return training(model, [torch.randn(128, 784)], torch.randint(10, (128,)))


def bert():
    ids = torch.randint(30522, (8, 128))
    labels = torch.where(torch.arange(128) % 5 == 2, ids, torch.full_like(ids, -100))
    bias = torch.zeros(8, 1, 1, 128)
    return training(Bert(), [ids, torch.zeros_like(ids), bias], labels)


def gpt2():
    ids = torch.randint(50257, (8, 128))
    return training(Gpt2(), [ids], ids)


def chain():
    x, y = torch.rand(1 << 24), torch.rand(1 << 24)

    def run():
        z = x * 1.5 + y
        z = torch.tanh(z - 0.25)
        z = z * y + x
        z = torch.maximum(z, y) - x * 0.5
        return z * z

    return run


def softmax():
    x = torch.randn(64, 12, 128, 128)
    return lambda: x.softmax(3)


def layer_norm():
    x, scale, offset = torch.randn(4096, 1024), torch.rand(1024), torch.rand(1024)
    return lambda: F.layer_norm(x, (1024,), scale, offset)


CASES = {
    "step resnet18": lambda: residual("resnet18"),
    "step resnet50": lambda: residual("resnet50"),
    "step mlp": mlp,
    "step bert-base": bert,
    "step gpt2": gpt2,
    "step vit": lambda: training(Vit(), [torch.randn(8, 3, 224, 224)], torch.randint(1000, (8,))),
    "chain of 10": chain,
    "softmax 64x12x128x128": softmax,
    "layer norm 4096x1024": layer_norm,
}


def loaded_blas():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        paths = {line.split()[-1] for line in maps if "/" in line}
    return ", ".join(sorted(p for p in paths if "blas" in p or "mkl" in p))


def main():
    torch.ones(4, 4) @ torch.ones(4, 4)
    print(f"torch {torch.__version__}, {loaded_blas()}", flush=True)
    made_name, run = None, None
    for line in sys.stdin:
        name, threads = line.rstrip("\n").rsplit("\t", 1)
        if name not in CASES:
            print("no such case", flush=True)
            continue
        torch.set_num_threads(int(threads))
        if name != made_name:
            run = None  # one case at a time takes memory
            torch.manual_seed(1)
            made_name, run = name, CASES[name]()
            for _ in range(2):
                run()
        processor, elapsed = time.process_time(), time.perf_counter()
        run()
        print((time.process_time() - processor) * 1e3, (time.perf_counter() - elapsed) * 1e3, flush=True)


if __name__ == "__main__":
    main()
