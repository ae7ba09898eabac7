# SPDX-License-Identifier: Apache-2.0
"""Runs all sample calls of ops of PyTorch's op_db in one type of elements, on the CPU and through hlokit.torch.

A worker of torch_op_table.py: reads lines `OP TYPE SAMPLES` (a number of op_db, a name of torch, the most calls), and prints
for each a line of JSON with what its calls did.
"""

import collections
import json
import sys
import time
import warnings
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

import torch
from torch.utils._pytree import tree_flatten, tree_map

# Types whose gradients are compared, of the ops that have derivatives in them.
DIFFERENTIATED = (torch.float32, torch.float64, torch.complex64)

# Relative and absolute tolerances of results; ten times as much for gradients.
TOLERANCES: Dict[torch.dtype, Tuple[float, float]] = {
    torch.float64: (1e-7, 1e-9),
    torch.complex128: (1e-7, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.complex64: (1e-4, 1e-5),
    torch.float16: (4e-3, 1e-3),
    torch.bfloat16: (3e-2, 1e-2),
    torch.complex32: (4e-3, 1e-3),
}

_WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}

# Ops whose results torch itself has with larger errors than their types': relative and absolute tolerances for all types.
INACCURATE = {
    **dict.fromkeys(("special.bessel_j0", "special.bessel_j1", "special.bessel_y0", "special.bessel_y1", "special.airy_ai"), (1e-4, 1e-6)),
    **dict.fromkeys(("igamma", "igammac"), (1e-6, 1e-7)),
}

# Ops of which only sizes and types are compared: pattern of names, reason.
ONLY_SHAPES = {
    "the numbers of generators are not torch's": (
        "bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal", "normal.in_place",
        "normal.number_mean", "nn.functional.alpha_dropout", "nn.functional.dropout", "nn.functional.dropout2d",
        "nn.functional.dropout3d", "nn.functional.feature_alpha_dropout.with_train", "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
        "uniform", "torch.ops.aten._flash_attention_forward", "nn.functional.rrelu", "pca_lowrank", "svd_lowrank",
        "nn.functional.dropout1d",
    ),
    "new elements have no defined value": (
        "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_",
    ),
}
# Ops that return statistics for their derivatives beside their result: of 16-bit floats these are in f32, as torch has them on
# GPUs.
STATISTICS = ("native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update", "native_group_norm", "native_layer_norm")
# Ops whose second result says where the first was found: which of equal elements is not specified.
PLACES = ("kthvalue", "topk", "sort")
# Ops whose results share the memory of the argument on the CPU, although torch does not declare them views.
NOT_VIEWS = ("unsafe_chunk", "unsafe_split")
# Ops whose arguments other than the first torch wants on the CPU.
ON_CPU = ("tensor_split",)

_SHAPES_OF = {name: reason for reason, names in ONLY_SHAPES.items() for name in names}


def name_of(op: Any) -> str:
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def only_shapes(op: Any, sample: Any) -> bool:
    """Whether the values of a call are not defined, or random."""
    if name_of(op) in _SHAPES_OF:
        return True
    if op.name == "nn.functional.scaled_dot_product_attention":
        return bool(sample.kwargs.get("dropout_p", 0) > 0)
    if op.name == "nn.functional.multi_head_attention_forward":
        return bool(sample.kwargs.get("training", True)) and any(isinstance(a, float) and a > 0 for a in sample.args)
    return False


def undefined(op: Any, dtype: torch.dtype, sample: Any) -> str:
    """Why a call has no result to compare with."""
    if op.name == "byte" and dtype.is_floating_point:
        return "negative floats as unsigned integers: undefined in C++"
    if op.name == "polygamma" and dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        return "torch has large numbers at the poles, which are infinite"
    if op.name in ("unique", "unique_consecutive") and sample.kwargs.get("sorted") is False:
        return "no order is specified"
    return ""


class Call(NamedTuple):
    results: List[torch.Tensor]
    gradients: List[Optional[torch.Tensor]]
    written: List[torch.Tensor]  # the arguments after the results were written, where these are views


def leaves(value: Any) -> List[torch.Tensor]:
    return [t for t in tree_flatten(value)[0] if isinstance(t, torch.Tensor)]


