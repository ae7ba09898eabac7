# SPDX-License-Identifier: Apache-2.0
"""Training loops on one device."""

import os
import tempfile

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.distributed.parallel_loader as pl
from torch_xla.utils.checkpoint import checkpoint

from torch_xla_cases.common import batches, data, digits, mlp, plain  # noqa: F401: the driver uses plain


def train(model, optimizer, steps, barrier):
    losses = []
    for x, y in steps:
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        barrier()
        losses.append(loss.item())
    return losses


def digits_with_mark_step():
    d = torch_xla.device()
    model = digits().to(d)
    steps = [(x.to(d), y.to(d)) for x, y in batches(5)]
    return [train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), steps, xm.mark_step),
            model.fc2.weight, model.norm.running_mean]


def digits_with_sync():
    d = torch_xla.device()
    model = digits(1).to(d)
    steps = [(x.to(d), y.to(d)) for x, y in batches(5)]
    return [train(model, torch.optim.AdamW(model.parameters(), 0.01), steps, torch_xla.sync), model.conv1.weight]


def data_loader():
    d = torch_xla.device()
    model = digits(2).to(d)
    dataset = torch.utils.data.TensorDataset(data(40, 1, 16, 16), torch.arange(40) % 10)
    loader = torch.utils.data.DataLoader(dataset, batch_size=8)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    losses = []
    for _ in range(2):
        for x, y in pl.MpDeviceLoader(loader, d):
            optimizer.zero_grad()
            loss = torch.nn.functional.nll_loss(model(x), y)
            loss.backward()
            xm.optimizer_step(optimizer)
            losses.append(loss.detach())
    return [torch.stack(losses), model.fc1.bias]


def optimizers():
    """Three steps of each; a program is compiled once for all later steps."""
    d = torch_xla.device()
    answers = {}
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "NAdam", "Rprop"):
        model = mlp().to(d)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            model(data(6, 8, seed=step).to(d)).square().mean().backward()
            optimizer.step()
            torch_xla.sync()
        answers[name] = model[0].weight
    return answers


def autocast():
    d = torch_xla.device()
    model = mlp().to(d)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        with torch.autocast("xla", dtype=torch.bfloat16):
            y = model(data(6, 8, seed=step).to(d))
            kind = str(y.dtype)
            loss = y.float().square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(round(loss.item(), 2))
    return [kind, losses]


def checkpoints():
    """Training goes on from a checkpoint as if it had not been interrupted."""
    d = torch_xla.device()

    def steps(model, optimizer, numbers):
        for step in numbers:
            optimizer.zero_grad()
            model(data(6, 8, seed=step).to(d)).square().mean().backward()
            optimizer.step()
            torch_xla.sync()

    model = mlp().to(d)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    steps(model, optimizer, range(3))
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "checkpoint.pt")
        xm.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
        steps(model, optimizer, range(3, 5))
        stored = torch.load(path)
        again = mlp(seed=5).to(d)
        other = torch.optim.Adam(again.parameters(), 0.01)
        again.load_state_dict(stored["model"])
        other.load_state_dict(stored["optimizer"])
        steps(again, other, range(3, 5))
    return [model[0].weight, torch.allclose(model[0].weight.cpu(), again[0].weight.cpu())]


def gradient_checkpoints():
    d = torch_xla.device()
    model = mlp().to(d)
    x = data(4, 8).to(d).requires_grad_()
    y = checkpoint(model[:3], x)
    model[3:](y).square().sum().backward()
    return [x.grad, model[0].weight.grad]


def accumulated_gradients():
    d = torch_xla.device()
    model = mlp().to(d)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(2):
        optimizer.zero_grad()
        for part in range(3):
            (model(data(4, 8, seed=3 * step + part).to(d)).square().mean() / 3).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        torch_xla.sync()
    return model[4].weight


def closures_and_metrics():
    d = torch_xla.device()
    met.clear_all()
    seen = []
    model = mlp().to(d)
    for step in range(3):
        loss = model(data(4, 8, seed=step).to(d)).sum()
        xm.add_step_closure(lambda value: seen.append(value.item()), args=(loss,))
        torch_xla.sync()
    xm.wait_device_ops()
    return [seen, met.metric_data("CompileTime")[0], met.metric_data("ExecuteTime")[0]]


PROGRAMS = [digits_with_mark_step, digits_with_sync, data_loader, optimizers, autocast, checkpoints, gradient_checkpoints,
            accumulated_gradients, closures_and_metrics]
