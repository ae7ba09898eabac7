# SPDX-License-Identifier: Apache-2.0
"""Programs with shardings over eight devices, in one process."""

import numpy as np
import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.spmd as xs
import torch_xla.runtime as xr

from torch_xla_cases.common import data, mlp, plain  # noqa: F401: the driver uses plain

xr.use_spmd()


def mesh(*shape, names):
    count = xr.global_runtime_device_count()
    return xs.Mesh(np.arange(count), shape, names)


def results_are_whole():
    d = torch_xla.device()
    w = torch.arange(64.0).reshape(8, 8).to(d)
    xs.mark_sharding(w, mesh(8, 1, names=("x", "y")), ("x", None))
    torch_xla.sync()
    w = w * 2
    torch_xla.sync()
    w = w + 1
    torch_xla.sync()
    return [w.cpu(), torch_xla._XLAC._get_xla_sharding_spec(w).startswith("{devices=[8,1]")]


def shardings_are_written_alike():
    """A step leaves the text of a sharding as it was."""
    d = torch_xla.device()
    model = mlp().to(d)
    xs.mark_sharding(model[0].weight, mesh(1, 8, names=("x", "y")), ("x", "y"))
    before = torch_xla._XLAC._get_xla_sharding_spec(model[0].weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    after = []
    for step in range(2):
        optimizer.zero_grad()
        model(data(4, 8, seed=step).to(d)).sum().backward()
        optimizer.step()
        torch_xla.sync()
        after.append(torch_xla._XLAC._get_xla_sharding_spec(model[0].weight))
    return [before, after]


def shardings_in_two_dimensions():
    d = torch_xla.device()
    m = mesh(4, 2, names=("x", "y"))
    a, b = data(16, 12).to(d), data(12, 8, seed=1).to(d)
    xs.mark_sharding(a, m, ("x", "y"))
    xs.mark_sharding(b, m, ("y", None))
    c = a @ b
    torch_xla.sync()
    return [c.cpu(), (c.t() @ a).cpu(), c.softmax(1).cpu(), c.sum().item(), a.cpu(), torch.sort(c, 0)[0].cpu()]


def shards():
    d = torch_xla.device()
    x = torch.arange(32.0).reshape(8, 4).to(d)
    x = xs.mark_sharding(x, mesh(8, 1, names=("x", "y")), ("x", None))
    torch_xla.sync()
    return [[shard.data for shard in x.local_shards], [s.replica_id for s in x.local_shards], x.sharding_spec]


def replicated_in_part():
    d = torch_xla.device()
    x = data(8, 6).to(d)
    xs.mark_sharding(x, mesh(2, 4, names=("x", "y")), ("x", None))
    y = x.sum(0) + x[0]
    torch_xla.sync()
    z = (y * x).cpu()
    return [y.cpu(), z]


def training_loop():
    """Parameters and batches are sharded; results of a step are arguments of the next."""
    d = torch_xla.device()
    m = mesh(8, 1, names=("data", "model"))
    model = mlp().to(d)
    for parameter in (model[0].weight, model[2].weight):
        xs.mark_sharding(parameter, m, ("data", None))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for step in range(5):
        x = data(16, 8, seed=step).to(d)
        xs.mark_sharding(x, m, ("data", None))
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.item())
    return [losses, model[0].weight, model[2].weight, model[4].bias]


def adam_on_two_axes():
    d = torch_xla.device()
    m = mesh(4, 2, names=("data", "model"))
    model = mlp(seed=2).to(d)
    xs.mark_sharding(model[0].weight, m, ("model", None))
    xs.mark_sharding(model[2].weight, m, (None, "model"))
    optimizer = torch.optim.AdamW(model.parameters(), 0.01)
    for step in range(4):
        x = data(8, 8, seed=step).to(d)
        xs.mark_sharding(x, m, ("data", None))
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x), torch.ones(8, 4, device=d))
        loss.backward()
        optimizer.step()
        torch_xla.sync()
    return [loss.item(), [p.cpu() for p in model.parameters()]]


def compiled_step():
    d = torch_xla.device()
    m = mesh(8, 1, names=("data", "model"))
    model = mlp(seed=4).to(d)
    xs.mark_sharding(model[0].weight, m, ("data", None))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @torch_xla.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for i in range(3):
        x = data(16, 8, seed=i).to(d)
        xs.mark_sharding(x, m, ("data", None))
        losses.append(step(x).item())
    return [losses, model[0].weight]


def resharded():
    d = torch_xla.device()
    m = mesh(8, 1, names=("x", "y"))
    a = data(8, 16).to(d)
    xs.mark_sharding(a, m, ("x", None))
    torch_xla.sync()
    b = a + 0
    xs.mark_sharding(b, m, (None, "x"))
    torch_xla.sync()
    c = (b * 2).cpu()
    xs.clear_sharding(a)
    return [c, a.cpu(), xs.mark_sharding(data(8, seed=3).to(d), m, (None,)).global_tensor.cpu()]


def manual_shards():
    d = torch_xla.device()
    m = mesh(8, 1, names=("x", "y"))
    x = data(8, 4).to(d)
    local = xs.enable_manual_sharding(x, ("x", None), mesh=m).global_tensor
    y = xs.disable_manual_sharding(local * 2 + 1, ("x", None), x.shape, mesh=m).global_tensor
    torch_xla.sync()
    return [list(local.shape), y.cpu()]


def distributed_checkpoint():
    import tempfile

    import torch.distributed.checkpoint as dist_cp
    from torch_xla.experimental.distributed_checkpoint import SPMDLoadPlanner, SPMDSavePlanner

    d = torch_xla.device()
    m = mesh(8, 1, names=("x", "y"))
    model = mlp(seed=6).to(d)
    xs.mark_sharding(model[0].weight, m, ("x", None))
    torch_xla.sync()
    with tempfile.TemporaryDirectory() as directory:
        dist_cp.save({"model": model.state_dict()}, storage_writer=dist_cp.FileSystemWriter(directory),
                     planner=SPMDSavePlanner(), no_dist=True)
        other = mlp(seed=7).to(d)
        xs.mark_sharding(other[0].weight, m, (None, "x"))
        torch_xla.sync()
        state = {"model": other.state_dict()}
        dist_cp.load(state, storage_reader=dist_cp.FileSystemReader(directory), planner=SPMDLoadPlanner(), no_dist=True)
        other.load_state_dict(state["model"])
    return [p.cpu() for p in other.parameters()]


PROGRAMS = [results_are_whole, shardings_are_written_alike, shardings_in_two_dimensions, shards, replicated_in_part,
            training_loop, adam_on_two_axes, compiled_step, resharded, manual_shards, distributed_checkpoint]