def weights(tensor: torch.Tensor) -> torch.Tensor:
    """Values that differ by element, of the shape and type of a tensor, on the CPU."""
    line = torch.cos(torch.arange(tensor.numel(), dtype=torch.float64) * 0.7 + 0.3).reshape(tuple(tensor.shape))
    return line.to(tensor.dtype) if tensor.dtype.is_floating_point or tensor.dtype.is_complex else (line * 5 + 5).to(tensor.dtype)


def shares(result: torch.Tensor, arguments: List[torch.Tensor]) -> bool:
    """Whether a result on the CPU is a view of an argument, with elements at different places."""
    if result.layout != torch.strided or result.numel() == 0 or result.is_conj() or result.is_neg():
        return False
    last = result.storage_offset() + sum((size - 1) * stride for size, stride in zip(result.shape, result.stride()))
    places = torch.arange(last + 1).as_strided(result.shape, result.stride(), result.storage_offset())
    if places.unique().numel() != places.numel():
        return False
    place = result.untyped_storage().data_ptr()
    return any(t.layout == torch.strided and t.untyped_storage().data_ptr() == place for t in arguments)


class Runner:
    def __init__(self, op: Any, sample: Any):
        self.op = op
        self.sample = sample
        self.views: List[bool] = []  # which results of the CPU are views

    def call(self, place: Callable[[torch.Tensor], torch.Tensor], device: Any, differentiate: bool) -> Tuple[Any, Any, Any]:
        """Results, inputs with gradients, and all tensors among the arguments."""
        inputs: List[torch.Tensor] = []
        everything: List[torch.Tensor] = []

        def put(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            moved = place(value.detach())
            if value.requires_grad and differentiate:
                moved = moved.detach().requires_grad_()
                inputs.append(moved)
            everything.append(moved)
            return moved

        sample = self.sample
        args, kwargs = tuple(sample.args), dict(sample.kwargs)
        first = tree_map(put, sample.input)
        if self.op.name not in ON_CPU:
            args, kwargs = tree_map(put, (args, kwargs))
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cpu":
            kwargs["device"] = device
        return self.op(first, *args, **kwargs), inputs, everything

    def run(self, place: Callable[[torch.Tensor], torch.Tensor], device: Any, differentiate: bool, finish: Callable[[], None]) -> Call:
        result, inputs, everything = self.call(place, device, differentiate)
        shown = result if self.sample.output_process_fn_grad is None else self.sample.output_process_fn_grad(result)
        results = leaves(shown)
        roots = [t for t in results if t.requires_grad] if differentiate else []
        grads: List[Optional[torch.Tensor]] = []
        if roots and inputs:
            grads = list(torch.autograd.grad(roots, inputs, [weights(t).to(t.device) for t in roots], allow_unused=True))
        finish()
        kept = [home(t) for t in results]
        if self.op.name in STATISTICS:
            kept[1:] = [t.to(kept[0].dtype) if t.dtype == torch.float32 else t for t in kept[1:]]
        if self.op.name in PLACES and not self.sample.kwargs.get("stable"):
            del kept[1:]
        if self.op.name == "argsort" and not self.sample.kwargs.get("stable"):
            kept = [self.chosen(home(everything[0]), kept[0])]
        gradients = [None if g is None else home(g) for g in grads]
        return Call(kept, gradients, self.write(leaves(result), everything, device.type == "cpu"))

    def chosen(self, values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
        """The values in the order that argsort gives, which for equal ones is not specified."""
        dim = self.sample.kwargs.get("dim", next((a for a in self.sample.args if type(a) is int), -1))
        return torch.take_along_dim(values, order, dim) if values.dim() else values

    def write(self, results: List[torch.Tensor], everything: List[torch.Tensor], on_cpu: bool) -> List[torch.Tensor]:
        """Writes to the first result that is a view; returns the arguments."""
        if on_cpu:
            self.views = [shares(t, everything) for t in results]
        if True not in self.views or len(results) != len(self.views) or self.op.name in NOT_VIEWS:
            return []
        with torch.no_grad():
            target = results[self.views.index(True)].detach()
            target.copy_(weights(target).to(target.device))
            return [home(t) for t in everything]


def home(tensor: torch.Tensor) -> torch.Tensor:
    """A copy on the CPU."""
    value = tensor.detach()
    value = value.cpu() if value.device.type != "cpu" else value.clone()
    if value.layout == torch.strided:
        value = value.resolve_conj().resolve_neg()
    return value


def contiguous(tensor: torch.Tensor) -> torch.Tensor:
    """A copy whose elements lie in order, as those of lazy tensors do."""
    if tensor.layout != torch.strided:
        return tensor.clone()
    return tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)


def wider(tensor: torch.Tensor) -> torch.Tensor:
    copy = contiguous(tensor)
    return copy.to(_WIDER.get(tensor.dtype, tensor.dtype))


def dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor if tensor.layout == torch.strided else tensor.to_dense()


def difference(ours: List[Any], theirs: List[Any], truth: Optional[List[Any]], what: str, scale: float, values: bool) -> str:
    """How results differ from the CPU's, by more than these do from results of a wider type; nothing if they do not."""
    if len(ours) != len(theirs):
        return f"{len(ours)} {what}, expected {len(theirs)}"
    for number, (a, b) in enumerate(zip(ours, theirs)):
        if a is None and b is None:
            continue
        a = torch.zeros_like(b) if a is None else a  # a gradient that is not there is zero
        b = torch.zeros_like(a) if b is None else b
        if a.dtype != b.dtype or a.shape != b.shape:
            return f"{what} {number}: {a.dtype} {tuple(a.shape)}, expected {b.dtype} {tuple(b.shape)}"
        if not values or a.numel() == 0:
            continue
        a, b = dense(a), dense(b)
        problem = unequal(a, b, scale)
        if not problem:
            continue
        exact = truth[number] if truth is not None and len(truth) == len(theirs) else None
        if exact is None or exact.shape != b.shape or not near(a, b, dense(exact), scale):
            return f"{what} {number}: {problem}"
    return ""


def unequal(a: torch.Tensor, b: torch.Tensor, scale: float) -> str:
    if a.dtype not in TOLERANCES:
        if a.element_size() == 1 and a.dtype.is_floating_point:  # f8
            a, b = a.float(), b.float()
        elif a.dtype in (torch.uint16, torch.uint32, torch.uint64):
            signed = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}[a.dtype]
            a, b = a.view(signed), b.view(signed)
        rtol = atol = 0.0
    else:
        rtol, atol = (t * scale for t in TOLERANCES[a.dtype])
    if a.dtype == torch.complex32:
        a, b = a.to(torch.complex64), b.to(torch.complex64)
    try:
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, equal_nan=True, check_stride=False)
    except AssertionError as error:
        return " ".join(str(error).split())[:300]
    return ""


