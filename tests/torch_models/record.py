#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains PyTorch versions of models for three steps, and writes their metrics for `ir-dump --model ... --expect`.

  tests/torch_models/record.py [NAME]...      default: all; writes NAME.expect beside this file

Needs PyTorch (Debian's python3-torch). A line is `KEY VALUE REFERENCE TOLERANCE`: the value in f32, the reference in f64.
The tolerance is four times their difference, and at least 2e-5 of the reference. Parameters and inputs are those of
tracer/graph/deterministic_init.h; the first line of a file has the flags of ir-dump.
"""
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

GAIN = 6.0


def words(k, i):
    mask = np.uint64(0xFFFFFFFF)
    h = (np.asarray(i, dtype=np.uint64) * np.uint64(0x9E3779B1) + np.uint64((k + 1) * 0x85EBCA77)) & mask
    h ^= h >> np.uint64(16)
    h = (h * np.uint64(0x85EBCA6B)) & mask
    h ^= h >> np.uint64(13)
    h = (h * np.uint64(0xC2B2AE35)) & mask
    h ^= h >> np.uint64(16)
    return h


def hashed(k, count):
    return words(k, np.arange(count)).astype(np.float64) / 2147483648.0 - 1


def numbers(k, shape):
    return torch.from_numpy(hashed(k, math.prod(shape)).astype(np.float32)).reshape(shape)


def tokens(k, shape, vocab):
    return torch.from_numpy((words(k, np.arange(math.prod(shape))) % np.uint64(vocab)).astype(np.int64)).reshape(shape)


def initialize(parameters):
    for k, (name, p) in enumerate(parameters):
        if p.dim() >= 2:
            offset, scale = 0.0, math.sqrt(GAIN / math.prod(p.shape[1:]))
        elif "norm" in name and name.endswith("weight") or "rms" in name:
            offset, scale = 1.0, 0.1
        else:
            offset, scale = 0.0, 0.01
        values = (offset + scale * hashed(k, p.numel())).astype(np.float32)
        with torch.no_grad():
            p.copy_(torch.from_numpy(values).reshape(p.shape))


class Lstm(nn.Module):
    flags = "--model=lstm --batch=3 --seq=7 --vocab=23 --hidden=12 --layers=2"

    def __init__(self):
        super().__init__()
        self.encoder = nn.Embedding(23, 12)
        self.rnn = nn.LSTM(12, 12, 2, batch_first=True)
        self.decoder = nn.Linear(12, 23)

    def order(self):
        return list(self.named_parameters())

    def forward(self, _):
        ids = tokens(1001, (3, 7), 23)
        logits = self.decoder(self.rnn(self.encoder(ids))[0])
        return logits, F.cross_entropy(logits[:, :-1].reshape(-1, 23), ids[:, 1:].reshape(-1))


class Dlrm(nn.Module):
    flags = "--model=dlrm --batch=5 --vocab=11 --hidden=8"

    def __init__(self):
        super().__init__()
        self.emb_l = nn.ModuleList([nn.EmbeddingBag(11, 8, mode="sum") for _ in range(26)])

        def mlp(widths, last):
            layers = []
            for a, b in zip(widths, widths[1:]):
                layers += [nn.Linear(a, b), nn.ReLU()]
            return nn.Sequential(*(layers if last else layers[:-1]))

        self.bot_l = mlp([13, 512, 256, 64, 8], True)
        self.top_l = mlp([8 + 27 * 26 // 2, 512, 256, 1], False)

    def order(self):
        return list(self.named_parameters())

    def forward(self, dtype):
        x = self.bot_l(numbers(1000, (5, 13)).to(dtype))
        ids = tokens(1001, (5, 26), 11)
        rows = [x] + [table(ids[:, i : i + 1]) for i, table in enumerate(self.emb_l)]
        all_rows = torch.cat(rows, 1).view(5, 27, 8)
        products = torch.bmm(all_rows, all_rows.transpose(1, 2))
        low = torch.tril_indices(27, 27, offset=-1)
        logits = self.top_l(torch.cat([x, products[:, low[0], low[1]]], 1))
        labels = torch.tensor([(7 * n + 3) % 2 for n in range(5)]).to(dtype)
        return logits, F.binary_cross_entropy_with_logits(logits.view(-1), labels)


class RmsNorm(nn.Module):
    def __init__(self, n, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.empty(n)), eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Mixtral(nn.Module):
    """Each expert computes only the tokens that chose it."""

    flags = "--model=mixtral --batch=2 --seq=6 --vocab=19 --hidden=16 --layers=2 --heads=4 --kv-heads=2 --ff=20 --experts=4"

    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(19, 16)
        self.blocks = nn.ModuleList()
        for _ in range(2):
            b = nn.Module()
            b.rms1 = RmsNorm(16, 1e-5)
            b.q, b.k = nn.Linear(16, 16, bias=False), nn.Linear(16, 8, bias=False)
            b.v, b.o = nn.Linear(16, 8, bias=False), nn.Linear(16, 16, bias=False)
            b.rms2 = RmsNorm(16, 1e-5)
            b.router = nn.Linear(16, 4, bias=False)
            b.experts = nn.ModuleList()
            for _ in range(4):
                e = nn.Module()
                e.gate, e.up = nn.Linear(16, 20, bias=False), nn.Linear(16, 20, bias=False)
                e.down = nn.Linear(20, 16, bias=False)
                b.experts.append(e)
            self.blocks.append(b)
        self.rms = RmsNorm(16, 1e-5)
        self.lm = nn.Linear(16, 19, bias=False)

    def order(self):
        return list(self.named_parameters())

    def forward(self, dtype):
        ids = tokens(1001, (2, 6), 19)
        width = 4
        inverse = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angles = torch.outer(torch.arange(6, dtype=torch.float64), inverse)
        angles = torch.cat([angles, angles], -1)
        cos, sin = angles.cos().float().to(dtype), angles.sin().float().to(dtype)

        def rotate(x):
            a, b = x.chunk(2, -1)
            return x * cos + torch.cat([-b, a], -1) * sin

        x = self.tok(ids)
        for b in self.blocks:
            h = b.rms1(x)
            q = rotate(b.q(h).view(2, 6, 4, width).transpose(1, 2))
            k = rotate(b.k(h).view(2, 6, 2, width).transpose(1, 2)).repeat_interleave(2, 1)
            v = b.v(h).view(2, 6, 2, width).transpose(1, 2).repeat_interleave(2, 1)
            scores = q @ k.transpose(2, 3) / math.sqrt(width)
            scores = scores + torch.full((6, 6), float("-inf"), dtype=dtype).triu(1)
            x = x + b.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(2, 6, 16))
            h = b.rms2(x).view(-1, 16)
            weights, chosen = torch.topk(b.router(h).softmax(-1), 2, -1)
            weights = weights / weights.sum(-1, keepdim=True)
            y = torch.zeros_like(h)
            for e, expert in enumerate(b.experts):
                row, place = torch.where(chosen == e)
                part = h[row]
                part = expert.down(F.silu(expert.gate(part)) * expert.up(part)) * weights[row, place, None]
                y.index_add_(0, row, part)
            x = x + y.view(2, 6, 16)
        logits = self.lm(self.rms(x))
        return logits, F.cross_entropy(logits[:, :-1].reshape(-1, 19), ids[:, 1:].reshape(-1))


class T5(nn.Module):
    flags = "--model=t5 --batch=2 --seq=40 --vocab=21 --hidden=16 --layers=2 --heads=2 --ff=24"

    def __init__(self):
        super().__init__()
        self.shared = nn.Embedding(21, 16)

        def attention(bias):
            a = nn.Module()
            a.q, a.k, a.v, a.o = (nn.Linear(16, 16, bias=False) for _ in range(4))
            if bias:
                a.relative_attention_bias = nn.Embedding(32, 2)
            return a

        def stack(decodes):
            s = nn.Module()
            s.block = nn.ModuleList()
            for i in range(2):
                b = nn.Module()
                b.layer = nn.ModuleList()
                first = nn.Module()
                first.SelfAttention, first.layer_norm = attention(i == 0), RmsNorm(16, 1e-6)
                b.layer.append(first)
                if decodes:
                    cross = nn.Module()
                    cross.EncDecAttention, cross.layer_norm = attention(False), RmsNorm(16, 1e-6)
                    b.layer.append(cross)
                last = nn.Module()
                last.DenseReluDense = nn.Module()
                last.DenseReluDense.wi, last.DenseReluDense.wo = nn.Linear(16, 24, bias=False), nn.Linear(24, 16, bias=False)
                last.layer_norm = RmsNorm(16, 1e-6)
                b.layer.append(last)
                s.block.append(b)
            s.final_layer_norm = RmsNorm(16, 1e-6)
            return s

        self.encoder, self.decoder = stack(False), stack(True)

    def order(self):
        return list(self.named_parameters())

    @staticmethod
    def bucket(relative, bidirectional, buckets=32, farthest=128):
        out = torch.zeros_like(relative)
        n = -relative
        if bidirectional:
            buckets //= 2
            out += (n < 0).long() * buckets
            n = n.abs()
        else:
            n = n.clamp(min=0)
        exact = buckets // 2
        large = exact + (torch.log(n.double() / exact) / math.log(farthest / exact) * (buckets - exact)).long()
        large = torch.min(large, torch.full_like(large, buckets - 1))
        return out + torch.where(n < exact, n, large)

    def attend(self, a, x, memory, bias):
        def heads(y):
            return y.view(2, 40, 2, 8).transpose(1, 2)

        scores = heads(a.q(x)) @ heads(a.k(memory)).transpose(2, 3)
        if bias is not None:
            scores = scores + bias
        return a.o((scores.softmax(-1) @ heads(a.v(memory))).transpose(1, 2).reshape(2, 40, 16))

    def forward(self, dtype):
        source = tokens(1001, (2, 40), 21)
        labels = tokens(1002, (2, 40), 21)
        target = torch.cat([torch.zeros(2, 1, dtype=torch.long), labels[:, :-1]], 1)
        distance = torch.arange(40)[None, :] - torch.arange(40)[:, None]

        def bias(stack, bidirectional):
            table = stack.block[0].layer[0].SelfAttention.relative_attention_bias
            return table(self.bucket(distance, bidirectional)).permute(2, 0, 1)[None]

        def widen(layer, x):
            return x + layer.DenseReluDense.wo(F.relu(layer.DenseReluDense.wi(layer.layer_norm(x))))

        x = self.shared(source)
        within = bias(self.encoder, True)
        for b in self.encoder.block:
            h = b.layer[0].layer_norm(x)
            x = widen(b.layer[1], x + self.attend(b.layer[0].SelfAttention, h, h, within))
        memory = self.encoder.final_layer_norm(x)
        x = self.shared(target)
        within = bias(self.decoder, False) + torch.full((40, 40), float("-inf"), dtype=dtype).triu(1)
        for b in self.decoder.block:
            h = b.layer[0].layer_norm(x)
            x = x + self.attend(b.layer[0].SelfAttention, h, h, within)
            x = x + self.attend(b.layer[1].EncDecAttention, b.layer[1].layer_norm(x), memory, None)
            x = widen(b.layer[2], x)
        logits = (self.decoder.final_layer_norm(x) * 16**-0.5) @ self.shared.weight.T
        return logits, F.cross_entropy(logits.view(-1, 21), labels.view(-1))


class Unet(nn.Module):
    flags = "--model=unet --batch=2 --image=16 --hidden=32"

    def __init__(self):
        super().__init__()
        width, wide = 32, 128

        def norm(n):
            return nn.GroupNorm(32, n, eps=1e-6)

        def block(i, o):
            b = nn.Module()
            b.norm1, b.norm2 = norm(i), norm(o)
            b.conv1, b.conv2 = nn.Conv2d(i, o, 3, padding=1), nn.Conv2d(o, o, 3, padding=1)
            b.temb_proj = nn.Linear(wide, o)
            if i != o:
                b.nin_shortcut = nn.Conv2d(i, o, 1)
            return b

        def attention(n):
            a = nn.Module()
            a.norm = norm(n)
            a.q, a.k, a.v, a.proj_out = (nn.Conv2d(n, n, 1) for _ in range(4))
            return a

        self.temb = nn.Module()
        self.temb.dense = nn.ModuleList([nn.Linear(width, wide), nn.Linear(wide, wide)])
        self.conv_in = nn.Conv2d(3, width, 3, padding=1)
        widths, skipped, i = [width * m for m in (1, 2, 2, 2)], [width], width
        self.down, self.pushed = nn.ModuleList(), []
        for level, o in enumerate(widths):
            d = nn.Module()
            d.block, d.attn = nn.ModuleList(), nn.ModuleList()
            for _ in range(2):
                d.block.append(block(i, o))
                if level == 1:
                    d.attn.append(attention(o))
                i = o
                skipped.append(i)
            if level < 3:
                d.downsample = nn.Module()
                d.downsample.conv = nn.Conv2d(i, i, 3, stride=2, padding=1)
                skipped.append(i)
            self.down.append(d)
        self.mid = nn.Module()
        self.mid.block_1, self.mid.attn_1, self.mid.block_2 = block(i, i), attention(i), block(i, i)
        self.up = nn.ModuleDict()
        for level in reversed(range(4)):
            u = nn.Module()
            u.block, u.attn = nn.ModuleList(), nn.ModuleList()
            for _ in range(3):
                u.block.append(block(i + skipped.pop(), widths[level]))
                if level == 1:
                    u.attn.append(attention(widths[level]))
                i = widths[level]
            if level > 0:
                u.upsample = nn.Module()
                u.upsample.conv = nn.Conv2d(i, i, 3, padding=1)
            self.up[str(level)] = u
        self.norm_out, self.conv_out = norm(i), nn.Conv2d(i, 3, 3, padding=1)

    def order(self):
        """Parameters as ir-dump declares them: a block's attention follows the block."""
        found = dict(self.named_parameters())
        names = []

        def add(prefix):
            names.extend(n for n in found if n.startswith(prefix + "."))

        for prefix in ("temb", "conv_in"):
            add(prefix)
        for stem, count in (("down", 2), ("up", 3)):
            levels = range(4) if stem == "down" else reversed(range(4))
            for level in levels:
                for k in range(count):
                    add(f"{stem}.{level}.block.{k}")
                    add(f"{stem}.{level}.attn.{k}")
                add(f"{stem}.{level}.{stem}sample")
            if stem == "down":
                for part in ("block_1", "attn_1", "block_2"):
                    add(f"mid.{part}")
        for prefix in ("norm_out", "conv_out"):
            add(prefix)
        assert len(names) == len(found) == len(set(names))
        return [(n, found[n]) for n in names]

    @staticmethod
    def residual(b, x, t):
        h = b.conv1(F.silu(b.norm1(x)))
        h = h + b.temb_proj(F.silu(t))[:, :, None, None]
        h = b.conv2(F.silu(b.norm2(h)))
        return (b.nin_shortcut(x) if hasattr(b, "nin_shortcut") else x) + h

    @staticmethod
    def attend(a, x):
        n, c, height, width = x.shape
        h = a.norm(x)
        q, k, v = (f(h).reshape(n, c, height * width) for f in (a.q, a.k, a.v))
        weights = torch.einsum("ncq,nck->nqk", q, k).div(math.sqrt(c)).softmax(-1)
        return x + a.proj_out(torch.einsum("nqk,nck->ncq", weights, v).reshape(n, c, height, width))

    def forward(self, dtype):
        each = 3 * 16 * 16
        times = (words(1004, np.arange(2)) % np.uint64(1000)).astype(np.int64)
        kept = np.cumprod(1 - (1e-4 + (0.02 - 1e-4) * np.arange(1000) / 999))[times].repeat(each)
        noise = math.sqrt(3) * hashed(1003, 2 * each)
        image = (np.sqrt(kept) * hashed(1000, 2 * each) + np.sqrt(1 - kept) * noise).astype(np.float32)
        x = torch.from_numpy(image).view(2, 3, 16, 16).to(dtype)
        label = torch.from_numpy(noise.astype(np.float32)).view(2, 3, 16, 16).to(dtype)
        frequencies = torch.from_numpy((10000.0 ** (-np.arange(16) / 15)).astype(np.float32)).to(dtype)
        angles = torch.from_numpy(times).to(dtype)[:, None] * frequencies
        t = torch.cat([angles.sin(), angles.cos()], 1)
        t = self.temb.dense[1](F.silu(self.temb.dense[0](t)))

        def apply(level, k, y):
            y = self.residual(level.block[k], y, t)
            return self.attend(level.attn[k], y) if len(level.attn) else y

        skipped = [self.conv_in(x)]
        for d in self.down:
            for k in range(2):
                skipped.append(apply(d, k, skipped[-1]))
            if hasattr(d, "downsample"):
                skipped.append(d.downsample.conv(skipped[-1]))
        y = self.residual(self.mid.block_1, skipped[-1], t)
        y = self.residual(self.mid.block_2, self.attend(self.mid.attn_1, y), t)
        for level in reversed(range(4)):
            u = self.up[str(level)]
            for k in range(3):
                y = apply(u, k, torch.cat([y, skipped.pop()], 1))
            if hasattr(u, "upsample"):
                y = u.upsample.conv(F.interpolate(y, scale_factor=2.0, mode="nearest"))
        logits = self.conv_out(F.silu(self.norm_out(y)))
        return logits, F.mse_loss(logits, label)


def train(model, dtype, steps=3):
    """Returns the metrics in the order of ir-dump."""
    parameters = model.order()
    initialize(parameters)
    model.to(dtype)
    optimizer = torch.optim.SGD([p for _, p in parameters], lr=0.01, momentum=0.9)
    before = [p.detach().double().clone() for _, p in parameters]
    out = {}
    for step in range(steps):
        optimizer.zero_grad()
        logits, loss = model(dtype)
        loss.backward()
        if step == 0:
            for i, value in enumerate(logits.detach().reshape(-1)[:10]):
                out[f"logit {i}"] = float(value)
            out["logits_l2"] = float(logits.detach().double().norm())
            for k, (name, p) in enumerate(parameters):
                out[f"grad_l2 {k} {name}"] = float(p.grad.double().norm())
        out[f"loss_step {step}"] = float(loss)
        optimizer.step()
    after = [p.detach().double() for _, p in parameters]
    out["param_l2"] = math.sqrt(sum(float(a.norm()) ** 2 for a in after))
    out["delta_l2"] = math.sqrt(sum(float((a - b).norm()) ** 2 for a, b in zip(after, before)))
    return out


def main():
    models = {m.__name__.lower(): m for m in (Lstm, Dlrm, Mixtral, T5, Unet)}
    torch.set_num_threads(1)
    for name in sys.argv[1:] or models:
        narrow, wide = train(models[name](), torch.float32), train(models[name](), torch.float64)
        lines = [f"# {models[name].flags} --steps=3 --lr=0.01 --momentum=0.9 --gain={GAIN:g}"]
        for key, reference in wide.items():
            tolerance = max(4 * abs(narrow[key] - reference), 2e-5 * abs(reference), 1e-7)
            lines.append(f"{key} {narrow[key]:.9g} {reference:.9g} {tolerance:.3g}")
        (pathlib.Path(__file__).parent / f"{name}.expect").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
