# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="hlokit")."""

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


def compiled(function, **options):
    return torch.compile(function, backend=ht.compile_backend, **options)


def close(a, b, tolerance=2e-6):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=tolerance)


def leaves(value):
    return torch.utils._pytree.tree_leaves(value)


def loss_of(value):
    return sum(v.float().pow(2).mean() for v in leaves(value))


@pytest.mark.parametrize("name", [name for name in captured_models.MODELS if name != "lstm"])
def test_models_train_as_in_torch(name):
    model, data = captured_models.make(name)
    other = copy.deepcopy(model)
    step = compiled(other, fullgraph=True)
    optimizers = [torch.optim.SGD(m.parameters(), 0.01) for m in (model, other)]
    for _ in range(2):
        losses = []
        for run, optimizer in zip((model, step), optimizers):
            optimizer.zero_grad()
            losses.append(loss_of(run(data)))
            losses[-1].backward()
            optimizer.step()
        close(*losses)
    for (key, a), b in zip(model.named_parameters(), other.parameters()):
        close(a, b, 1e-5)
    for a, b in zip(model.buffers(), other.buffers()):
        close(a, b, 1e-5)
    report = ht.compile_report()
    assert [(p.kind, p.calls) for p in report.programs] == [("forward", 2), ("backward", 2)]
    assert not report.breaks and not report.on_host


def test_the_backend_is_found_by_its_name():
    function = torch.compile(lambda x: x.sin() + 1, backend="hlokit")
    close(function(torch.ones(3)), torch.ones(3).sin() + 1)
    assert len(ht.compile_report().programs) == 1


def test_nothing_of_dynamo_is_imported_before_it_is_used():
    code = "import sys, hlokit.torch; assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_options():
    x = torch.randn(3)
    exact = compiled(lambda x: x.exp(), options={"engine": "exact", "num_threads": 1})
    close(exact(x), x.exp())
    nothing = compiled(lambda x: x.log(), options={"engine": "none"})
    assert nothing(x).shape == x.shape
    with pytest.raises(Exception, match="there is no engines"):
        compiled(lambda x: x.cos(), options={"engines": "exact"})(x)


def test_results_have_the_strides_of_torch():
    def function(x, y):
        z = x @ y
        return z.t(), z.permute(1, 0).contiguous(), (z + 1).unsqueeze(0).expand(2, -1, -1), x.t(), x.view(-1), z[:, 1]

    x, y = torch.randn(3, 4), torch.randn(4, 5)
    for a, b in zip(compiled(function)(x, y), function(x, y)):
        close(a, b)
        assert a.stride() == b.stride()


def test_arguments_need_not_be_dense():
    x = torch.randn(4, 6)
    function = lambda a, b, c: a * 2 + b + c
    given = x.t(), x[:, ::1].t() + 0, x.clone().t()[:, :4]
    close(compiled(function)(*given), function(*given))
    conjugate = torch.randn(3, dtype=torch.complex64).conj()
    close(compiled(lambda z: z * 2)(conjugate), conjugate * 2)


def test_parameters_are_saved_without_copies():
    model = torch.nn.Linear(4, 4)
    x = torch.randn(2, 4, requires_grad=True)
    compiled(model)(x).sum().backward()
    forward, backward = ht.compile_report().programs
    # The result, and nothing that is a parameter or a transposition of one.
    assert len(forward.module.entry.root.operands) == 1
    close(x.grad, torch.ones(2, 4) @ model.weight)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int64, torch.bool, torch.uint8])
def test_element_types(dtype):
    x = torch.tensor([0, 1, 1, 0]).to(dtype)
    function = lambda x: (torch.cat([x, x]), x == x.flip(0))
    for a, b in zip(compiled(function)(x), function(x)):
        assert a.dtype == b.dtype and torch.equal(a, b)


def test_written_arguments_and_attributes():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x):
            self.count += 1
            x.mul_(2)
            return x + self.count

    model, x = Counter(), torch.ones(2)
    step = compiled(model)
    assert step(x).tolist() == [3, 3] and x.tolist() == [2, 2] and step(x).tolist() == [6, 6]
    assert model.count.tolist() == [2, 2]
    assert ht.compile_report().copies == {1: 2}


def test_random_numbers_are_those_of_manual_seed():
    step = compiled(lambda x: torch.nn.functional.dropout(x, 0.5))
    x = torch.ones(1000)
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append((step(x), step(x)))
    assert torch.equal(drawn[0][0], drawn[1][0]) and torch.equal(drawn[0][1], drawn[1][1])
    assert not torch.equal(drawn[0][0], drawn[2][0]) and not torch.equal(drawn[0][0], drawn[0][1])
    assert 400 < (drawn[0][0] == 0).sum() < 600


