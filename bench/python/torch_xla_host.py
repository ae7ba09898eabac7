#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the host takes to record a step with PyTorch/XLA: torch_xla_host.py [--steps=N] [--counts=FILE]

With Python of the environment torch-xla it prints, for each model, the CPU time of recording a training step (forward, backward,
update) and of the step marker, medians of N steps without executions in flight; with that of the environment torch, on
hlokit.torch, the ops and nodes of the same step. Their quotients are comparable to the unit costs of PyTorch/XLA's host
(simulator/export/host_costs.cc), which are those of a TPU's.
"""
import argparse
import json
import statistics
import time

import torch


class Block(torch.nn.Module):
    """A residual block of ResNet-50."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        layers = []
        for a, b, k, s in ((inputs, width, 1, 1), (width, width, 3, stride), (width, 4 * width, 1, 1)):
            layers += [torch.nn.Conv2d(a, b, k, s, k // 2, bias=False), torch.nn.BatchNorm2d(b), torch.nn.ReLU()]
        self.body = torch.nn.Sequential(*layers[:-1])
        short = stride != 1 or inputs != 4 * width
        self.short = (torch.nn.Sequential(torch.nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), torch.nn.BatchNorm2d(4 * width))
                      if short else torch.nn.Identity())

    def forward(self, x):
        return torch.relu(self.body(x) + self.short(x))


def resnet50():
    blocks, inputs = [], 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for i in range(count):
            blocks.append(Block(inputs, width, stride if i == 0 else 1))
            inputs = 4 * width
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(64), torch.nn.ReLU(),
                                torch.nn.MaxPool2d(3, 2, 1), *blocks, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                torch.nn.Linear(2048, 10))
    return model, torch.randn(1, 3, 32, 32).repeat(2, 1, 1, 1), "sgd"


def transformer():
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 12), torch.randn(2, 8, 64), "adamw"


def mlp():
    return torch.nn.Sequential(*[m for _ in range(24) for m in (torch.nn.Linear(32, 32), torch.nn.ReLU())]), torch.randn(4, 32), "sgd"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15)
    flags = parser.parse_args()
    try:
        import torch_xla
        import torch_xla.core.xla_model as xm

        hlokit_torch = None
        device, sync, wait = torch_xla.device(), torch_xla.sync, xm.wait_device_ops
    except ImportError:
        import hlokit.torch as hlokit_torch

        device, sync, wait = hlokit_torch.device(), hlokit_torch.mark_step, lambda: None
    for make in (resnet50, transformer, mlp):
        torch.manual_seed(0)
        model, batch, kind = make()
        model, batch = model.to(device), batch.to(device)
        optimizer = (torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9) if kind == "sgd" else
                     torch.optim.AdamW(model.parameters(), lr=1e-3))
        record, marker, counts = [], [], None
        for step in range(flags.steps):
            before = None if hlokit_torch is None else hlokit_torch.metrics._data()
            start = time.process_time()
            optimizer.zero_grad(set_to_none=True)
            model(batch).pow(2).mean().backward()
            optimizer.step()
            recorded = time.process_time()
            begun = time.thread_time()
            sync()
            marker.append(time.thread_time() - begun)
            record.append(recorded - start)
            wait()
            if hlokit_torch is not None and step == flags.steps - 1:
                after = hlokit_torch.metrics._data()
                ops = {k: v - before["counters"].get(k, 0) for k, v in after["counters"].items() if k.startswith("xla::")}
                nodes = (after["metrics"]["TensorsGraphSize"]["accumulator"] - before["metrics"]["TensorsGraphSize"]["accumulator"])
                counts = {"ops": sum(ops.values()), "nodes": nodes}
        print(json.dumps({"model": make.__name__, "record_ms": statistics.median(record[3:]) * 1e3,
                          "marker_ms": statistics.median(marker[3:]) * 1e3, **(counts or {})}), flush=True)


if __name__ == "__main__":
    main()
