# SPDX-License-Identifier: Apache-2.0
"""Trains models on the CPU and through hlokit.torch: losses agree, no op leaves the graph, one program from step 2 on.

    PYTHONPATH=build/release/python /usr/bin/python3 tests/python/torch_models.py [NAME...]

Models of torchvision where it is installed, and transformers in plain PyTorch. Images and batches are small. Training
of deep networks with batch norms is chaotic then: PyTorch's own losses in f32 and f64 differ by percents after a few
steps. Their learning rates (RATES) are so small that PyTorch's own differences are below the tolerance; the losses of
the first steps fall by percents nevertheless.
"""

import copy
import json
import sys
from typing import Any, Callable, Dict, NamedTuple, Tuple

import torch
from torch import nn

TOLERANCE = 1e-4  # relative difference of losses
STEPS = 5
RATES = {"resnet18": 1e-4, "mobilenet_v2": 1e-6, "mnasnet0_5": 1e-7, "resnext50_32x4d": 1e-8}  # 1e-3 for others


class Transformer(nn.Module):
    """BERT-style, or GPT-style with causal attention and normalization first."""

    def __init__(self, causal: bool, vocabulary: int = 97, width: int = 32, heads: int = 4, layers: int = 2, length: int = 16):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True, norm_first=causal)
            for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.causal = causal

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        x = self.token(ids) + self.position(torch.arange(length, device=ids.device))
        mask = torch.full((length, length), float("-inf"), device=ids.device).triu(1) if self.causal else None
        for block in self.blocks:
            x = block(x, src_mask=mask)
        return self.head(self.norm(x))


class RmsNorm(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int, kv_heads: int):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v = nn.Linear(width, kv_heads * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 3 * width, bias=False)
        self.up = nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)

    @staticmethod
    def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        y = self.norm1(x)
        q = self.q(y).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(y).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(y).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        k = k.repeat_interleave(self.heads // self.kv_heads, 1)
        v = v.repeat_interleave(self.heads // self.kv_heads, 1)
        scores = (q @ k.transpose(-1, -2)) / self.size**0.5
        weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
        x = x + self.o((weights @ v).transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, vocabulary: int = 97, width: int = 32, heads: int = 4, kv_heads: int = 2, layers: int = 2):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, kv_heads) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.size = width // heads

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        length = ids.shape[1]
        x = self.token(ids)
        rates = 1 / (10000 ** (torch.arange(0, self.size, 2, device=ids.device).float() / self.size))
        angles = torch.outer(torch.arange(length, device=ids.device).float(), rates)
        angles = torch.cat((angles, angles), -1)
        mask = torch.ones(length, length, dtype=torch.bool, device=ids.device).triu(1)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin(), mask)
        return self.head(self.norm(x))


Case = Callable[[], Tuple[nn.Module, torch.Tensor, torch.Tensor]]


def language(make: Callable[[], nn.Module]) -> Case:
    return lambda: (make(), torch.randint(0, 97, (2, 16)), torch.randint(0, 97, (2, 16)))


def images(make: Callable[[], nn.Module], size: int, batch: int = 2) -> Case:
    return lambda: (make(), torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)))


def cases() -> Dict[str, Case]:
    result: Dict[str, Case] = {
        "bert": language(lambda: Transformer(causal=False)),
        "gpt": language(lambda: Transformer(causal=True)),
        "llama": language(Llama),
    }
    try:
        from torchvision import models
    except ImportError:
        return result
    result.update(
        {
            "squeezenet1_1": images(lambda: models.squeezenet1_1(num_classes=10, dropout=0.0), 64),
            "vit": images(lambda: models.VisionTransformer(32, 8, 2, 4, 64, 128, num_classes=10), 32),
            "resnet18": images(lambda: models.resnet18(num_classes=10), 64, 8),
            "mobilenet_v2": images(lambda: models.mobilenet_v2(num_classes=10, dropout=0.0), 64, 8),
            "mnasnet0_5": images(lambda: models.mnasnet0_5(num_classes=10, dropout=0.0), 64, 8),
            "alexnet": images(lambda: models.alexnet(num_classes=10, dropout=0.0), 64),
            "vgg11": images(lambda: models.vgg11(num_classes=10, dropout=0.0), 32),
            "resnext50_32x4d": images(lambda: models.resnext50_32x4d(num_classes=10), 64, 8),
        }
    )
    return result


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor, rate: float, end_of_step: Callable[[], Any]) -> Tuple[float, ...]:
    parameters = list(model.parameters())
    optimizer: torch.optim.Optimizer = (
        torch.optim.SGD(parameters, rate, momentum=0.9) if x.is_floating_point() else torch.optim.Adam(parameters, rate)
    )
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1))
        loss.backward()
        optimizer.step()
        end_of_step()
        losses.append(loss.detach())
    return tuple(float(loss) for loss in losses)


class Result(NamedTuple):
    error: float  # the largest relative difference of a loss
    recorded: int  # calls of ops
    on_cpu: int
    graphs: int  # that were compiled, of the steps
    late: int  # compiled in the third step or later

    def problem(self) -> str:
        if not self.error <= TOLERANCE:
            return f"losses differ by {self.error:.1e}"
        if self.on_cpu > 0.05 * (self.recorded + self.on_cpu):
            return f"{self.on_cpu} of {self.recorded + self.on_cpu} ops ran on the CPU"
        return f"{self.late} programs were compiled after the second step" if self.late else ""


def run(name: str) -> Result:
    import hlokit.torch as ht

    torch.manual_seed(0)
    model, x, y = cases()[name]()
    reference = copy.deepcopy(model)
    rate = RATES.get(name, 1e-3)
    expected = train(reference, x, y, rate, lambda: None)
    ht.metrics.clear_all()
    model.to(ht.device())
    with ht.trace() as t:
        found = train(model, x.to(ht.device()), y.to(ht.device()), rate, ht.mark_step)
    counters = json.loads(ht._session.current().metrics_json())["counters"]
    recorded = sum(n for name, n in counters.items() if name.startswith("xla::"))
    on_cpu = sum(n for name, n in counters.items() if name.startswith("aten::") and name != "aten::_local_scalar_dense")
    steps = [g for g in t.graphs if g.reason == "step"]
    error = max(abs(a - b) / abs(b) for a, b in zip(found, expected))
    first = steps[0].step
    late = sum(g.compiled for g in steps if g.step - first >= 2)
    return Result(error, recorded, on_cpu, sum(g.compiled for g in steps), late)


def main() -> int:
    failed = False
    for name in sys.argv[1:] or cases():
        result = run(name)
        problem = result.problem()
        failed = failed or bool(problem)
        print(f"{name}: losses within {result.error:.1e}, {result.recorded} ops recorded, {result.on_cpu} on the CPU, "
              f"{result.graphs} programs{': FAILED: ' + problem if problem else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
