# SPDX-License-Identifier: Apache-2.0
"""Compares gradients of PyTorch's ops and modules through hlokit.torch with those on the CPU.

    PYTHONPATH=build/release/python VENV/bin/python tests/frameworks/torch_gradients.py [--only=REGEX] [--samples=N]

Calls are the first sample inputs of each op of torch.testing's op_db that has a derivative, and the first inputs of each
module of its module_db, in f64 (f32 where an op has no f64). Results, gradients and, where PyTorch has them, gradients of
gradients must agree. Random ops are in calls of their own, with properties of their gradients that do not depend on the
numbers drawn. Where PyTorch's results are NaN only the results are compared: a derivative there has no defined value. A call
that raises is a failure unless torch_gradients.tsv has a row for it; a wrong value always is one, and so is a row whose calls
all work.
"""

import argparse
import copy
import pathlib
import re
import sys
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.utils._pytree import tree_map

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
from torch_op_calls import EXCLUDED_CALLS, leaves, op_db, reason_to_leave_out, weights  # noqa: E402
from torch_op_worker import INACCURATE  # noqa: E402

# Relative tolerances of results, gradients and gradients of gradients; a hundredth of the largest value is added.
LIMITS = {torch.float64: (1e-6, 1e-5, 1e-3), torch.float32: (1e-4, 1e-3, 1e-2)}

Tensors = List[Optional[torch.Tensor]]


class Raising(NamedTuple):
    """Calls that are known to raise: a row of torch_gradients.tsv."""

    name: str
    error: str  # a regular expression
    versions: str  # of PyTorch, a regular expression
    reason: str


def known() -> List[Raising]:
    path = pathlib.Path(__file__).with_suffix(".tsv")
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [row for row in (Raising(*row) for row in rows) if re.match(row.versions, torch.__version__)]


class Differentiated(NamedTuple):
    results: Tensors
    gradients: Tensors
    second: Tensors


def differentiate(call: Callable[[], Any], inputs: List[torch.Tensor], twice: bool) -> Differentiated:
    """Results of a call and its gradients by the inputs, all on the CPU."""
    result = leaves(call())
    roots = [t for t in result if t.requires_grad]
    first: Tensors = []
    second: Tensors = []
    if roots and inputs:
        cotangents = [weights(t).to(t.device) for t in roots]
        first = list(torch.autograd.grad(roots, inputs, cotangents, allow_unused=True, create_graph=twice))
        again = [g for g in first if g is not None and g.requires_grad]
        if twice and again:
            cotangents = [weights(t).to(t.device) for t in again]
            second = list(torch.autograd.grad(again, inputs, cotangents, allow_unused=True))

    def home(tensors: Any) -> Tensors:
        return [None if t is None else t.detach().cpu() for t in tensors]

    return Differentiated(home(result), home(first), home(second))


def difference(ours: Tensors, theirs: Tensors, limit: float) -> str:
    """What is wrong, or nothing."""
    if len(ours) != len(theirs):
        return f"{len(ours)} values, expected {len(theirs)}"
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if a is None and b is None:
            continue
        a = torch.zeros_like(b) if a is None else a  # a gradient that is not there is zero
        b = torch.zeros_like(a) if b is None else b
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"value {number}: {a.dtype} {tuple(a.shape)}, expected {b.dtype} {tuple(b.shape)}"
        if a.numel() == 0 or a.is_sparse or b.is_sparse:
            continue
        size = b[torch.isfinite(b)].abs().max().item() if b.dtype.is_floating_point and torch.isfinite(b).any() else 1.0
        try:
            torch.testing.assert_close(a, b, rtol=limit, atol=limit / 100 * max(size, 1.0), equal_nan=True)
        except AssertionError as error:
            return f"value {number}: " + " ".join(str(error).split())[:200]
    return ""


class Outcome:
    def __init__(self) -> None:
        self.passed = self.rejected = self.undefined = 0
        self.failed: List[Tuple[str, str]] = []
        self.raised: Dict[Raising, int] = {row: 0 for row in known()}

    def error(self, name: str, error: BaseException) -> None:
        text = f"{type(error).__name__}: {error}"
        for row in self.raised:
            if re.fullmatch(row.name, name.split(" ")[0]) and re.search(row.error, text):
                self.raised[row] += 1
                return
        self.failed.append((name, "raises " + " ".join(text.split())[:300]))


