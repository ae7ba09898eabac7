# SPDX-License-Identifier: Apache-2.0
"""hlokit.torch. The long forms are torch_models.py and torch_op_calls.py, steps of tools/check --full."""

import copy
import doctest
import gc
import json
import pathlib
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch_models  # noqa: E402
import torch_op_calls  # noqa: E402

import hlokit  # noqa: E402
import hlokit.torch as ht  # noqa: E402
import hlokit.torch.xla_model as xm  # noqa: E402


@pytest.fixture(autouse=True)
def session():
    ht.configure(devices=1, pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0)


def on_device(value):
    return value.to(ht.device())


def test_tensors_have_the_device_and_print():
    x = on_device(torch.tensor([1.0, 2.0]))
    assert x.device == torch.device("xla", 0) and x.is_xla
    assert "device='xla:0'" in repr(x) and "[1., 2.]" in repr(x)
    assert x.cpu().tolist() == [1.0, 2.0]
    assert x[1].item() == 2.0
    with pytest.raises(TypeError):
        x.numpy()


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
                                   torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_values_of_every_type_go_to_the_device_and_back(dtype):
    value = torch.arange(6).reshape(2, 3).to(dtype)
    assert torch.equal(on_device(value).cpu(), value)
    assert torch.equal(on_device(value.t()).cpu(), value.t())
    assert on_device(torch.empty(0, 3, dtype=dtype)).cpu().shape == (0, 3)


def test_new_tensors_are_made_on_the_device():
    device = ht.device()
    assert torch.zeros(2, device=device).cpu().tolist() == [0, 0]
    assert torch.arange(3, device=device).cpu().tolist() == [0, 1, 2]
    assert torch.full((2,), 1.5, device=device).cpu().tolist() == [1.5, 1.5]
    assert torch.tensor([1, 2], device=device).cpu().tolist() == [1, 2]
    assert torch.eye(2, device=device).cpu().tolist() == [[1, 0], [0, 1]]
    assert torch.zeros_like(torch.zeros(2, device=device), device="cpu").device.type == "cpu"


def test_writes_through_views_reach_their_bases():
    def program(x):
        y = x * 1
        y[1:3].mul_(3)
        y.t()[0].add_(10)
        y.view(-1)[::2] = -1
        z = y[0]
        y.add_(1)
        return y, z

    value = torch.arange(12.0).reshape(4, 3)
    for ours, theirs in zip(program(on_device(value)), program(value)):
        assert torch.equal(ours.cpu(), theirs)


def test_calls_that_the_recorder_cannot_translate():
    attempt = hlokit._hlokit._torch_try
    x = on_device(torch.ones(2))
    x.neg().add_(1)
    neg, add_ = torch.ops.aten.neg.default, torch.ops.aten.add_.Tensor
    assert attempt(neg, (x,), {})[1] is None
    assert attempt(neg, (x,), {"other": 1}) == (None, "argument `other`")
    assert attempt(add_, (), {"self": x, "other": 1}) == (None, "a written argument is given by name")
    with pytest.raises(UnicodeEncodeError):
        attempt(neg, (x,), {"\ud800": 1})
    with pytest.raises(TypeError, match="keywords are strings"):
        attempt(neg, (x,), {1: 1})


def test_a_device_is_traced_once():
    with ht.trace() as outer:
        with pytest.raises(ValueError, match="traced already"), ht.trace():
            pass
        on_device(torch.ones(2)).neg().cpu()
    assert len(outer.graphs) == 1
    with ht.trace() as again:
        on_device(torch.ones(2)).neg().cpu()
    assert len(again.graphs) == 1


def test_in_place_ops_that_change_sizes():
    x = on_device(torch.arange(6.0).reshape(2, 3))
    x.t_()
    assert x.shape == (3, 2) and x.cpu().tolist() == [[0, 3], [1, 4], [2, 5]]
    x.unsqueeze_(0)
    assert x.shape == (1, 3, 2)
    x.resize_(2)
    assert x.cpu().tolist() == [0, 3]


def test_gradients_through_in_place_writes():
    def gradient(place):
        a = place(torch.tensor([1.0, 2.0, 3.0, 4.0])).requires_grad_()
        b = a * 2
        b[1:3].mul_(3)
        (b * b).sum().backward()
        return a.grad.cpu()

    assert torch.equal(gradient(on_device), gradient(lambda t: t.clone()))


