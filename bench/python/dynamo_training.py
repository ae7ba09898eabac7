# SPDX-License-Identifier: Apache-2.0
"""Training steps of ten models, recorded lazily and captured by torch.compile(backend="hlokit").

    PYTHONPATH=build/release/python VENV/bin/python bench/python/dynamo_training.py [--models=A,B] [--device=v4:2x2x1]

Needs torchvision. Nothing is computed: programs return values that are not set (options={"engine": "none"},
fake sessions), so that the host's times are those of PyTorch, Dynamo and hlokit, and device times are of the simulated
device. Columns, of a step of forward and backward, times in milliseconds:

  graphs   forward, backward and copies: programs that the step runs, and tensors that are written after it
  breaks   of Dynamo's graphs
  record   the host's processor time for the lazy step
  call     that for the compiled one; overhead: that of hlokit in it, in microseconds a program
  lazy     device time of the lazy step's graph
  dynamo   device time of the compiled step's programs
  speedup  lazy / dynamo, of steps on a host that prepares the next one while the device works: the larger of both times
"""

import argparse
import gc
import statistics
import sys
import time

import torch
import torchvision
from torch import nn

import hlokit
import hlokit.torch as ht

IMAGE = (3, 224, 224)


class Bert(nn.Module):
    """BERT's encoder and its head of masked words."""

    def __init__(self, size=768, layers=12, words=30522):
        super().__init__()
        self.words, self.places = nn.Embedding(words, size), nn.Embedding(512, size)
        self.norm = nn.LayerNorm(size)
        layer = nn.TransformerEncoderLayer(size, size // 64, 4 * size, 0.1, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(size, words)

    def forward(self, ids):
        return self.head(self.layers(self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1], device=ids.device)))))


def vision(name, **options):
    return getattr(torchvision.models, name)(weights=None, **options)


# By name: the model, and the shape and range of its input.
MODELS = {
    "resnet50": (lambda: vision("resnet50"), 32, IMAGE),
    "resnet18": (lambda: vision("resnet18"), 16, IMAGE),
    "BERT": (Bert, 16, (128,)),
    "resnext50_32x4d": (lambda: vision("resnext50_32x4d"), 8, IMAGE),
    "alexnet": (lambda: vision("alexnet"), 128, IMAGE),
    "mobilenet_v2": (lambda: vision("mobilenet_v2"), 96, IMAGE),
    "mnasnet1_0": (lambda: vision("mnasnet1_0"), 32, IMAGE),
    "vgg16": (lambda: vision("vgg16"), 64, IMAGE),
    "vision_transformer": (lambda: vision("vit_b_16"), 8, IMAGE),
    "squeezenet1_1": (lambda: vision("squeezenet1_1"), 32, IMAGE),
}


def data(batch, shape):
    return torch.zeros((batch, *shape), dtype=torch.int64) if len(shape) == 1 else torch.zeros(batch, *shape)


def timed(step, repetitions):
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        step()
        times.append(time.process_time() - start)
    return statistics.median(times) * 1e3


def step_of(call, model, x):
    def step():
        for p in model.parameters():
            p.grad = None
        call(x).float().mean().backward()

    return step


def lazy(name, repetitions, device):
    make, batch, shape = MODELS[name]
    with ht.trace(fake=True, debug=False) as trace:
        model = make().to(ht.device())
        x = data(batch, shape).to(ht.device())
        run = step_of(model, model, x)

        def step():
            run()
            ht.mark_step()

        step()
        record = timed(step, repetitions)
    return record, hlokit.simulate(trace.main_graph().module, device)["step_time_us"] / 1e3


def dynamo(name, repetitions, device):
    make, batch, shape = MODELS[name]
    torch._dynamo.reset()
    ht.compile_report(reset=True)
    model = make()
    step = step_of(torch.compile(model, backend=ht.compile_backend, options={"engine": "none"}), model, data(batch, shape))
    step()
    for program in ht.compile_report().programs:  # not the first call
        program.calls, program.seconds, program.run_seconds = 0, 0.0, 0.0
    call = timed(step, repetitions)
    report = ht.compile_report()
    ran = [p for p in report.programs if p.calls]
    overhead = statistics.mean(p.overhead_us for p in ran)
    kinds = [sum(p.kind.startswith(kind) for p in ran) for kind in ("forward", "backward")]
    return kinds + [sum(report.copies.values())], report.breaks, call, overhead, sum(report.simulate(device)) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--device", default="v4:2x2x1")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    print(f"torch {torch.__version__}, {options.device}")
    print(f"{'model':20}{'graphs':>12}{'breaks':>8}{'record':>9}{'call':>9}{'overhead':>10}{'lazy':>9}{'dynamo':>9}{'speedup':>9}")
    speedups = []
    for name in options.models.split(","):
        record, lazy_ms = lazy(name, options.repetitions, options.device)
        kinds, breaks, call, overhead, dynamo_ms = dynamo(name, options.repetitions, options.device)
        speedups.append(max(record, lazy_ms) / max(call, dynamo_ms))
        graphs = "+".join(map(str, kinds))
        times = f"{record:9.1f}{call:9.1f}{overhead:10.0f}{lazy_ms:9.2f}{dynamo_ms:9.2f}{speedups[-1]:9.2f}"
        print(f"{name:20}{graphs:>12}{len(breaks):8}{times}", flush=True)
        for row in breaks:
            print(f"  break at {row.line}: {row.reason}")
        gc.collect()
    print(f"average speedup {statistics.mean(speedups):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