def near(a: torch.Tensor, b: torch.Tensor, exact: torch.Tensor, scale: float) -> bool:
    """Whether all values are as near to the exact ones as the CPU's, within a factor of two and the tolerance."""
    if b.dtype not in TOLERANCES:
        return False
    rtol, atol = (t * scale for t in TOLERANCES[b.dtype])
    narrow = b.dtype
    a, b = a.to(exact.dtype), b.to(exact.dtype)
    same = (a == b) | (torch.isnan(a) & torch.isnan(b)) if not a.is_complex() else a == b
    same |= a == exact.to(narrow).to(exact.dtype)  # out of range
    error, theirs = (a - exact).abs(), (b - exact).abs()
    finite = theirs[torch.isfinite(theirs)]
    most = finite.max() * 2 if finite.numel() else 0.0
    allowed = most + atol + rtol * exact.abs()
    return bool((same | (error <= allowed)).all())


class Record:
    """What the calls of an op in one type did."""

    def __init__(self) -> None:
        self.counts: Dict[str, int] = collections.Counter()
        self.cpu: Dict[str, int] = collections.Counter()  # "aten::op<tab>reason" -> calls
        self.problems: List[Tuple[str, str]] = []  # kind, text of the first few
        self.kinds: Dict[str, int] = collections.Counter()

    def problem(self, kind: str, text: str) -> None:
        self.counts[kind] += 1
        text = " ".join(text.split())[:400]
        shown = text.split(": ", 1)[-1][:60]
        self.kinds[kind + shown] += 1
        if self.kinds[kind + shown] <= 2 and len(self.problems) < 12:
            self.problems.append((kind, text))