@pytest.mark.parametrize("name", ["solve", "solve_ex", "solve of a transposed", "solve from the right", "tensorsolve", "det",
                                  "slogdet", "inv", "lu_factor", "complex solve"])
def test_gradients_that_use_saved_factors(name):
    linalg = torch.linalg
    functions = {
        "solve": linalg.solve,
        "solve_ex": lambda a, b: linalg.solve_ex(a, b)[0],
        "solve of a transposed": lambda a, b: linalg.solve(a.transpose(-1, -2), b),
        "solve from the right": lambda a, b: linalg.solve(a, b.transpose(-1, -2), left=False),
        "tensorsolve": lambda a, b: torch.stack([linalg.tensorsolve(m, v[:, 0]) for m, v in zip(a, b)]),
        "det": lambda a, b: linalg.det(a)[:, None, None] * b,
        "slogdet": lambda a, b: linalg.slogdet(a)[1][:, None, None] * b,
        "inv": lambda a, b: linalg.inv(a) @ b,
        "lu_factor": lambda a, b: linalg.lu_factor(a)[0] @ b,
        "complex solve": lambda a, b: torch.view_as_real(linalg.solve(torch.complex(a, a.sin()), torch.complex(b, b))),
    }
    # Not symmetric, and the rows change places.
    a = torch.tensor([[[0.5, 2.0, -1.0], [4.0, 1.0, 0.25], [1.0, -3.0, 2.0]], [[3.0, 1.0, 2.0], [-1.0, 0.5, 4.0], [2.0, 5.0, 1.0]]])
    b = torch.tensor([[[1.0, 2.0], [3.0, -1.0], [0.5, 1.0]], [[2.0, 0.0], [1.0, 1.0], [-1.0, 3.0]]])

    def gradients(place):
        inputs = [place(t.to(torch.float64)).requires_grad_() for t in (a, b)]
        functions[name](*inputs).pow(2).sum().backward()
        return [t.grad.cpu() for t in inputs]

    for ours, theirs in zip(gradients(on_device), gradients(lambda t: t.clone())):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-11)


def test_gradients_use_the_numbers_that_were_drawn():
    functional = torch.nn.functional
    x = on_device(torch.linspace(-2, 2, 40)).requires_grad_()
    for function in (lambda t: functional.rrelu(t, training=True), lambda t: functional.dropout(t, 0.4)):
        result = function(x)
        (gradient,) = torch.autograd.grad(result.sum(), x)
        assert torch.allclose((gradient * x).detach().cpu(), result.detach().cpu())  # f(x) is x f'(x)
        assert len(set(gradient.tolist())) > 1
    slopes = torch.autograd.grad(functional.rrelu(x, 0.2, 0.3, training=True).sum(), x)[0].cpu()
    assert ((slopes[:20] >= 0.2) & (slopes[:20] <= 0.3)).all() and (slopes[20:] == 1).all()


def test_a_nan_is_not_above_a_threshold():
    x = on_device(torch.tensor([float("nan"), 2.0])).requires_grad_()
    assert torch.autograd.grad(torch.relu(x).sum(), x)[0].tolist() == [0, 1]
    assert torch.nn.functional.threshold(x, 1.0, 7.0).tolist() == [7, 2]
    assert torch.relu(x)[0].isnan()


