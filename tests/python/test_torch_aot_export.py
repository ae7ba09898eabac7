# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.export as HLO."""

import copy
import pathlib

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not hasattr(torch, "compile"):
    pytest.skip("this PyTorch has no torch.export", allow_module_level=True)

import captured_models  # noqa: E402
from torch.export import Dim, export  # noqa: E402

import hlokit  # noqa: E402
import hlokit.torch as ht  # noqa: E402

HERE = pathlib.Path(__file__).name


@pytest.fixture(autouse=True)
def fresh_dynamo():
    """PyTorch compiles torch.cond and the like by themselves, with sizes that changed between calls as symbols, which it then
    does not export."""
    torch._dynamo.reset()
    with torch._dynamo.config.patch(automatic_dynamic_shapes=False):
        yield



def leaves(value):
    return [v for v in torch.utils._pytree.tree_leaves(value)]


def check(found, expected, tolerance=2e-6):
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        if isinstance(b, torch.Tensor):
            assert a.dtype == b.dtype and a.shape == b.shape
            torch.testing.assert_close(a, b, rtol=1e-5, atol=tolerance)
        else:
            assert a == b


def exported(model, *args, options=None, **keywords):
    return ht.exported(export(model, args, **keywords), **(options or {}))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", captured_models.MODELS)
def test_models_have_the_values_of_torch(name, strict):
    model, data = captured_models.make(name)
    model.eval()
    if name == "lstm" and strict:
        pytest.skip("Dynamo does not capture nn.LSTM")
    program = exported(model, data, strict=strict)
    check(program(data), model(data))
    parsed = hlokit.parse(program.stablehlo(), "program.mlir")
    assert len(parsed.entry.parameters) == len(program.arguments)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.weights = torch.tensor([1.0, 2.0, 3.0, 4.0])

    def forward(self, x, *, scale: float = 2.0):
        self.calls.add_(1)
        y = self.inner(x) * self.weights
        return {"y": y * scale, "rows": x.shape[0]}, self.calls.clone()


def test_arguments_and_results_have_the_names_of_the_program():
    program = exported(Net(), torch.randn(3, 8))
    assert [(a.kind, a.target) for a in program.arguments] == [
        ("parameter", "inner.0.weight"), ("parameter", "inner.0.bias"), ("buffer", "calls"), ("input", "x")]
    assert [p.name for p in program.module.entry.parameters] == [a.name for a in program.arguments]
    assert [p.metadata.op_name for p in program.module.entry.parameters] == [a.target for a in program.arguments]
    assert [r.kind for r in program.results] == ["mutated buffer", "output", "output"]
    assert "input_output_alias={ {0}: (2, {}, may-alias) }" in program.module.text()


def test_buffers_that_are_written_change():
    model = Net()
    program = exported(model, torch.randn(3, 8))
    x = torch.randn(3, 8)
    other = copy.deepcopy(model)
    for count in (1, 2):
        check(program(x), other(x))
    assert dict(program._program.named_buffers())["calls"].item() == 2


def test_instructions_have_lines_and_modules():
    program = exported(Net(), torch.randn(3, 8))
    dot, = program.module.find(opcode="dot")
    assert dot.metadata.op_name == "Net/inner/0/aten__addmm" and dot.metadata.source_line
    assert dot.metadata.source_file.endswith(HERE)
    text = pathlib.Path(__file__).read_text().splitlines()
    assert "self.inner(x)" in text[dot.metadata.source_line - 1]


def test_parameters_can_be_constants():
    model = Net()
    program = exported(model, torch.randn(3, 8), options={"parameters": "constants"})
    assert [a.target for a in program.arguments] == ["calls", "x"]  # what is written stays an argument
    x = torch.randn(3, 8)
    check(program(x)[0], model(x)[0])
    with pytest.raises(ValueError, match="parameters"):
        exported(model, x, options={"parameters": "none"})


def test_dynamic_sizes_are_given_by_name():
    model = Net()
    program = export(model, (torch.randn(3, 8),), dynamic_shapes={"x": {0: Dim("batch", max=16)}})
    for rows in (2, 5):
        module = ht.from_exported(program, sizes={"batch": rows})
        assert str(module["x"].shape) == f"f32[{rows},8]{{1,0}}"
        x = torch.randn(rows, 8)
        result, calls = ht.exported(program, sizes={"batch": rows})(x)
        check(result, model(x)[0])
        assert result["rows"] == rows
    for sizes, message in [(None, "batch is dynamic"), ({"batch": 17}, "from 0 to 16, not 17"),
                           ({"batch": 2, "c": 3}, "no dynamic dimension c")]:
        with pytest.raises(ValueError, match=message):
            ht.from_exported(program, sizes=sizes)


