# SPDX-License-Identifier: Apache-2.0
"""What PyTorch/XLA's users rely on besides ops: generators, checkpoints, loaders, saved states, lines of the program."""

import os
import re
import subprocess
import sys
import time
import warnings

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import torch.utils.checkpoint  # noqa: E402

import hlokit  # noqa: E402
import hlokit.torch as ht  # noqa: E402
import hlokit.torch.checkpoint  # noqa: E402
import hlokit.torch.profiler as xp  # noqa: E402
import hlokit.torch.xla_model as xm  # noqa: E402


@pytest.fixture(autouse=True)
def session():
    ht.configure(devices=1, pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0)


def seeded():
    return torch.Generator().manual_seed(7)


WEIGHTS = [0.1, 0.2, 0.7]
DRAWS = {
    "rand": lambda d, g: torch.rand(3, device=d, generator=g),
    "randn": lambda d, g: torch.randn(2, 3, device=d, generator=g, dtype=torch.float64),
    "randint": lambda d, g: torch.randint(0, 10, (4,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(9, device=d, generator=g),
    "normal": lambda d, g: torch.normal(1.0, 2.0, (3,), device=d, generator=g),
    "normal of a tensor": lambda d, g: torch.normal(torch.tensor(WEIGHTS).to(d), 1.0, generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(torch.tensor(WEIGHTS).to(d), generator=g),
    "multinomial": lambda d, g: torch.multinomial(torch.tensor(WEIGHTS).to(d), 2, generator=g),
    "poisson": lambda d, g: torch.poisson(10 * torch.tensor(WEIGHTS).to(d), generator=g),
    **{f"{name}_": lambda d, g, name=name, args=args: getattr(torch.zeros(5).to(d), name + "_")(*args, generator=g)
       for name, args in {"normal": (1.0, 2.0), "uniform": (), "bernoulli": (0.5,), "exponential": (), "random": (), "cauchy": (),
                          "geometric": (0.3,), "log_normal": ()}.items()},
    "random_ of a view": lambda d, g: torch.zeros(2, 3).to(d).t()[1].random_(0, 100, generator=g),
}


@pytest.mark.parametrize("name", DRAWS)
def test_numbers_of_a_generator_are_the_generators(name):
    mine, theirs = seeded(), seeded()
    for _ in range(2):  # the generator goes on
        found = DRAWS[name](ht.device(), mine)
        assert found.device.type == "xla"
        assert torch.equal(found.cpu(), DRAWS[name]("cpu", theirs))
    assert any("generator" in reason for _, reason in ht.fallbacks())


def test_a_generator_initializes_parameters_and_their_views():
    layer = torch.nn.Linear(4, 3).to(ht.device())
    view = layer.weight.detach()[1]
    torch.nn.init.normal_(layer.weight) if torch.__version__ < "2" else torch.nn.init.normal_(layer.weight, generator=seeded())
    if torch.__version__ >= "2":
        assert torch.equal(layer.weight.detach().cpu(), torch.empty(3, 4).normal_(generator=seeded()))
    assert torch.equal(view.cpu(), layer.weight.detach().cpu()[1])


def checkpointed(checkpoint, drop=0.5, **options):
    """The mask of dropout in the forward pass and the gradient, which is the mask of the recomputation."""
    x = torch.ones(2000).to(ht.device()).requires_grad_()
    torch.rand(3, device=ht.device())  # the mask is not the first draw of the step
    y = checkpoint(lambda v: torch.nn.functional.dropout(v, drop), x * 1, **options)
    torch.rand(3, device=ht.device())
    y.sum().backward()
    after = torch.rand(5, device=ht.device())
    return y.detach().cpu(), x.grad.cpu(), after.cpu()


@pytest.mark.parametrize("form", ["hlokit", "torch", "torch, not reentrant"])
def test_a_checkpoint_draws_the_same_mask_again(form):
    if form == "hlokit":
        checkpoint, options = hlokit.torch.checkpoint.checkpoint, {}
    else:
        checkpoint, options = torch.utils.checkpoint.checkpoint, {"use_reentrant": "not" not in form}
    y, gradient, after = checkpointed(checkpoint, **options)
    assert torch.equal(y, gradient) and 800 < int((y == 0).sum()) < 1200
    xm.set_rng_state(101)
    without = checkpointed(lambda fn, x: fn(x))
    xm.set_rng_state(101)
    again = checkpointed(checkpoint, **options)
    assert all(torch.equal(a, b) for a, b in zip(again, without))  # later draws are those of a program without it


def test_a_checkpoint_is_computed_again_and_takes_less_memory():
    width, layers = 256, 6

    def peak(wrap):
        torch.manual_seed(0)
        blocks = [torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU()) for _ in range(2)])
                  for _ in range(layers)]
        blocks = [b.to(ht.device()) for b in blocks]
        x = torch.randn(512, width).to(ht.device()).requires_grad_()
        xm.mark_step()
        with ht.trace() as t:
            y = x
            for block in blocks:
                y = wrap(block, y)
            y.sum().backward()
            xm.mark_step()
        module = t.main_graph().module
        gradients = [x.grad.cpu(), *(p.grad.cpu() for b in blocks for p in b.parameters())]
        return module, gradients, len(module.find(opcode="dot")), len(module.find(opcode="opt-barrier"))

    plain, expected, dots, barriers = peak(lambda block, y: block(y))
    checked, found, more_dots, more_barriers = peak(hlokit.torch.checkpoint.checkpoint)
    assert (barriers, more_barriers) == (0, layers) and more_dots > dots
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected))
    assert checked.memory().peak_bytes < 0.8 * plain.memory().peak_bytes


