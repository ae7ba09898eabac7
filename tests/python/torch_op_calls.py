# SPDX-License-Identifier: Apache-2.0
"""Runs the calls of PyTorch's own table of ops on the CPU and through hlokit.torch: results and gradients agree.

    PYTHONPATH=build/release/python python3 tests/python/torch_op_calls.py [--ops=REGEX] [--samples=N] [--failures]

The calls are the sample inputs of torch.testing's op_db, of each op in f32 (where it has no f32, in the first type that
it has). What is left out is in EXCLUDED, with its reason. A call counts as recorded if none of its ops ran on the CPU.
"""

import argparse
import collections
import re
import sys
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch
from torch.utils._pytree import tree_flatten, tree_map

# Ops whose calls are not compared, by pattern of their name, with the reason.
EXCLUDED = [
    (r"bernoulli|multinomial|normal$|^normal|rand|dropout|cauchy|exponential|geometric|log_normal|uniform|rrelu"
     r"|fractional_max_pool|_scaled_dot_product_attention|_lowrank",
     "random: the numbers of generators are not torch's"),
    (r"^(new_)?empty|empty_like|empty_strided|^resize_", "new elements have no defined value"),
    (r"sparse", "sparse layouts"),
    (r"^jiterator", "compiles CUDA sources"),
    (r"^byte$", "negative floats as unsigned integers: undefined in C++"),
    (r"^chalf$", "complex numbers of f16, which the tracer does not have"),
    (r"^tensor_split$", "takes indices on the CPU"),
]

# Single calls that are not compared.
EXCLUDED_CALLS: List[Tuple[str, Callable[[Any], bool], str]] = [
    ("unique", lambda sample: sample.kwargs.get("sorted") is False, "no order is specified; the tracer's results are sorted"),
    ("unique", lambda sample: torch.__version__ < "2" and sample.kwargs.get("dim") in (-1, 2) and sample.input.dim() == 3,
     "before 2.0 torch sorts by another order of the remaining dimensions than since, and than the tracer"),
    ("nn.functional.scaled_dot_product_attention", lambda sample: sample.kwargs.get("dropout_p", 0) > 0, "random: dropout"),
    ("nn.functional.multi_head_attention_forward",
     lambda sample: sample.kwargs.get("training", True) and any(isinstance(a, float) and a > 0 for a in sample.args), "random: dropout"),
    ("as_strided_scatter", lambda sample: torch.__version__ < "2",
     "before 2.0 elements of torch's gradient differ from run to run"),
    ("aminmax", lambda sample: sample.input.dim() == 0 and sample.kwargs.get("keepdim", False),
     "torch gives a tensor without dimensions one"),
]


def op_db() -> List[Any]:
    """torch's table. Raises ImportError where there is no package `expecttest`, from which torch.testing derives classes."""
    from torch.testing._internal.common_methods_invocations import op_db

    return list(op_db)


def dtype_of(op: Any) -> Optional[torch.dtype]:
    supported = op.supported_dtypes("cpu")
    for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
        if dtype in supported:
            return dtype
    return None


def reason_to_leave_out(op: Any) -> Optional[str]:
    for pattern, reason in EXCLUDED:
        if re.search(pattern, op.name):
            return reason
    return None if dtype_of(op) is not None else "no type of elements that the tracer has"


def leaves(value: Any) -> List[torch.Tensor]:
    return [t for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor)]


def weights(tensor: torch.Tensor) -> torch.Tensor:
    """A gradient that differs by element, of the shape and type of the tensor, on the CPU."""
    count = tensor.numel()
    line = torch.cos(torch.arange(count, dtype=torch.float64) * 0.7 + 0.3).reshape(tuple(tensor.shape))
    return line.to(tensor.dtype)


Values = Tuple[List[torch.Tensor], List[Optional[torch.Tensor]]]