def test_calls_of_other_sizes_have_programs_of_their_own():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 3)

        def forward(self, x, y):
            return self.layer(x).mean(0), x @ y.t(), torch.cat([x, x]), x.shape[0] * 2

    net, batch, other = Net(), Dim("batch", min=2, max=8), Dim("other", max=6)
    sizes = {"x": {0: batch}, "y": {0: other}}
    program = export(net, (torch.randn(3, 4), torch.randn(5, 4)), dynamic_shapes=sizes)
    made = ht.exported(program, sizes={"batch": 8, "other": 6})
    for rows, columns in ((8, 6), (2, 1), (5, 6), (2, 1)):
        given = torch.randn(rows, 4), torch.randn(columns, 4)
        check(made(*given), net(*given))
    assert len(made._others) == 2 and made.module.entry.parameters[2].shape.dims == (8, 4)
    for rows, columns, text in ((9, 6, "is from 2 to 8, not 9"), (1, 6, "is from 2 to 8, not 1"), (3, 7, "to 6, not 7")):
        with pytest.raises(ValueError, match=text):
            made(torch.randn(rows, 4), torch.randn(columns, 4))
    with pytest.raises(ValueError, match="x has the size 5 in dimension 1, the program takes 4"):
        made(torch.randn(3, 5), torch.randn(3, 4))