class Fallbacks:
    """Ops that run on the CPU, as the session counts them, with the reasons that the package has."""

    def __init__(self, ht: Any):
        self.ht = ht
        self.reasons: Dict[Any, int] = {}
        self.counters: Dict[str, int] = {}

    def read(self) -> Dict[str, int]:
        names = self.ht.metrics.executed_fallback_ops()
        return {name: int(self.ht.metrics.counter_value(name) or 0) for name in names}

    def start(self) -> None:
        self.reasons, self.counters = self.ht.fallbacks(), self.read()

    def since(self) -> List[str]:
        found = [f"{name}\t{why}" for (name, why), count in self.ht.fallbacks().items() if count != self.reasons.get((name, why), 0)]
        named = {text.split("\t")[0].split(".")[0] for text in found}
        for name, count in self.read().items():
            if count != self.counters.get(name, 0) and name not in named:
                found.append(f"{name}\tits result has as many elements as values say")
        return found


def samples_of(op: Any, dtype: torch.dtype, limit: int) -> Iterator[Any]:
    differentiable = op.supports_autograd and dtype in DIFFERENTIATED and dtype in op.supported_backward_dtypes("cpu")
    for number, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=differentiable)):
        if number >= limit:
            return
        yield sample


def check(op: Any, dtype: torch.dtype, limit: int, ht: Any) -> Record:
    record = Record()
    device = ht.device()
    fallbacks = Fallbacks(ht)
    differentiate = op.supports_autograd and dtype in DIFFERENTIATED and dtype in op.supported_backward_dtypes("cpu")
    torch.manual_seed(1)
    ht.mark_step()
    samples = samples_of(op, dtype, limit)
    number = -1
    while True:
        number += 1
        try:
            sample = next(samples)
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001
            record.problem("no samples", f"#{number}: {type(error).__name__}: {error}")
            break
        if undefined(op, dtype, sample):
            record.counts["undefined"] += 1
            continue
        runner = Runner(op, sample)
        try:
            expected = runner.run(contiguous, torch.device("cpu"), differentiate, lambda: None)
        except Exception:  # noqa: BLE001
            record.counts["rejected"] += 1
            continue
        fallbacks.start()
        try:
            found = runner.run(lambda t: t.to(device), device, differentiate, ht.mark_step)
        except Exception as error:  # noqa: BLE001
            record.problem("raises", f"#{number}: {type(error).__name__}: {error}")
            continue
        problem = judge(runner, found, expected, not only_shapes(op, sample), differentiate)
        if problem:
            record.problem("wrong", f"#{number}: {problem}")
        on_cpu = fallbacks.since()
        record.cpu.update(on_cpu)
        if not problem:
            record.counts["cpu" if on_cpu else "recorded"] += 1
    return record


def judge(runner: Runner, found: Call, expected: Call, values: bool, differentiate: bool) -> str:
    def compare(truth: Optional[Call]) -> str:
        problem = difference(found.results, expected.results, truth and truth.results, "result", 1, values)
        problem = problem or difference(found.gradients, expected.gradients, truth and truth.gradients, "gradient", 10, values)
        return problem or difference(found.written, expected.written, None, "argument after a write to the result", 1, values)

    problem = compare(None)
    if not problem:
        return ""
    if name_of(runner.op) in INACCURATE:
        rtol, atol = INACCURATE[name_of(runner.op)]
        if all(a.dtype == b.dtype and torch.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True)
               for a, b in zip(found.results, expected.results)):
            return ""
    try:
        views = runner.views
        truth = runner.run(wider, torch.device("cpu"), differentiate, lambda: None)
        runner.views = views
    except Exception:  # noqa: BLE001
        return problem
    return compare(truth)


def main() -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    from torch.testing._internal.common_methods_invocations import op_db

    import hlokit.torch as ht

    for line in sys.stdin:
        index, dtype, limit = line.split()
        start = time.time()
        record = check(op_db[int(index)], getattr(torch, dtype), int(limit), ht)
        sys.stdout.write("\n@" + json.dumps({
            "op": name_of(op_db[int(index)]), "dtype": dtype, "counts": record.counts, "cpu": record.cpu,
            "problems": record.problems, "seconds": round(time.time() - start, 2)}) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
