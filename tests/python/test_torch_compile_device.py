# SPDX-License-Identifier: Apache-2.0
"""torch.compile of tensors on the device: graphs are parts of the lazy graph."""

import copy
import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not hasattr(torch, "compile"):
    pytest.skip("this PyTorch has no torch.compile", allow_module_level=True)

import captured_models  # noqa: E402

import hlokit.torch as ht  # noqa: E402

HERE = pathlib.Path(__file__).name


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    ht.compile_report(reset=True)
    torch.manual_seed(0)


@pytest.fixture(params=["xla", "tpu"])
def device(request):
    return request.param


def compiled(function, **options):
    return torch.compile(function, backend=ht.compile_backend, **options)


def close(a, b, tolerance=2e-6):
    torch.testing.assert_close(a.cpu(), b.cpu(), rtol=1e-5, atol=tolerance)


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


def loss_of(value):
    return sum(v.float().pow(2).mean() for v in leaves(value))


def moved(value, device):
    return torch.utils._pytree.tree_map(lambda v: v.to(device) if isinstance(v, torch.Tensor) else v, value)


@pytest.mark.parametrize("name", [name for name in captured_models.MODELS if name != "lstm"])
def test_models_train_as_on_the_cpu(name, device):
    model, data = captured_models.make(name)
    other = copy.deepcopy(model).to(device)
    step = compiled(other, fullgraph=True)
    optimizers = [torch.optim.SGD(m.parameters(), 0.01) for m in (model, other)]
    with ht.trace() as trace:
        for _ in range(3):
            losses = []
            for run, optimizer, given in zip((model, step), optimizers, (data, moved(data, device))):
                optimizer.zero_grad()
                losses.append(loss_of(run(given)))
                losses[-1].backward()
                optimizer.step()
            if device == "xla":
                ht.mark_step()
            losses = [loss.detach() for loss in losses]
    close(*losses, 1e-5)
    for a, b in zip(model.parameters(), other.parameters()):
        close(a, b, 1e-5)
    for a, b in zip(model.buffers(), other.buffers()):
        close(a, b, 1e-5)
    report = ht.compile_report()
    assert [(p.kind, p.calls) for p in report.programs] == [("forward", 3), ("backward", 3)]
    assert not report.breaks and not report.on_host
    # Forward, backward and the optimizer's step are one program.
    assert len([g for g in trace.graphs if g.reason == "step"]) == 3
    assert sum(g.compiled for g in trace.graphs if g.reason == "step") <= 2


def test_what_is_appended_is_what_is_recorded_op_by_op(device):
    model = captured_models.Mlp().to(device)
    x = torch.randn(5, 8).to(device)
    graphs = []
    for run in (model, compiled(model)):
        with ht.trace(), torch.no_grad():
            ht.mark_step()
            y = run(x)
            graphs.append(ht.pending(y))
    assert graphs[0].module.instruction_count == graphs[1].module.instruction_count


def test_the_default_backend(device):
    model = captured_models.Mlp()
    other = torch.compile(copy.deepcopy(model).to(device))
    x = torch.randn(3, 8)
    close(other(x.to(device)), model(x))
    for mode in ("reduce-overhead", "max-autotune"):
        torch._dynamo.reset()
        close(torch.compile(lambda x: x.sin() * 2, mode=mode)(x.to(device)), x.sin() * 2)
    made = torch.compile(lambda: torch.ones(3, device=device) * 2)()
    assert made.device.type == device and made.tolist() == [2, 2, 2]