def test_dropout_has_the_mask_of_its_forward():
    x = torch.ones(100, requires_grad=True)
    y = compiled(lambda x: torch.nn.functional.dropout(x, 0.5) * 3)(x)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_sizes_have_programs_of_their_own():
    step = compiled(lambda x, n: (x * n).sum(0) + x.shape[0], dynamic=True)
    for rows in (3, 5, 3, 7):
        x = torch.randn(rows, 4)
        close(step(x, 2), (x * 2).sum(0) + rows)
    report = ht.compile_report()
    assert len(report.graphs) == 1 and [p.calls for p in report.programs] == [2, 1, 1]


def test_gradients_of_dynamic_sizes():
    model = captured_models.Mlp()
    step = compiled(model, dynamic=True)
    for rows in (3, 5):
        x = torch.randn(rows, 8, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        step(x).pow(2).sum().backward()
        model(y).pow(2).sum().backward()
        close(x.grad, y.grad)


def test_ops_without_hlo_run_on_the_cpu():
    def function(x):
        y = x.sin()
        values = torch.linalg.eigvals(y)
        return values.abs().sort()[0], (values * 2).real.sum() + y.sum()

    x = torch.randn(4, 4)
    for a, b in zip(compiled(function, fullgraph=True)(x), function(x)):
        close(a, b, 1e-5)
    report = ht.compile_report()
    row, = report.on_host
    assert row.op == "aten::linalg_eig" and HERE in row.line
    assert [p.kind for p in report.programs] == ["inference part", "inference part"]
    assert "aten::linalg_eig on the CPU" in str(report)


def test_sizes_that_depend_on_values():
    torch._dynamo.config.capture_dynamic_output_shape_ops = True
    try:
        function = lambda x, mask: (x.nonzero() * 2, x[x > 0].sum(), x[mask] + 1, x.masked_select(mask))
        step = compiled(function, fullgraph=True)
        mask = torch.tensor([True, False, True])
        for x in (torch.tensor([1.0, 0, 2]), torch.tensor([0.0, -1, 3])):
            for a, b in zip(step(x, mask), function(x, mask)):
                close(a, b)
    finally:
        torch._dynamo.config.capture_dynamic_output_shape_ops = False


def test_breaks_and_recompilations_have_lines():
    def function(x, flag):
        y = x * 2
        if y.sum() > 0:  # a break
            y = y + 1
        return y if flag else -y

    step = compiled(function, dynamic=False)
    for x, flag in [(torch.ones(2), True), (torch.ones(2), False), (torch.ones(3), False)]:
        close(step(x, flag), function(x, flag))
    report = ht.compile_report()
    line = function.__code__.co_firstlineno + 2
    assert report.breaks and all(b.line.endswith(f"{HERE}:{line}") for b in report.breaks)
    assert any(g.ended_by for g in report.graphs)
    reasons = " ".join(r.reason for r in report.recompilations)
    assert "flag" in reasons and "size mismatch" in reasons
    assert all(HERE in r.line for r in report.recompilations)


def test_the_report_has_times():
    step = compiled(lambda x: (x @ x).sin())
    for _ in range(3):
        step(torch.ones(4, 4))
    report = ht.compile_report()
    program, = report.programs
    assert program.calls == 3 and program.overhead_us > 0 and 0 < program.run_seconds < program.seconds
    assert report.simulate("v4:2x2x1")[0] > 0
    assert str(report).startswith("1 graph, 1 program, 0 breaks, 0 recompilations\ngraph 1 [")
    assert ht.compile_report(reset=True).graphs and not ht.compile_report().graphs


def test_threads_call_a_program():
    import concurrent.futures

    step = compiled(lambda x: x * 2 + 1)
    step(torch.ones(3))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for i, value in enumerate(pool.map(lambda i: step(torch.full((3,), float(i))), range(16))):
            assert value.tolist() == [2.0 * i + 1] * 3


# ---- higher-order ops and transforms ----


def gradients(function, *args):
    args = [a.detach().clone().requires_grad_() for a in args]
    loss_of(function(*args)).backward()
    return [a.grad for a in args]


def test_branches_have_gradients():
    function = lambda x: torch.cond(x.sum() > 0, lambda a: a.sin(), lambda a: a * a, (x,))
    step = compiled(function, fullgraph=True)
    for x in (torch.ones(3), -torch.ones(3)):
        close(step(x), function(x))
        close(gradients(step, x), gradients(function, x))
    kinds = [p.module.find(opcode="conditional") for p in ht.compile_report().programs if p.kind != "inference"]
    assert len(kinds) == 2 and all(kinds) and not ht.compile_report().on_host


def test_scans_have_gradients():
    from torch._higher_order_ops.scan import scan

    function = lambda x, w: scan(lambda h, row: (torch.tanh(h @ w + row), h * 2), x[0] * 0, x, dim=0)
    step = compiled(function, fullgraph=True)
    x, w = torch.randn(5, 2, 3), torch.randn(3, 3)
    for a, b in zip(leaves(step(x, w)), leaves(function(x, w))):
        close(a, b)
    for a, b in zip(gradients(step, x, w), gradients(function, x, w)):
        close(a, b, 1e-5)
    assert not ht.compile_report().on_host


def test_loops():
    from torch._higher_order_ops.while_loop import while_loop

    function = lambda x: while_loop(lambda i, y: i < 4, lambda i, y: (i + 1, y.sin() + 1), (torch.zeros((), dtype=torch.int64), x))
    x = torch.randn(3)
    for a, b in zip(compiled(function, fullgraph=True)(x), function(x)):
        close(a, b)
    program, = ht.compile_report().programs
    assert len(program.module.find(opcode="while")) == 1


def test_flex_attention():
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def causal(b, h, i, j):
        return i >= j

    def distance(score, b, h, i, j):
        return score + 0.1 * (i - j)

    mask = create_block_mask(causal, None, None, 16, 16, device="cpu")
    function = lambda q, k, v: flex_attention(q, k, v, score_mod=distance, block_mask=mask)
    q, k, v = (torch.randn(1, 2, 16, 8) for _ in range(3))
    scores = q @ k.transpose(-1, -2) / 8**0.5
    places = torch.arange(16)
    scores = scores + 0.1 * (places[:, None] - places)
    expected = scores.masked_fill(places[:, None] < places, -torch.inf).softmax(-1) @ v
    close(compiled(function, fullgraph=True)(q, k, v), expected, 1e-5)
    assert not ht.compile_report().on_host


def test_transforms():
    w = torch.randn(3, 3)
    function = lambda x: torch.sin(x @ w).sum()
    x = torch.randn(4, 3)
    for transformed, given in [
        (torch.func.grad(function), x),
        (torch.func.vmap(torch.func.grad(function)), x),
        (torch.func.jacrev(lambda x: x @ w), x),
        (lambda x: torch.func.jvp(function, (x,), (x,))[1], x),
        (torch.func.hessian(function), x[0]),
    ]:
        close(compiled(transformed)(given), transformed(given), 1e-5)
    assert not ht.compile_report().on_host


def test_checkpoints():
    from torch.utils.checkpoint import checkpoint

    model = captured_models.Mlp()
    function = lambda x: checkpoint(model, x, use_reentrant=False)
    x = torch.randn(3, 8)
    close(gradients(compiled(function), x)[0], gradients(function, x)[0])


@torch.library.custom_op("hlokit_tests::tripled", mutates_args=())
def tripled(x: torch.Tensor) -> torch.Tensor:
    return x * 3


tripled.register_fake(lambda x: torch.empty_like(x))
tripled.register_autograd(lambda context, grad: grad * 3)


def test_custom_ops():
    function = lambda x: tripled(x).sin()
    x = torch.randn(3)
    close(compiled(function, fullgraph=True)(x), function(x))
    close(gradients(compiled(function), x), gradients(function, x))
    assert not ht.compile_report().on_host


def test_tensors_that_are_written_piece_by_piece():
    def pieces(x):
        y = torch.empty(3)
        for i in range(3):
            y[i] = x[i].sum()
        return y, torch.empty(0, 3)

    x = torch.randn(3, 4)
    results = torch.compile(pieces, backend="hlokit")(x)
    assert all(torch.allclose(a, b) for a, b in zip(results, pieces(x)))


A_TABLE = torch.arange(12.0).view(3, 4)


@pytest.mark.parametrize("function", [
    lambda x: x.t().as_strided((3,), (2,)) * 1,
    lambda x: (x * 2).t().as_strided((3,), (2,)) * 1,
    lambda x: (x * 2)[1:].as_strided((3,), (2,), 1) * 1,
    lambda x: (x.t() * 2).as_strided((3,), (2,)) * 1 + x.sum(),
    lambda x: x.as_strided((3,), (2,)) * 1,
])
@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[1:], lambda x: x[:, 1:]])
def test_ops_that_count_strides(function, view):
    results = []
    for run in (function, torch.compile(function, backend="hlokit")):
        x = view(A_TABLE.clone()).requires_grad_()
        y = run(x)
        y.pow(2).sum().backward()
        results.append((y.tolist(), x.grad.tolist()))
    assert results[0] == results[1]


def test_strides_of_a_transposed_argument():
    function = torch.compile(lambda x: x.as_strided((3,), (2,)) * 1, backend="hlokit")
    assert function(A_TABLE.t()).tolist() == [0, 2, 4]
    assert [row.op for row in ht.compile_report().on_host] == ["aten::as_strided"]


def test_programs_of_sizes_are_bounded():
    from hlokit.torch._export import Recent

    recent = Recent(2)
    for key in (1, 2, 1, 3):
        recent.get(key) or recent.put(key, f"of {key}")
    assert len(recent) == 2 and recent.get(2) is None and recent.get(1) == "of 1" and recent.get(3) == "of 3"


def test_steps_of_models_on_the_host_start_no_session():
    code = """
import torch, hlokit.torch
from hlokit.torch import _session
model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
_session.current = lambda: 1 / 0
model(torch.ones(1, 2)).sum().backward()
optimizer.step()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