def test_a_barrier_keeps_values_and_identity():
    a, b = torch.ones(3).to(ht.device()), torch.arange(3.0).to(ht.device())
    view = b[1:]
    xm.optimization_barrier_([a, b])
    assert a.cpu().tolist() == [1, 1, 1] and b.cpu().tolist() == [0, 1, 2] and view.cpu().tolist() == [1, 2]


class SlowBatches:
    def __init__(self, count, seconds):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __iter__(self):
        for i in range(self.count):
            time.sleep(self.seconds)
            yield torch.full((4, 8), float(i))


def test_the_time_of_a_loader_is_seen():
    seconds = 0.05
    layer = torch.nn.Linear(8, 8).to(ht.device())
    ht.metrics.clear_all()
    sums = []  # values that nobody holds are not computed
    with ht.trace() as t:
        for batch in ht.MpDeviceLoader(SlowBatches(8, seconds), ht.device()):
            sums.append(layer(batch).sum())
    batches, total = ht.metrics.metric_data("LoaderBatchTime")
    assert batches >= 8 and total > 8 * seconds * 1e9
    waits, waited = ht.metrics.metric_data("LoaderWaitTime")
    assert waits >= 8 and waited > 4 * seconds * 1e9
    document = t.simulate("v4").document()
    assert document["step_time_us"] > 0.8e6 * seconds and document["bound_by"] == "host"
    assert document["host"]["phases"][0]["phase"] == "input pipeline"


def test_a_starved_program_is_told_so(tmp_path):
    program = tmp_path / "starved.py"
    program.write_text("""
import time, torch, hlokit.torch as ht
def batches():
    for i in range(24):
        time.sleep(0.1)
        yield torch.ones(2)
for batch in ht.MpDeviceLoader(batches(), ht.device()):
    batch + 1
""")
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True,
                            env=dict(os.environ, PT_XLA_DEBUG="1", PYTHONPATH=os.pathsep.join(sys.path)))
    assert "LoaderWaitTime too long" in result.stderr


def test_pending_values_are_saved_by_one_program(tmp_path):
    layer = torch.nn.Sequential(*[torch.nn.Linear(4, 4) for _ in range(10)]).to(ht.device())
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(2.0)
    expected = {name: value.clone() for name, value in layer.state_dict().items()}
    ht.metrics.clear_all()
    xm.save({"model": layer.state_dict(), "step": 3, "more": [(torch.ones(1).to(ht.device()) + 1,)]}, tmp_path / "state.pt")
    assert ht.metrics.counter_value("UncachedCompile") == 1
    state = torch.load(tmp_path / "state.pt")
    assert state["step"] == 3 and state["more"][0][0].item() == 2
    assert all(torch.equal(value, expected[name].cpu()) for name, value in state["model"].items())


