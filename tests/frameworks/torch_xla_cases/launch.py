# SPDX-License-Identifier: Apache-2.0
"""Programs on four devices, one thread each: torch_xla.launch starts a process for them.

What is expected is computed by PyTorch on the host, device after device: devices of XLA's CPU deadlock in programs with
several collectives, on a machine with few cores.
"""

import os
import pickle
import tempfile
import threading

import torch
import torch.distributed as dist
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.xla_backend  # noqa: F401: registers the backend
import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr

from torch_xla_cases.common import data, mlp, plain

if os.environ["PJRT_DEVICE"] == "HLOKIT" and not torch_xla._XLAC._xla_runtime_is_initialized():
    # The started process imports this module, and not the program that registered the plugin.
    import hlokit.torch_xla

    hlokit.torch_xla.register()

# torch has one random generator and one process group in a process.
HOST_LOCK = threading.Lock()


def answers_of(fn, start=torch_xla.launch):
    """Runs `fn` on each device, and returns the answers in the order of the devices."""
    with tempfile.TemporaryDirectory() as directory:
        start(stored, args=(fn, directory))
        answers = []
        for rank in range(len(os.listdir(directory))):
            with open(os.path.join(directory, str(rank)), "rb") as file:
                answers.append(pickle.load(file))
    return answers


def stored(index, fn, directory):
    answer = plain(fn(index))
    with open(os.path.join(directory, str(index)), "wb") as file:
        pickle.dump(answer, file)


def reduced(index):
    x = torch.tensor([index + 1.0, index + 1.0]).to(torch_xla.device())
    xm.all_reduce("sum", [x])
    torch_xla.sync()
    return [x.cpu(), xr.world_size(), xr.global_ordinal(), str(xm.xla_real_devices([torch_xla.device()])[0])[-1]]


def all_reduces():
    return answers_of(reduced)


def all_reduces_of_spawn():
    return answers_of(reduced, start=xmp.spawn)


def broadcast(x):
    xm.collective_broadcast([x], 1)
    return x


def collectives_of(index):
    d = torch_xla.device()
    x = (torch.arange(8.0) + 10 * index).to(d)
    n = xr.world_size()
    answers = []
    for collective in (
            lambda: xm.all_gather(x, pin_layout=False), lambda: xm.reduce_scatter("sum", x, 1.0, 0, n), lambda: xm.all_to_all(x, 0, 0, n),
            lambda: xm.all_reduce("max", x), lambda: xm.all_reduce("sum", x, groups=[[0, 2], [1, 3]]),
            lambda: xm.collective_permute(x, [(i, (i + 1) % n) for i in range(n)]),
            lambda: xm.all_reduce("sum", x * 0 + 1, scale=0.25), lambda: broadcast(x + 0)):
        answers.append(collective())
        torch_xla.sync()
        answers[-1] = plain(answers[-1])
    return answers


def collectives():
    return answers_of(collectives_of)


def gathered_of(index):
    """Programs into which torch_xla writes the number of the device, so that they differ."""
    d = torch_xla.device()
    x = (torch.arange(6.0).reshape(2, 3) + 10 * index).to(d)
    answers = [xm.all_gather(x), xm.all_gather(x, dim=1), xm.all_gather(x, groups=[[0, 2], [1, 3]])]
    torch_xla.sync()
    answers = plain(answers)
    answers.append([len(p) for p in xm.rendezvous("sizes", b"x" * (3 * index + 1))])
    answers.append(xm.mesh_reduce("mean", {"loss": float(index)}, lambda all: sum(one["loss"] for one in all) / len(all)))
    return answers


def gathered():
    return answers_of(gathered_of)


def different_of(index):
    """Devices whose programs compute different things between the same collectives."""
    d = torch_xla.device()
    x = torch.full((4,), float(index + 1)).to(d)
    if index == 0:
        x = x * x + 5
    elif index == 3:
        x = torch.sort(torch.tensor([4.0, 1.0, 3.0, 2.0]).to(d))[0]
    total = xm.all_reduce("sum", x)
    seen = [total]
    if xm.is_master_ordinal():
        seen.append(total.sum() / 2)
    last = xm.all_reduce("max", total * (index + 1))
    torch_xla.sync()
    return plain([*seen, last])


def different():
    return answers_of(different_of)


