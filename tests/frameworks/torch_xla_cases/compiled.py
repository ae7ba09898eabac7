# SPDX-License-Identifier: Apache-2.0
"""Programs that are captured: torch_xla.compile, dynamo, scan, export, eager mode."""

import torch
import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.experimental
from torch_xla.experimental.scan import scan
from torch_xla.experimental.scan_layers import scan_layers

from torch_xla_cases.common import data, mlp, plain  # noqa: F401: the driver uses plain


def compiled_step():
    d = torch_xla.device()
    model = mlp().to(d)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    @torch_xla.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return [[step(data(6, 8, seed=i).to(d)).item() for i in range(4)], model[0].weight]


def steps_in_a_context():
    d = torch_xla.device()
    x = data(5).to(d)
    for _ in range(3):
        with torch_xla.step():
            x = x * 2 + 1
    return x


def dynamo_inference():
    d = torch_xla.device()
    model = mlp().to(d).eval()
    compiled = torch.compile(model, backend="openxla")
    with torch.no_grad():
        return [compiled(data(6, 8, seed=i).to(d)) for i in range(3)]


def dynamo_training():
    d = torch_xla.device()
    model = mlp().to(d)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    compiled = torch.compile(model, backend="openxla")
    losses = []
    for i in range(3):
        optimizer.zero_grad()
        loss = compiled(data(6, 8, seed=i).to(d)).square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.item())
    return [losses, model[0].weight]


def scanned():
    d = torch_xla.device()
    init, xs = data(4).to(d).requires_grad_(), data(6, 4, seed=1).to(d).requires_grad_()

    def body(carry, x):
        carry = torch.tanh(carry + x)
        return carry, carry * 2

    last, ys = scan(body, init, xs)
    (last.sum() + ys.sum()).backward()
    return [last, ys, init.grad, xs.grad]


def scanned_layers():
    d = torch_xla.device()
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh()) for _ in range(4)).to(d)
    x = data(3, 8).to(d).requires_grad_()
    y = scan_layers(layers, x)
    y.sum().backward()
    return [y, x.grad, layers[2][0].weight.grad]


def loops():
    from torch_xla.experimental.fori_loop import fori_loop

    d = torch_xla.device()

    def body(x):
        return torch.add(torch.ones(1, dtype=torch.int32, device=d), x[0])

    lower, upper = torch.tensor(0, dtype=torch.int32, device=d), torch.tensor(5, dtype=torch.int32, device=d)
    return fori_loop(lower, upper, body, torch.tensor([2], dtype=torch.int32, device=d))[1]


def exported_to_stablehlo():
    from torch_xla.stablehlo import exported_program_to_stablehlo

    model = mlp().eval()
    x = data(5, 8)
    exported = exported_program_to_stablehlo(torch.export.export(model, (x,)))
    return [exported(x), "stablehlo.dot_general" in exported.get_stablehlo_text() or "stablehlo.dot" in exported.
            get_stablehlo_text()]


def texts_of_programs():
    d = torch_xla.device()
    y = (data(3, 3).to(d) @ data(3, 3, seed=1).to(d)).relu()
    text = torch_xla._XLAC._get_xla_tensors_hlo([y])
    return ["dot(" in text, "ENTRY" in text, "stablehlo.dot" in xm.get_stablehlo([y]), y]


def eager():
    d = torch_xla.device()
    torch_xla.experimental.eager_mode(True)
    try:
        x = data(4, 4).to(d)
        y = torch.relu(x @ x.t()) + 1
        return [y, y.sum().item()]
    finally:
        torch_xla.experimental.eager_mode(False)


def compilations_of_later_steps():
    """Programs are found again: only the first two steps compile."""
    d = torch_xla.device()
    met.clear_all()
    model = mlp().to(d)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    counts = []
    for i in range(5):
        optimizer.zero_grad()
        model(data(6, 8, seed=i).to(d)).square().mean().backward()
        optimizer.step()
        torch_xla.sync()
        counts.append((met.metric_data("CompileTime") or [0])[0])
    return counts


PROGRAMS = [compiled_step, steps_in_a_context, dynamo_inference, dynamo_training, scanned, scanned_layers,
            loops, exported_to_stablehlo, texts_of_programs, eager, compilations_of_later_steps]