def test_a_module_on_the_device_is_exported():
    if not hasattr(torch, "export"):
        pytest.skip("PyTorch before 2.1 has no torch.export")
    # In a process of its own: an error would end it.
    code = """
import torch, hlokit.torch as ht
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    def forward(self, x):
        return self.inner(x) + torch.arange(2, device=x.device)
net = Net().to(ht.device())
x = torch.ones(5, 3).to(ht.device())
program = torch.export.export(net, (x,))
assert {str(n.meta["val"].device) for n in program.graph.nodes if hasattr(n.meta.get("val"), "device")} == {"xla:0"}
result = program.module()(x)
assert result.device.type == "xla" and torch.equal(result.cpu(), net(x).cpu())
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


def test_modules_keep_their_parameters_and_optimizers_their_state():
    model = torch.nn.Linear(3, 2)
    model.to(ht.device())
    assert isinstance(model.weight, torch.nn.Parameter) and model.weight.is_xla and model.weight.is_leaf
    assert [name for name, _ in model.named_parameters()] == ["weight", "bias"]
    copied = copy.deepcopy(model)
    assert torch.equal(copied.weight.cpu(), model.weight.cpu())
    optimizer = torch.optim.Adam(model.parameters())
    model(on_device(torch.ones(1, 3))).sum().backward()
    optimizer.step()
    assert optimizer.state[model.weight]["exp_avg"].is_xla
    model.weight.data = torch.zeros(2, 3, device=ht.device())
    assert model.weight.cpu().abs().sum() == 0


def test_layers_and_optimizers_of_torch_run_without_leaving_the_graph():
    def train(place, mark_step):
        torch.manual_seed(0)
        lstm, attention = torch.nn.LSTM(4, 8), torch.nn.MultiheadAttention(8, 2)
        model = place(torch.nn.ModuleList([lstm, attention, torch.nn.BatchNorm1d(8), torch.nn.Embedding(6, 4)]))
        ids = place(torch.tensor([[1, 2], [3, 4], [5, 0]]))
        losses = []
        for make in (
            torch.optim.AdamW,
            torch.optim.RMSprop,
            torch.optim.Adagrad,
            torch.optim.Adadelta,
            torch.optim.NAdam,
            torch.optim.Rprop,
            lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, foreach=True),
        ):
            optimizer = make(model.parameters())
            for _ in range(2):
                optimizer.zero_grad()
                x, _ = lstm(model[3](ids))
                x, _ = attention(x, x, x)
                loss = model[2](x.flatten(0, 1)).pow(3).mean()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                mark_step()
                losses.append(loss.detach())
        return torch.stack(losses).cpu()

    before = ht.fallbacks()
    ours = train(lambda v: v.to(ht.device()), ht.mark_step)
    assert ht.fallbacks() == before
    assert torch.allclose(ours, train(lambda v: v, lambda: None), rtol=1e-3, atol=1e-4)


def test_a_trace_has_the_graphs_of_its_steps(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to(ht.device())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = on_device(torch.randn(5, 8)), on_device(torch.randn(5, 4))
    with ht.trace() as t:
        for _ in range(3):
            optimizer.zero_grad(set_to_none=True)
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            ht.mark_step()
    steps = [g for g in t.graphs if g.reason == "step"]
    assert [g.compiled for g in steps] == [True, False, False] and len({g.hash for g in steps}) == 1
    graph = steps[0]
    assert "aten::addmm" in graph.lazy_ir and graph.lazy_ir.startswith("IR {")
    assert graph.module.entry.root.opcode == "tuple" and "HloModule" in graph.hlo
    dot = graph.module.find(opcode="dot")[0]
    assert dot.metadata.source_file.endswith("test_torch.py") and dot.metadata.source_line > 0
    assert re.fullmatch(r"Sequential\.\d+/0\.1", dot.metadata.scope)
    simulation = t.simulate("v4:2x2x1")
    assert simulation["step_time_us"] > 0
    names = simulation.report(tmp_path / "out")
    assert f"graph-{graph.hash}.hlo" in names and "report.json" in names
    assert json.loads((tmp_path / "out" / "report.json").read_text())
    assert "Counter: MarkStep" in ht.metrics_report()


def test_recompilations_are_explained():
    for size in (2, 3):
        (on_device(torch.ones(size)) + 1)
        x = on_device(torch.ones(size)).exp()
        ht.mark_step()
        del x
    explanations = ht.explain_recompiles()
    assert len(explanations) == 2 and "first difference" in explanations[1]
    assert ht.explain_recompiles() == []


def test_an_op_that_the_tracer_lacks_runs_on_the_cpu_and_is_counted():
    x = on_device(torch.tensor([[4.0, 1.0], [1.0, 3.0]]))
    expected = torch.linalg.eig(x.cpu())
    for ours, theirs in zip(torch.linalg.eig(x), expected):
        assert torch.allclose(ours.cpu(), theirs)
    assert ht.metrics.counter_value("aten::linalg_eig") == 1
    assert "aten::linalg_eig" in ht.metrics.executed_fallback_ops()
    assert any(name == "aten::linalg_eig" for name, _ in ht.fallbacks())


def test_errors_are_those_of_torch():
    x = on_device(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes|size mismatch"):
        x.mm(x)
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(2, 3)
    assert (x + torch.tensor(1.0)).cpu().sum() == 12
    with pytest.raises(RuntimeError, match="there is no device xla:1"):
        ht.device(1)


def test_fake_tensors_have_no_values_and_take_no_memory():
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ht.trace(fake=True) as t:
        with ht.on_device():
            model = torch.nn.Sequential(*(torch.nn.Linear(16384, 16384, bias=False) for _ in range(16)))  # 16 GiB
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        ht.mark_step()
        model(torch.zeros(4, 16384, device=ht.device())).sum().backward()
        optimizer.step()
        ht.mark_step()
        with pytest.raises(RuntimeError, match="no values"):
            model[0].weight.sum().item()
    assert "f32[16384,16384]" in t.main_graph().hlo
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1 << 20  # KiB


def test_devices_train_data_parallel():
    torch.manual_seed(0)
    data, target = torch.randn(8, 4), torch.randn(8, 1)
    start = torch.nn.Linear(4, 1)

    def step(model, x, y, update):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        torch.nn.functional.mse_loss(model(x), y).backward()
        update(optimizer)
        return model.weight

    whole = step(copy.deepcopy(start), data, target, lambda o: o.step())
    found = [None] * 2

    def program(index):
        assert xm.get_ordinal() == index and xm.xrt_world_size() == 2
        device = xm.xla_device()
        part = slice(4 * index, 4 * index + 4)
        model = copy.deepcopy(start).to(device)
        weight = step(model, data[part].to(device), target[part].to(device), lambda o: xm.optimizer_step(o, barrier=True))
        found[index] = weight.detach().cpu()
        assert xm.mesh_reduce("sum", index + 1, sum) == 3

    ht.spawn(program, nprocs=2)
    for weight in found:
        assert torch.allclose(weight, whole.detach(), rtol=1e-5, atol=1e-6)

    def failing(index):
        if index == 1:
            raise KeyError("one")
        xm.rendezvous("never")

    with pytest.raises(KeyError):
        ht.spawn(failing, nprocs=2)


def test_a_loader_uploads_ahead_and_marks_steps():
    batches = [(torch.full((2,), float(i)), i) for i in range(5)]
    loader = ht.MpDeviceLoader(batches, ht.device())
    seen = [(float(x.sum()), i) for x, i in loader]
    assert seen == [(2.0 * i, i) for i in range(5)]
    assert ht.metrics.counter_value("MarkStep") == 5

    def broken():
        yield torch.ones(1)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        list(ht.MpDeviceLoader(broken(), ht.device()))


def test_states_are_saved_and_loaded(tmp_path):
    model = torch.nn.Linear(2, 2).to(ht.device())
    path = tmp_path / "model.pt"
    ht.save(model.state_dict(), path)
    state = torch.load(path)
    assert state["weight"].device.type == "cpu" and torch.equal(state["weight"], model.weight.detach().cpu())
    other = torch.nn.Linear(2, 2).to(ht.device())
    other.load_state_dict(state)
    assert torch.equal(other.weight.cpu(), model.weight.cpu())
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt"]


def test_random_numbers_come_from_the_seed_of_the_device():
    def draw():
        x = torch.empty(1000, device=ht.device()).normal_()
        return x.cpu()

    xm.set_rng_state(7)
    a, b = draw(), draw()
    xm.set_rng_state(7)
    assert torch.equal(draw(), a) and not torch.equal(a, b)
    assert abs(float(a.mean())) < 0.15 and 0.9 < float(a.std()) < 1.1


def test_profiles_are_written(tmp_path):
    import hlokit.torch.profiler as xp

    xp.start_trace(str(tmp_path))
    x = on_device(torch.ones(4, 4))
    for i in range(3):
        with xp.StepTrace("train", step_num=i), xp.Trace("forward"):
            y = (x @ x).sum()
    directory = xp.stop_trace()
    assert float(y) == 64
    assert list(pathlib.Path(directory).glob("*.xplane.pb"))


def test_tensors_and_graphs_are_freed():
    x = on_device(torch.ones(4))
    for _ in range(3):
        for _ in range(200):
            y = (x + 1) * 2
        ht.mark_step()
    del y
    gc.collect()
    counters = json.loads(ht._session.current().metrics_json())["counters"]
    assert counters["CreateXlaTensor"] - counters["DestroyXlaTensor"] < 10


@pytest.mark.parametrize("name", ["gpt", "llama", "squeezenet1_1"])
def test_models_train_as_on_the_cpu(name):
    if name not in torch_models.cases():
        pytest.skip("torchvision is not installed")
    assert torch_models.run(name).problem() == ""


def test_calls_of_torchs_table_agree():
    try:
        torch_op_calls.op_db()
    except ImportError:
        pytest.skip("this PyTorch has no table of calls")
    outcome = torch_op_calls.check(r"^(add|sub|mul|nn\.functional\.(conv|linear|layer_norm|gelu)|index|cat|sum|linalg\.solve|var)", 3)
    assert outcome.failures == []
    assert outcome.recorded >= 80


def test_the_example_trains_a_model():
    pytest.importorskip("torchvision")
    script = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "train_torch.py"
    run = subprocess.run([sys.executable, script, "squeezenet1_1", "3", "v5e"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("loss") == 3 and "it was f32[4,3,64,64]" in run.stdout and "us on v5e" in run.stdout
    usage = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert usage.returncode == 1 and "train_torch.py" in usage.stderr


@pytest.mark.parametrize("name, expected", [
    ("train_mlp.py", ["step 10: rate 0.005, loss ", "step 30: rate 0.00125, loss ", " of 16 right\n",
                      "31 steps, 31 graphs run, at most 1 a step, 3 different, 3 compiled, 0 loaded\nbroken by item of aten::sum, at "
                      "main@train_mlp.py:"]),
    ("train_data_parallel.py", ["step 10: loss 0.", "step 20: loss 0.",
                                "84 steps, 84 graphs run, at most 1 a step, 3 different, 3 compiled, 0 loaded\n"]),
])
def test_examples_that_train(name, expected):
    script = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / name
    run = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert all(part in run.stdout for part in expected), run.stdout


def test_examples_of_the_page():
    ht.configure(devices=1)
    ht._fallback.fallbacks.clear()
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "pytorch.md"
    torch._dynamo.reset()
    examples = doctest.DocTestParser().get_doctest(page.read_text(), {}, page.name, str(page), 0)
    try:
        result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS).run(examples)
    finally:
        ht.configure(devices=1, spmd=False)
    assert result.attempted > 20 and result.failed == 0


def test_programs_run_on_the_chosen_engine():
    x = torch.arange(4096.0) / 4096
    for engine in ("exact", "fast", "reference"):
        ht.configure(engine=engine)
        value = torch.tanh(on_device(x) * 2).exp() @ on_device(x)
        assert torch.allclose(value.cpu(), torch.tanh(x * 2).exp() @ x, rtol=1e-5)
    with pytest.raises(ValueError, match="none of exact, fast and reference"):
        ht.configure(engine="quick")


@pytest.mark.parametrize("pipeline, problem", [("foo", "unknown pass `foo`"), ("cse,,dce", "expected a pass after `cse,`")])
def test_a_pipeline_that_does_not_exist_is_an_error_at_once(pipeline, problem):
    with pytest.raises(ValueError, match=f"pipeline: .*{problem}"):
        ht.configure(pipeline=pipeline)
    with pytest.raises(ValueError, match=problem), ht.trace(pipeline=pipeline):
        pass
    for valid in ("", "cse,dce", "default", "cpu"):
        ht.configure(pipeline=valid)
        assert (on_device(torch.ones(2)) * 3).cpu().tolist() == [3.0, 3.0]


def test_results_do_not_depend_on_the_number_of_threads():
    x = torch.sin(torch.arange(65536.0)).reshape(256, 256)
    values = []
    for threads in (1, 2, 5):
        ht.configure(engine="fast", num_threads=threads)
        values.append((torch.tanh(on_device(x) @ on_device(x)).sum(1)).cpu())
    assert torch.equal(values[0], values[1]) and torch.equal(values[0], values[2])
    for threads in (-1, 100000):
        with pytest.raises(ValueError, match="num_threads: expected 0 to 1024"):
            ht.configure(num_threads=threads)


def test_values_are_formatted_and_listed_as_those_of_torch():
    x = torch.tensor([1.5, 2.25]).to(ht.device())
    assert f"{x.mean():.3f}" == "1.875"
    assert "{:d}".format(x.sum().long()) == "3"
    assert x.tolist() == [1.5, 2.25]
    assert x[0].tolist() == 1.5


def test_tensors_of_two_devices_do_not_mix():
    code = """
import torch, hlokit.torch as ht
ht.configure(devices=2)
a, b = torch.ones(3).to("xla:0"), torch.zeros(3).to("xla:1")
try:
    a + b
except RuntimeError as error:
    assert "xla:0 and xla:1" in str(error), error
else:
    raise AssertionError("no error")
b.copy_(a)
assert b.tolist() == [1.0, 1.0, 1.0]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