def trained(index):
    d = torch_xla.device()
    with HOST_LOCK:
        model = mlp(seed=index)
    model = model.to(d)
    xm.broadcast_master_param(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        loss = model(data(4, 8, seed=10 * step + index).to(d)).square().mean()
        loss.backward()
        xm.optimizer_step(optimizer, barrier=True)
        losses.append(loss.item())
    return [losses, model[0].weight]


def training():
    return answers_of(trained)


def join_process_group():
    """Initializes the process group: a thread that does so after another one gets an error of torch."""
    with HOST_LOCK:
        if not dist.is_initialized():
            dist.init_process_group("xla", init_method="xla://")


def trained_by_ddp(index):
    join_process_group()
    d = torch_xla.device()
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    with torch.no_grad():
        model.weight.copy_(data(4, 8, seed=1))
        model.bias.copy_(data(4, seed=2))
    # Not gradient_as_bucket_view=True, with which torch_xla 2.9 writes programs that leave some gradients as they were.
    model = torch.nn.parallel.DistributedDataParallel(model.to(d))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        loss = model(data(4, 8, seed=10 * step + index).to(d)).square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.item())
    return [losses, model.module.weight]


def distributed_data_parallel():
    return answers_of(trained_by_ddp)


def loaded(index):
    d = torch_xla.device()
    dataset = torch.utils.data.TensorDataset(torch.arange(16.0))
    sampler = torch.utils.data.distributed.DistributedSampler(dataset, xr.world_size(), index, shuffle=False)
    loader = pl.MpDeviceLoader(torch.utils.data.DataLoader(dataset, batch_size=2, sampler=sampler), d)
    total = torch.zeros((), device=d)
    for (x,) in loader:
        total = total + x.sum()
    return [total, xm.all_reduce("sum", total)]


def loaders():
    return answers_of(loaded)


# ---- the same by PyTorch on the host ----

DEVICES = 4


def expected_of_reduced():
    return [[torch.full((2,), 10.0), DEVICES, i, str(i)] for i in range(DEVICES)]


def expected_of_collectives():
    xs = [torch.arange(8.0) + 10 * i for i in range(DEVICES)]
    total = torch.stack(xs).sum(0)
    return [[torch.cat(xs), total[2 * i:2 * i + 2], torch.cat([x[2 * i:2 * i + 2] for x in xs]), xs[-1],
             xs[i % 2] + xs[i % 2 + 2], xs[i - 1], torch.ones(8), xs[1]] for i in range(DEVICES)]


def trained_on_the_host(model, optimizer):
    """Returns what each device returns that trains `model` with the mean of all gradients."""
    losses = [[] for _ in range(DEVICES)]
    for step in range(3):
        optimizer.zero_grad()
        for i in range(DEVICES):
            loss = model(data(4, 8, seed=10 * step + i)).square().mean()
            (loss / DEVICES).backward()
            losses[i].append(loss.item())
        optimizer.step()
    return losses


def expected_of_gathered():
    xs = [torch.arange(6.0).reshape(2, 3) + 10 * i for i in range(DEVICES)]
    return [[torch.cat(xs), torch.cat(xs, 1), torch.cat([xs[i % 2], xs[i % 2 + 2]]), [3 * k + 1 for k in range(DEVICES)],
             (DEVICES - 1) / 2] for i in range(DEVICES)]


def expected_of_different():
    total = torch.full((4,), 6.0 + 2 + 3) + torch.arange(1.0, 5.0)
    return [[total, *([total.sum() / 2] if i == 0 else []), total * DEVICES] for i in range(DEVICES)]


def expected_of_training():
    model = mlp(seed=0)
    losses = trained_on_the_host(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))
    return [[losses[i], model[0].weight] for i in range(DEVICES)]


def expected_of_ddp():
    model = torch.nn.Linear(8, 4)
    with torch.no_grad():
        model.weight.copy_(data(4, 8, seed=1))
        model.bias.copy_(data(4, seed=2))
    losses = trained_on_the_host(model, torch.optim.SGD(model.parameters(), 0.1))
    return [[losses[i], model.weight] for i in range(DEVICES)]


def expected_of_loaders():
    totals = [torch.arange(16.0)[i::DEVICES].sum() for i in range(DEVICES)]
    return [[totals[i], torch.tensor(120.0)] for i in range(DEVICES)]


EXPECTED = {
    "all_reduces": expected_of_reduced,
    "all_reduces_of_spawn": expected_of_reduced,
    "collectives": expected_of_collectives,
    "gathered": expected_of_gathered,
    "different": expected_of_different,
    "training": expected_of_training,
    "distributed_data_parallel": expected_of_ddp,
    "loaders": expected_of_loaders,
}
PROGRAMS = [all_reduces, all_reduces_of_spawn, collectives, gathered, different, training, distributed_data_parallel, loaders]