def compare(
    outcome: Outcome, name: str, make: Callable[[Callable[[torch.Tensor], torch.Tensor]], Any], device: Any, twice: bool,
    dtype: torch.dtype
) -> None:
    """make: given a function that places a tensor, returns a call and its inputs."""
    try:
        expected = differentiate(*make(lambda t: t.clone()), twice)
    except Exception:
        twice = False
        try:
            expected = differentiate(*make(lambda t: t.clone()), twice)
        except Exception:
            outcome.rejected += 1
            return
    try:
        found = differentiate(*make(lambda t: t.to(device)), twice)
    except Exception as error:  # noqa: BLE001
        outcome.error(name, error)
        return
    checks = list(zip(("results", "gradients", "second"), LIMITS[dtype]))
    if any(t is not None and bool(torch.isnan(t.real).any()) for t in expected.results):
        outcome.undefined += 1
        del checks[1:]
    for what, limit in checks:
        problem = difference(getattr(found, what), getattr(expected, what), limit)
        if problem:
            outcome.failed.append((name, f"{what}: {problem}"))
            return
    outcome.passed += 1


def check_ops(outcome: Outcome, pattern: str, samples: int, device: Any) -> None:
    import hlokit.torch as ht

    for op in op_db():
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        if not re.search(pattern, name) or not op.supports_autograd or reason_to_leave_out(op) is not None:
            continue
        supported = op.supported_backward_dtypes("cpu")
        dtype = next((t for t in (torch.float64, torch.float32, torch.complex128) if t in supported), None)
        if dtype is None:
            continue
        short = dtype == torch.float32 or name in INACCURATE
        limits_of = torch.float32 if short else torch.float64  # complex128 has parts of f64
        ht.mark_step()
        torch.manual_seed(1)
        for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=True)):
            if number >= samples:
                break
            if any(n == op.name and applies(sample) for n, applies, _ in EXCLUDED_CALLS):
                continue

            def make(place: Callable[[torch.Tensor], torch.Tensor]) -> Any:
                inputs: List[torch.Tensor] = []

                def put(value: Any) -> Any:
                    if not isinstance(value, torch.Tensor):
                        return value
                    moved = place(value.detach())
                    if value.requires_grad:
                        moved = moved.detach().requires_grad_()
                        inputs.append(moved)
                    return moved

                first, args, kwargs = tree_map(put, (sample.input, tuple(sample.args), dict(sample.kwargs)))
                shown = sample.output_process_fn_grad

                def call() -> Any:
                    result = op(first, *args, **kwargs)
                    return result if shown is None else shown(result)

                return call, inputs

            compare(outcome, f"{name} #{number}", make, device, op.supports_gradgrad, limits_of)


