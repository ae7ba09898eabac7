# SPDX-License-Identifier: Apache-2.0
"""Programs for which torch_xla asks the compiler for shardings, in one process with four devices."""

import torch
import torch_xla
import torch_xla.debug.metrics as met
import torch_xla.runtime as xr

from torch_xla_cases.common import data, mlp, plain  # noqa: F401: the driver uses plain

xr.use_spmd(auto=True)


def sharding(tensor):
    return torch_xla._XLAC._get_xla_sharding_spec(tensor)


def counts():
    return [met.counter_value(name) for name in ("CompileWithAutoSharding", "ReshardParameters")]


def products_of_found_shardings():
    met.clear_counters()
    a, b = data(16, 12).to("xla"), data(12, 8, seed=1).to("xla")
    c = a @ b
    torch_xla.sync()
    total = (c * 2 + 1).sum(0)
    torch_xla.sync()
    return [c, total, sharding(c), sharding(total), counts()]


def training_of_found_shardings():
    met.clear_counters()
    model = mlp(seed=2).to("xla")
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        loss = model(data(8, 8, seed=step).to("xla")).square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.item())
    return [losses, [sharding(p) for p in model.parameters()], model[0].weight, counts()]


PROGRAMS = [products_of_found_shardings, training_of_found_shardings]
