#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a model data-parallel on devices of the lazy tracer, each with its own examples, as with torch_xla.

  train_data_parallel.py [DEVICES]

At the end it counts the graphs of all devices, and those that are different. Needs PyTorch.
"""

import sys

import torch

import hlokit.torch as ht
import hlokit.torch.xla_model as xm


def train(index: int) -> None:
    device = xm.xla_device()
    torch.manual_seed(0)
    # The parameters of all devices are those of device 0.
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to(device)
    xm.broadcast_master_param(model)
    torch.manual_seed(100 + index)
    x = torch.rand(8, 6)
    x, y = x.to(device), x.sum(1, keepdim=True).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(20):
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        xm.optimizer_step(optimizer)
        xm.mark_step()
        if step % 10 == 9:
            mean = xm.mesh_reduce("loss", loss.item(), lambda losses: sum(losses) / len(losses))
            xm.master_print(f"step {step + 1}: loss {mean:.4f}")


def main(devices: int) -> None:
    ht.configure(devices=devices)
    with ht.trace() as t:
        ht.spawn(train, nprocs=devices)
    print(t.graph_report().splitlines()[-1])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4)