def wider(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in f64 or c128, if it has floats."""
    return tensor.to({torch.float32: torch.float64, torch.complex64: torch.complex128}.get(tensor.dtype, tensor.dtype), copy=True)


def run(op: Any, sample: Any, place: Any) -> Values:
    """Results and gradients of a call whose tensors `place` puts on a device, all on the CPU."""
    inputs: List[torch.Tensor] = []

    def put(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        moved = place(value.detach())
        if value.requires_grad:
            moved = moved.detach().requires_grad_()
            inputs.append(moved)
        return moved

    arguments = tree_map(put, (sample.input, tuple(sample.args), dict(sample.kwargs)))
    result = op(arguments[0], *arguments[1], **arguments[2])
    if sample.output_process_fn_grad is not None:
        shown = sample.output_process_fn_grad(result)
    else:
        shown = result
    results = leaves(shown)
    roots = [t for t in leaves(shown) if t.requires_grad]
    grads: List[Optional[torch.Tensor]] = []
    if roots and inputs:
        cotangents = [place(weights(t)) for t in roots]
        grads = list(torch.autograd.grad(roots, inputs, cotangents, allow_unused=True))
    return [t.detach().cpu() for t in results], [None if g is None else g.detach().cpu() for g in grads]


def judge(op: Any, sample: Any, found: Values, expected: Values, rtol: float, atol: float) -> None:
    """Raises AssertionError unless values are torch's, or at least as near to torch's values in f64."""
    try:
        compare(found[0], expected[0], "results", rtol, atol)
        compare(found[1], expected[1], "gradients", rtol * 10, atol * 10)
    except AssertionError:
        try:
            exact = run(op, sample, wider)
        except Exception:
            exact = None
        if exact is None:
            raise
        pairs = [*zip(found[0], expected[0], exact[0]), *zip(found[1], expected[1], exact[1])]
        for ours, theirs, truth in pairs:
            if ours is None or theirs is None or truth is None or not ours.dtype.is_floating_point and not ours.dtype.is_complex:
                raise
            if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
                raise
            error = (ours.to(truth.dtype) - truth).abs()
            allowed = (theirs.to(truth.dtype) - truth).abs().max() * 2 + atol + rtol * truth.abs() if ours.numel() else error
            if not bool((error <= allowed).all()):
                raise


def compare(ours: List[Any], theirs: List[Any], what: str, rtol: float, atol: float) -> None:
    if len(ours) != len(theirs):
        raise AssertionError(f"{len(ours)} {what}, expected {len(theirs)}")
    for k, (a, b) in enumerate(zip(ours, theirs)):
        if a is None or b is None:
            # A gradient that is not there is zero.
            present = a if a is not None else b
            if present is not None and present.abs().max() > atol:
                raise AssertionError(f"{what} {k}: one is absent, the other not zero")
            continue
        if a.dtype != b.dtype or a.shape != b.shape:
            raise AssertionError(f"{what} {k}: {a.dtype} {tuple(a.shape)}, expected {b.dtype} {tuple(b.shape)}")
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)


class Outcome:
    def __init__(self) -> None:
        self.recorded = self.on_cpu = self.rejected = 0
        self.failures: List[Tuple[str, str]] = []
        self.cpu_ops: Dict[Tuple[str, str], int] = collections.Counter()
        self.left_out: Dict[str, List[str]] = collections.defaultdict(list)


def samples_of(op: Any, dtype: torch.dtype, limit: int) -> Iterator[Any]:
    differentiable = dtype in op.supported_backward_dtypes("cpu") and (op.supports_autograd)
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=differentiable)):
        if number >= limit:
            return
        yield sample


def check(pattern: str = "", limit: int = 1000, rtol: float = 1e-4, atol: float = 1e-5, verbose: bool = False) -> Outcome:
    import hlokit.torch as ht
    from hlokit.torch import _fallback

    device = ht.device()
    outcome = Outcome()
    for op in op_db():
        if not re.search(pattern, op.name):
            continue
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        reason = reason_to_leave_out(op)
        if reason is not None:
            outcome.left_out[reason].append(name)
            continue
        dtype = dtype_of(op)
        assert dtype is not None
        torch.manual_seed(1)
        ht.mark_step()
        for number, sample in enumerate(samples_of(op, dtype, limit)):
            why = next((w for n, applies, w in EXCLUDED_CALLS if n == op.name and applies(sample)), None)
            if why is not None:
                outcome.left_out[why].append(f"{name} #{number}")
                continue
            try:
                expected = run(op, sample, lambda t: t.clone())
            except Exception:
                outcome.rejected += 1
                continue
            before = sum(_fallback.fallbacks.values())
            known = dict(_fallback.fallbacks)
            try:
                found = run(op, sample, lambda t: t.to(device))
                judge(op, sample, found, expected, rtol, atol)
            except Exception as error:  # noqa: BLE001
                outcome.failures.append((f"{name} #{number}", f"{type(error).__name__}: {error}".split("\n\n")[0][:300]))
                if verbose:
                    print(*outcome.failures[-1], flush=True)
                continue
            if sum(_fallback.fallbacks.values()) == before:
                outcome.recorded += 1
            else:
                outcome.on_cpu += 1
                for key, count in _fallback.fallbacks.items():
                    if count != known.get(key, 0):
                        outcome.cpu_ops[key] += 1
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default="", help="only ops whose name matches")
    parser.add_argument("--samples", type=int, default=1000, help="most calls of each op")
    parser.add_argument("--minimum", type=int, default=0, help="calls that must be recorded and agree")
    parser.add_argument("--failures", action="store_true", help="print each failure as it happens")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    outcome = check(options.ops, options.samples, verbose=options.failures)
    for reason, names in sorted(outcome.left_out.items()):
        shown = ", ".join(names[:60]) + (f" and {len(names) - 60} more" if len(names) > 60 else "")
        print(f"left out, {reason}: {shown}")
    for (name, reason), count in sorted(outcome.cpu_ops.items(), key=lambda item: -item[1]):
        print(f"on the CPU, {count} calls: {name}: {reason}")
    for name, error in outcome.failures:
        print(f"FAILED {name}: {error}")
    print(f"{len(op_db())} ops; {outcome.recorded} calls recorded and equal, {outcome.on_cpu} equal with an op on the CPU, "
          f"{len(outcome.failures)} failed, {outcome.rejected} that torch rejects")
    return 1 if outcome.failures or outcome.recorded < options.minimum else 0


if __name__ == "__main__":
    sys.exit(main())