def test_random_numbers_have_a_seed():
    class Noise(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.dropout(x, 0.5, True)

    program = exported(Noise(), torch.ones(1000))
    assert program.arguments[-1].kind == "seed"
    first, again, other = (program.run((torch.ones(1000),), seed=seed) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert set(first.tolist()) == {0.0, 2.0} and 400 < (first == 0).sum() < 600


def test_inputs_that_are_written_are_results():
    class Write(torch.nn.Module):
        def forward(self, x, y):
            x.mul_(2)
            return x + y

    program = exported(Write(), torch.ones(3), torch.ones(3))
    x = torch.ones(3)
    assert program(x, torch.ones(3)).tolist() == [3, 3, 3] and x.tolist() == [2, 2, 2]
    assert [(r.kind, r.target) for r in program.results] == [("mutated input", "x"), ("output", program.results[1].target)]


@torch.library.custom_op("hlokit_tests::scaled_sine", mutates_args=())
def scaled_sine(x: torch.Tensor, scale: float) -> torch.Tensor:
    return torch.sin(x) * scale


@scaled_sine.register_fake
def _(x, scale):
    return torch.empty_like(x)


library = torch.library.Library("hlokit_tests", "FRAGMENT")
library.define("opaque(Tensor x) -> Tensor")
library.impl("opaque", lambda x: x + 1, "CPU")
library.impl("opaque", lambda x: torch.empty_like(x), "Meta")


def test_custom_ops_are_recorded_by_their_definition():
    class Custom(torch.nn.Module):
        def forward(self, x):
            return scaled_sine(x, 2.5) + 1

    program = exported(Custom(), torch.randn(3))
    x = torch.randn(3)
    check(program(x), Custom()(x))
    assert program.module.find(opcode="sine")


def test_an_op_without_hlo_is_named_with_its_line():
    class Opaque(torch.nn.Module):
        def forward(self, x):
            return torch.ops.hlokit_tests.opaque(x) * 2

    program = export(Opaque(), (torch.ones(2),))
    with pytest.raises(RuntimeError, match=rf"hlokit_tests::opaque \(.*{HERE}:\d+\): the tracer has no such op"):
        ht.from_exported(program)
    op = torch.ops.hlokit_tests.opaque.default
    assert ht.exported(program, decompositions={op: lambda x: x + 1})(torch.ones(2)).tolist() == [4, 4]


@pytest.mark.parametrize("op", [lambda x, mask: x.nonzero().sum(), lambda x, mask: x[mask].sum(), lambda x, mask: x[x > 0].sum()])
def test_ops_that_read_values_are_refused(op):
    class Reads(torch.nn.Module):
        def forward(self, x, mask):
            return op(x, mask)

    program = export(Reads(), (torch.ones(3), torch.tensor([True, False, True])))
    with pytest.raises(RuntimeError, match="(index|nonzero).*it reads values"):
        ht.from_exported(program)


def test_programs_are_saved(tmp_path):
    model = captured_models.Mlp()
    program = exported(model, torch.randn(3, 8))
    x = torch.randn(3, 8)
    for name in ("m.hlo", "m.mlir", "m.pb"):
        program.save(tmp_path / name)
        read = hlokit.load(tmp_path / name)
        values = [p.detach() for p in model.parameters()]
        result = read.run_on(*values, x)
        check(torch.from_numpy(result[0] if isinstance(result, tuple) else result), model(x))


def test_programs_of_very_many_arguments(monkeypatch):
    monkeypatch.setenv("XLA_PARAMETER_WRAPPING_THREADSHOLD", "1")  # the tracer makes one tuple of them
    model = captured_models.Mlp()
    program = exported(model, torch.randn(3, 8))
    assert len(program.module.entry.parameters) == len(program.arguments)
    x = torch.randn(3, 8)
    check(program(x), model(x))


def test_what_is_no_program_is_refused():
    with pytest.raises(TypeError, match="ExportedProgram, found Linear"):
        ht.from_exported(torch.nn.Linear(2, 2))


# ---- control flow ----


class Cond(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        def low(a):
            return torch.cond(a.mean() < -1, lambda b: b * 2, lambda b: b * 3, (a,))

        y = torch.cond(x.sum() > 0, lambda a: self.layer(a).sin(), low, (x,))
        return y + torch.cond(y.sum() > 1, lambda a: a.cos(), lambda a: a * a, (y,))


@pytest.mark.parametrize("x", [torch.ones(2, 4), -torch.ones(2, 4), -3 * torch.ones(2, 4)])
def test_branches_are_conditionals(x):
    torch.manual_seed(0)
    model = Cond()
    program = exported(model, torch.ones(2, 4))
    check(program(x), model(x))
    found = program.module.find(opcode="conditional")
    assert len(found) == 3
    assert all(i.metadata.source_file.endswith(HERE) for i in found)
    values = hlokit.parse(program.stablehlo(), "m.mlir").run_on(*[p.detach() for p in model.parameters()], x)
    check([torch.from_numpy(v) for v in leaves(values)], model(x))


def test_loops_are_whiles():
    from torch._higher_order_ops.while_loop import while_loop

    class While(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x, limit):
            start = torch.zeros((), dtype=torch.int64)
            return while_loop(lambda i, y: (i < 5) & (y.sum() < limit), lambda i, y: (i + 1, self.layer(y).exp()), (start, x))

    torch.manual_seed(0)
    model = While()
    program = exported(model, torch.ones(2, 4), torch.tensor(100.0))
    assert len(program.module.find(opcode="while")) == 1
    for limit in (-5.0, 12.0, 1e9):
        check(program(torch.ones(2, 4), torch.tensor(limit)), model(torch.ones(2, 4), torch.tensor(limit)), 1e-3)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_are_whiles(reverse):
    from torch._higher_order_ops.scan import scan

    class Scan(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 4)

        def forward(self, x):
            def step(h, row):
                h = torch.tanh(self.layer(torch.cat([h, row], -1)))
                return h, h * 2

            return scan(step, torch.zeros(3, 4), x, dim=0, reverse=reverse)

    torch.manual_seed(0)
    model = Scan()
    x = torch.randn(6, 3, 4)
    program = exported(model, x)
    assert len(program.module.find(opcode="while")) == 1
    check(program(x), model(x))


def test_maps_are_whiles():
    from torch._higher_order_ops.map import map as map_rows

    class Map(torch.nn.Module):
        def forward(self, x, y):
            return map_rows(lambda a, b: a.sin() @ b, x, y)

    x, y = torch.randn(5, 3, 4), torch.randn(4, 2)
    program = exported(Map(), x, y)
    assert len(program.module.find(opcode="while")) == 1
    check(program(x, y), Map()(x, y))


def test_random_numbers_in_branches_are_refused():
    class Noise(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda a: a + torch.rand_like(a), lambda a: a.clone(), (x,))

    program = export(Noise(), (torch.ones(2),))
    with pytest.raises(RuntimeError, match="cond .*random numbers in a branch"):
        ht.from_exported(program)