def module_calls(samples: int) -> Iterator[Tuple[str, Any, Any]]:
    """Names, modules and their arguments on the CPU, in f64."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        for training in (True, False):
            torch.manual_seed(1)
            inputs = info.module_inputs_func(info, device="cpu", dtype=torch.float64, requires_grad=True, training=training)
            for number, given in enumerate(inputs):
                if number >= samples or given.forward_input is None:
                    break
                torch.manual_seed(2)
                try:
                    module = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs).to(torch.float64)
                except Exception:  # needs a device or a type that is not there
                    continue
                module.train(training)
                yield f"{info.name}.{'train' if training else 'eval'} #{number}", module, given.forward_input


def check_modules(outcome: Outcome, pattern: str, samples: int, device: Any) -> None:
    import hlokit.torch as ht

    for name, module, given in module_calls(samples):
        if not re.search(pattern, name) or any(isinstance(m, torch.nn.modules.batchnorm._LazyNormBase) for m in module.modules()):
            continue
        if any(re.search("Dropout|RReLU|FractionalMaxPool|Lazy", type(m).__name__) and getattr(m, "p", 1) != 0 for m in module.modules()):
            continue
        ht.mark_step()

        def make(place: Callable[[torch.Tensor], torch.Tensor]) -> Any:
            placed = copy.deepcopy(module)._apply(place)
            inputs = [p for p in placed.parameters() if p.requires_grad]

            def put(value: Any) -> Any:
                if not isinstance(value, torch.Tensor):
                    return value
                moved = place(value.detach())
                if value.requires_grad:
                    moved = moved.detach().requires_grad_()
                    inputs.append(moved)
                return moved

            args, kwargs = tree_map(put, (tuple(given.args), dict(given.kwargs)))
            return (lambda: placed(*args, **kwargs)), inputs

        compare(outcome, name, make, device, True, torch.float64)


def homogeneous() -> Dict[str, Tuple[Callable[[torch.Tensor], torch.Tensor], Tuple[int, ...]]]:
    """Random functions f with f(a x) = a f(x) for a > 0: by Euler's theorem the gradient times x is the result."""
    F = torch.nn.functional
    query, key = torch.sin(torch.arange(48.0, dtype=torch.float64)).reshape(2, 1, 2, 4, 3).unbind()
    return {
        "dropout": (lambda x: F.dropout(x, 0.4), (40, 3)),
        "dropout1d": (lambda x: F.dropout1d(x, 0.4), (4, 9, 3)),
        "dropout2d": (lambda x: F.dropout2d(x, 0.4), (4, 9, 3, 2)),
        "dropout3d": (lambda x: F.dropout3d(x, 0.4), (4, 9, 3, 2, 2)),
        "native_dropout": (lambda x: torch.native_dropout(x, 0.4, True)[0], (40, 3)),
        "rrelu": (lambda x: F.rrelu(x, training=True), (40, 3)),
        "fractional_max_pool2d": (lambda x: F.fractional_max_pool2d(x, 2, output_size=3), (2, 3, 7, 7)),
        "fractional_max_pool3d": (lambda x: F.fractional_max_pool3d(x, 2, output_size=2), (1, 2, 5, 5, 5)),
        "scaled_dot_product_attention": (
            lambda x: F.scaled_dot_product_attention(query.to(x.device), key.to(x.device), x, dropout_p=0.3), (1, 2, 4, 3)),
        "normal": (lambda x: torch.normal(0.0, 1.0, x.shape, dtype=x.dtype, device=x.device) * x, (40,)),
    }


def check_random(outcome: Outcome, pattern: str, device: Any) -> None:
    for name, (function, sizes) in homogeneous().items():
        if not re.search(pattern, name) or (name.startswith("dropout1d") and not hasattr(torch.nn.functional, "dropout1d")):
            continue
        count = 1
        for size in sizes:
            count *= size
        x = torch.sin(torch.arange(1.0, count + 1, dtype=torch.float64)).reshape(sizes).to(device).requires_grad_()
        try:
            result = function(x)
            weight = weights(result).to(device)
            gradient, = torch.autograd.grad(result, x, weight)
            found, expected = (gradient * x).sum().item(), (result * weight).sum().item()
        except Exception as error:  # noqa: BLE001
            outcome.error(f"random.{name}", error)
            continue
        if abs(found - expected) > 1e-9 * max(abs(expected), 1) or gradient.abs().max().item() == 0:
            outcome.failed.append((f"random.{name}", f"the gradient times x is {found}, expected {expected}"))
        else:
            outcome.passed += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only ops and modules whose name matches")
    parser.add_argument("--samples", type=int, default=3, help="most calls of each op and module")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import hlokit.torch as ht

    torch.set_num_threads(1)
    outcome, start = Outcome(), time.process_time()
    check_ops(outcome, options.only, options.samples, ht.device())
    check_modules(outcome, options.only, options.samples, ht.device())
    check_random(outcome, options.only, ht.device())
    for row, count in outcome.raised.items():
        if count:
            print(f"raises, {count} calls: {row.name}: {row.reason}")
        elif not options.only:
            outcome.failed.append((row.name, "its row in torch_gradients.tsv is out of date: no call raises this"))
    for name, problem in outcome.failed:
        print(f"FAILED {name}: {problem}")
    print(f"torch {torch.__version__}: {sum(outcome.raised.values())} calls raise as listed, {outcome.rejected} that torch rejects, "
          f"{outcome.undefined} without gradients as results are NaN; "
          f"{time.process_time() - start:.0f} s of the processor")
    print(f"{outcome.passed} passed, {len(outcome.failed)} failed")
    return 1 if outcome.failed or outcome.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