def test_openxla_of_the_package_torch_xla():
    code = """
import torch, hlokit.torch as ht
ht.provide_torch_xla()
import torch_xla
import torch_xla.core.xla_model as xm
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.GELU())
other = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.GELU()).to(xm.xla_device())
other.load_state_dict(model.state_dict())
x = torch.randn(3, 8)
step = torch.compile(other, backend="openxla")
for _ in range(2):
    model(x).sum().backward()
    step(x.to("xla")).sum().backward()
    torch_xla.sync()
torch.testing.assert_close(model[0].weight.grad, other[0].weight.grad.cpu())
programs = ht.compile_report().programs
assert [(p.kind, p.calls) for p in programs] == [("forward", 2), ("backward", 2)], programs
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_nodes_have_the_lines_of_the_program(device):
    def function(x):
        y = x.sin()
        return y @ y

    with ht.trace(debug=True):
        y = compiled(function)(torch.randn(3, 3).to(device))
        module = ht.pending(y).module
    line = function.__code__.co_firstlineno
    found = {i.opcode: (i.metadata.source_file, i.metadata.source_line) for i in module.entry.instructions if i.metadata}
    assert found["sine"] == (__file__, line + 1) and found["dot"] == (__file__, line + 2)


def test_random_numbers(device):
    step = compiled(lambda x: torch.nn.functional.dropout(x, 0.5))
    x = torch.ones(1000).to(device)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append([step(x).cpu(), step(x).cpu()])
    assert torch.equal(drawn[0][0], drawn[1][0]) and torch.equal(drawn[0][1], drawn[1][1])
    assert not torch.equal(drawn[0][0], drawn[2][0]) and not torch.equal(drawn[0][0], drawn[0][1])
    assert 400 < (drawn[0][0] == 0).sum() < 600


def test_random_numbers_of_a_step_differ(device):
    step = compiled(lambda x: torch.rand_like(x))
    x = torch.ones(100).to(device)
    with torch.no_grad():
        a, b, c = step(x), torch.rand_like(x), step(x)
    values = [v.cpu() for v in (a, b, c)]
    assert not torch.equal(values[0], values[1]) and not torch.equal(values[0], values[2]) and not torch.equal(values[1], values[2])


def test_dropout_has_the_mask_of_its_forward(device):
    x = torch.ones(100).to(device).requires_grad_()
    y = compiled(lambda x: torch.nn.functional.dropout(x, 0.5) * 3)(x)
    y.sum().backward()
    assert torch.equal(x.grad.cpu(), y.detach().cpu())


def test_sizes_have_graphs_of_their_own(device):
    step = compiled(lambda x, n: (x * n).sum(0) + x.shape[0], dynamic=True)
    for rows in (3, 5, 3, 7):
        x = torch.randn(rows, 4)
        close(step(x.to(device), 2), (x * 2).sum(0) + rows)
    report = ht.compile_report()
    assert len(report.graphs) == 1 and [p.calls for p in report.programs] == [2, 1, 1]


def test_gradients_of_dynamic_sizes(device):
    model = captured_models.Mlp()
    other = copy.deepcopy(model).to(device)
    step = compiled(other, dynamic=True)
    for rows in (3, 5):
        x = torch.randn(rows, 8)
        given = [x.clone().to(d).requires_grad_() for d in (device, "cpu")]
        for run, value in zip((step, model), given):
            run(value).pow(2).sum().backward()
        close(given[0].grad, given[1].grad)


def test_breaks_and_recompilations_have_lines(device):
    def function(x, flag):
        y = x * 2
        if y.sum() > 0:  # a break
            y = y + 1
        return y if flag else -y

    step = compiled(function, dynamic=False)
    for x, flag in [(torch.ones(2), True), (torch.ones(2), False), (torch.ones(3), False)]:
        close(step(x.to(device), flag), function(x, flag))
    report = ht.compile_report()
    line = function.__code__.co_firstlineno + 2
    assert report.breaks and all(b.line.endswith(f"{HERE}:{line}") for b in report.breaks)
    reasons = " ".join(r.reason for r in report.recompilations)
    assert "flag" in reasons and "size mismatch" in reasons


def test_ops_that_are_no_nodes_run_by_themselves(device):
    def function(x):
        y = x.sin()
        values = torch.linalg.eigvals(y)
        return values.abs().sort()[0], (values * 2).real.sum() + y.sum()

    x = torch.randn(4, 4)
    for a, b in zip(compiled(function, fullgraph=True)(x.to(device)), function(x)):
        close(a, b, 1e-5)
    row, = ht.compile_report().on_host
    assert row.op == "aten::linalg_eig" and HERE in row.line
    assert "aten::linalg_eig by itself at" in str(ht.compile_report())


def test_branches_and_loops(device):
    from torch._higher_order_ops.while_loop import while_loop

    function = lambda x: torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a * a, (x,)) + 1
    step = compiled(function, fullgraph=True)
    for x in (torch.ones(3), -torch.ones(3)):
        close(step(x.to(device)), function(x))
    zero = torch.zeros((), dtype=torch.int64)
    loop = lambda x, i: while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y.sin() + 1), (i, x))
    x = torch.randn(3)
    for a, b in zip(compiled(loop, fullgraph=True)(x.to(device), zero.to(device)), loop(x, zero)):
        close(a, b)


def test_tensors_of_the_host(device):
    table = torch.arange(4.0)

    def function(x, factor):
        return x * factor + table.to(x.device), torch.tensor(3.0) * x, x.sum().cpu() + 1, torch.ones(2) * 2

    x, factor = torch.randn(4), torch.tensor(2.5)
    got = compiled(function, fullgraph=True)(x.to(device), factor)
    for a, b in zip(got, function(x, factor)):
        close(a, b)
    assert [v.device.type for v in got] == [device, device, "cpu", "cpu"]


def test_written_arguments_and_attributes(device):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count += 1
            x.mul_(2)
            return x + self.count

    model, x = Counter().to(device), torch.ones(2).to(device)
    step = compiled(model)
    assert step(x).tolist() == [3, 3] and x.tolist() == [2, 2] and step(x).tolist() == [6, 6]
    assert model.count.tolist() == [2, 2]


def test_results_that_share_memory(device):
    def function(x, y):
        z = x @ y
        return z.t(), z.permute(1, 0).contiguous(), (z + 1).unsqueeze(0).expand(2, -1, -1), x.t(), x.view(-1), x, z

    x, y = torch.randn(3, 4), torch.randn(4, 5)
    expected = function(x, y)
    given = x.to(device), y.to(device)
    eager = function(*given)
    got = compiled(function)(*given)
    for a, b, c in zip(got, expected, eager):
        close(a, b)
        assert a.stride() == c.stride()
    assert got[5] is given[0]
    got[4][0] = 7.0  # a view of an argument
    assert given[0][0, 0].item() == 7.0


def test_arguments_that_are_views(device):
    x = torch.randn(4, 6)
    function = lambda a, b: a * 2 + b.sum(0, keepdim=True)
    on = x.to(device)
    close(compiled(function)(on.t(), on[:, 1:5].t()), function(x.t(), x[:, 1:5].t()))
    on[0] = 5.0
    x[0] = 5.0
    close(compiled(function)(on.t(), on[:, 1:5].t()), function(x.t(), x[:, 1:5].t()))


def test_the_optimizer_in_the_function(device):
    models = [captured_models.Mlp(), None]
    models[1] = copy.deepcopy(models[0]).to(device)
    x = torch.randn(4, 8)
    for model, given in zip(models, (x, x.to(device))):
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)

        def step():
            optimizer.zero_grad()
            model(given).pow(2).sum().backward()
            optimizer.step()

        update = torch.compile(optimizer.step) if model is models[1] else optimizer.step
        for _ in range(3):
            optimizer.zero_grad()
            model(given).pow(2).sum().backward()
            update()
    for a, b in zip(models[0].parameters(), models[1].parameters()):
        close(a, b, 1e-5)


def test_steps_in_the_function():
    import hlokit.torch.xla_model as xm

    def function(x):
        y = x * 2
        xm.mark_step()
        return y + 1

    with ht.trace() as trace:
        assert compiled(function)(torch.ones(2).to("xla")).tolist() == [3, 3]
    assert [g.reason for g in trace.graphs][0] == "step"
    assert ht.compile_report().breaks


def test_modes_of_eager_execution():
    before = ht.eager_mode("strict")
    try:
        with ht.trace() as trace:
            y = compiled(lambda x: (x.sin() + 1) * 2)(torch.zeros(3).to("tpu"))
            assert len(trace.graphs) == 1  # of three ops
        assert y.tolist() == [2, 2, 2]
    finally:
        ht.eager_mode(before)


def test_sessions_without_values():
    with ht.trace(fake=True) as trace, ht.on_device():
        layer = torch.nn.Linear(16384, 16384)
        loss = compiled(layer)(torch.zeros(4, 16384)).sum()
        loss.backward()
        ht.mark_step()
    assert "f32[16384,16384]" in trace.main_graph().hlo


def test_sessions_that_follow():
    step = compiled(lambda x: torch.nn.functional.dropout(x, 0.5).sum() * torch.tensor([1.0, 2.0]).to(x.device))
    for _ in range(2):
        ht.configure(devices=2)
        values = [step(torch.ones(4).to(f"xla:{i}")).cpu() for i in range(2)]
        assert all(v[1] == 2 * v[0] for v in values)
    ht.configure(devices=1)


def test_devices_of_spawn():
    def train(index):
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1).to("xla")
        step = torch.compile(model)
        step(torch.full((2, 4), float(index), device="xla")).sum().backward()
        grads[index] = model.weight.grad.tolist()

    grads = {}
    ht.spawn(train, nprocs=2)
    assert grads == {0: [[0.0] * 4], 1: [[2.0] * 4]}
    ht.configure(devices=1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64, torch.int64, torch.bool, torch.complex64])
def test_element_types(dtype, device):
    x = torch.tensor([0, 1, 1, 0]).to(dtype)
    function = lambda x: (torch.cat([x, x]), x == x.flip(0))
    for a, b in zip(compiled(function)(x.to(device)), function(x)):
        assert a.dtype == b.dtype and torch.equal(a.cpu(), b)


def test_autocast_is_captured():
    model = torch.nn.Linear(4, 4).to("tpu")
    x = torch.randn(2, 4).to("tpu")

    def function(x):
        with torch.autocast("tpu", dtype=torch.bfloat16):
            return model(x)

    got = compiled(function, fullgraph=True)(x)
    assert got.dtype == torch.bfloat16
    close(got, function(x), 1e-2)


VALUES = [1 + 2j, 3 - 4j]


@pytest.mark.parametrize("backend", ["hlokit", "inductor"])
@pytest.mark.parametrize("take", [lambda z: z, lambda z: z.conj(), lambda z: z.conj().imag, lambda z: z.imag])
@pytest.mark.parametrize("give", [lambda z: z * 2, lambda z: (z * 2).conj(), lambda z: (z * 2).conj().imag, lambda z: z.conj()])
def test_marks_of_conjugates(device, take, give, backend):
    z = torch.tensor(VALUES)
    if not take(z).is_complex() and give(z).is_floating_point():
        pytest.skip("a real tensor has no imaginary part")
    for _ in range(2):
        close(torch.compile(give, backend=backend)(take(z.to(device))), give(take(z)).resolve_conj().resolve_neg())


def test_marks_of_attributes(device):
    held = torch.tensor(VALUES)
    marked = held.to(device).conj()
    close(compiled(lambda z: z + marked)(torch.tensor(VALUES).to(device) * 1j), held * 1j + held.conj())


def test_gradients_of_conjugates(device):
    def function(z):
        return (z * (1 + 3j)).conj()

    gradients = []
    for place, run in (("cpu", function), (device, compiled(function))):
        z = torch.tensor(VALUES).to(place).requires_grad_()
        run(z.conj()).backward((torch.tensor(VALUES) * 1j).to(place).conj())
        gradients.append(z.grad)
    close(gradients[1].resolve_conj(), gradients[0].resolve_conj())


def test_written_arguments_with_marks(device):
    def function(x):
        x.add_(10)
        return x * 2

    found = []
    for place, run in (("cpu", function), (device, compiled(function))):
        z = torch.tensor(VALUES).to(place)
        found.append((run(z.conj().imag).cpu().tolist(), z.cpu().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("backend", ["hlokit", "inductor"])
def test_written_arguments_that_share_memory(device, backend):
    def function(a, b):
        a.add_(1)
        return b * 2

    x = torch.ones(4, device=device)
    step = torch.compile(function, backend=backend)
    assert step(x[:3], x[1:]).tolist() == [4, 4, 2] and x.tolist() == [2, 2, 2, 1]
    if device == "xla":  # whose tensors have no offsets
        assert [row.op for row in ht.compile_report().on_host] == ["add_", "mul"]
        assert "an argument whose memory another one shares" in str(ht.compile_report())
    torch._dynamo.reset()
    ht.compile_report(reset=True)
    x = torch.ones(4, device=device)
    read = torch.compile(lambda a, b: a * 2 + b, backend=backend)
    assert read(x[:3], x[1:]).tolist() == [3, 3, 3] and not ht.compile_report().on_host


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[1:]])
def test_strides_of_arguments(device, view):
    function = lambda x: x.as_strided((3,), (2,)) * 1
    whole = torch.arange(12.0).view(3, 4).to(device)
    results = []
    for run in (function, compiled(function)):
        x = view(whole).detach().requires_grad_()
        y = run(x)
        y.pow(2).sum().backward()
        results.append((y.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


def test_random_numbers_of_the_host(device):
    function = lambda x: x + torch.rand(3).to(x.device)
    drawn = []
    for run in (function, compiled(function)):
        torch.manual_seed(3)
        drawn.append([run(torch.zeros(3, device=device)).tolist() for _ in range(2)])
    assert drawn[0] == drawn[1] and drawn[0][0] != drawn[0][1]


def test_options_are_of_the_host(device):
    with pytest.raises(Exception, match="engine are for graphs of tensors on the host"):
        compiled(lambda x: x + 1, options={"engine": "exact"})(torch.ones(2, device=device))