@pytest.mark.parametrize("debug", [True, False])
def test_debugging_output_names_lines_of_the_program(debug, tmp_path):
    program = tmp_path / "lines.py"
    program.write_text(f"""import torch, hlokit.torch as ht
ht.configure(debug={debug})
def loss_of(x):
    return (x * 2).sum()
x = torch.ones(3).to(ht.device())
print(loss_of(x))
loss_of(x).item()
y = x + 1
ht.mark_step()
ht.save(y * 3, {str(tmp_path / 'y.pt')!r})
""")
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    result = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True,
                            env=dict(environment, PT_XLA_DEBUG="1"))
    frames = re.findall(r"Frame Triggered Execution: *\n(.*)", result.stderr)
    assert len(frames) >= 4 and all(f"<module> ({program}:" in frame for frame in frames), result.stderr[:2000]
    assert "hlokit::" not in result.stderr and ".cc:" not in result.stderr
    subprocess.run([sys.executable, program], check=True, env=dict(environment, XLA_SAVE_TENSORS_FILE=str(tmp_path / "graphs")))
    saved = "".join(p.read_text() for p in tmp_path.glob("graphs*"))
    assert [f"<module> ({program}:{line})" in saved for line in (6, 7, 9, 10)] == [True] * 4
    assert "hlokit::" not in saved and ".cc:" not in saved


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(5, 4)
        self.head = torch.nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids):
        return self.head(self.embedding(ids))


def test_tied_weights_stay_tied():
    torch.manual_seed(0)
    model, ids = Tied(), torch.tensor([1, 2])
    model(ids).sum().backward()
    expected = model.embedding.weight.grad.clone()
    model.zero_grad()
    model.to(ht.device())
    assert model.head.weight is model.embedding.weight and len(list(model.parameters())) == 1
    model(ids.to(ht.device())).sum().backward()
    assert torch.allclose(model.head.weight.grad.cpu(), expected)


@pytest.mark.parametrize("step", [lambda optimizer: optimizer.step(), xm.optimizer_step], ids=["step", "optimizer_step"])
@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.1), torch.optim.Adam], ids=["SGD", "Adam"])
def test_an_optimizer_that_was_made_too_early_is_warned_of_at_its_first_step(make, step):
    model = torch.nn.Linear(2, 2)
    early = make(model.parameters())
    model.to(ht.device())
    right = make(model.parameters())
    for optimizer, count in ((early, 1), (right, 0)):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            for _ in range(2):
                model(torch.ones(1, 2).to(ht.device())).sum().backward()
                step(optimizer)
        found = [w for w in seen if "optimizer after" in str(w.message)]
        assert len(found) == count
        for warning in found:
            assert f"2 of 2 parameters of this {type(early).__name__}" in str(warning.message) and "xla:0" in str(warning.message)
            assert warning.filename == __file__  # the line of the program


@pytest.mark.skipif(torch.__version__ < "2", reason="PyTorch before 2 makes no fake tensors of ours")
def test_functions_are_traced_by_fx_and_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    x = torch.randn(3).to(ht.device())
    for mode in ("real", "fake", "symbolic"):
        traced = make_fx(lambda v: (v * 2).relu().sum(), tracing_mode=mode)(x)
        names = [str(node.target) for node in traced.graph.nodes if node.op == "call_function"]
        assert names == ["aten.mul.Tensor", "aten.relu.default", "aten.sum.default"]
        assert torch.equal(traced(x).cpu(), (x * 2).relu().sum().cpu())
    with FakeTensorMode() as fake:
        y = fake.from_tensor(x) * 2
        assert y.shape == (3,) and y.device == torch.device("xla", 0)


@pytest.mark.parametrize("device", ["v9", "", "v5ee", "v5e:99x99"])
def test_a_device_that_does_not_exist_is_said_as_by_simulate(device, tmp_path):
    with ht.trace() as t:
        _ = torch.ones(3, device="xla") * 2
        ht.mark_step()
    with ht.trace() as empty:
        pass
    with pytest.raises(ValueError) as expected:
        hlokit.simulate(t.graphs[0].module, device)
    calls = [t.simulate, empty.simulate, lambda d: xp.start_trace(str(tmp_path), d), lambda d: xp.start_server(0, device=d)]
    for call in calls:
        with pytest.raises(ValueError) as error:
            call(device)
        assert str(error.value) == str(expected.value)
    with pytest.raises(ValueError, match="replicas"):
        t.simulate("v5e", replicas=-1)
    assert t.simulate("v5e")["step_time_us"] > 0


def test_pending_takes_tensors_on_devices():
    x = torch.ones(2, device="xla") * 3
    assert ht.pending(x).hlo == ht.pending([x]).hlo and "multiply" in ht.pending(x).hlo
    with pytest.raises(TypeError, match="pending: expected tensors on XLA devices, found a tensor on cpu"):
        ht.pending([x, torch.ones(2)])
    with pytest.raises(TypeError, match="found int"):
        ht.pending([3])
