#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Records calls of aten ops with their results and gradients in PyTorch, for tools/torch_ops.py to replay.

  record.py [--family NAME]... [--only REGEX] [--check]

Requires torch (recorded with 1.13 on the CPU). Each calls_FAMILY.py next to this file has a function `calls(case, t)`:

  case(NAME, OP, ARGUMENTS..., grad=[...], exact=False, skip=(), note="", KEYWORD=ARGUMENT...)
    OP is "acos" or "div.Tensor_mode"; arguments are those of torch's schema of that overload.
    grad: the tensor arguments to differentiate by, counted from 0 over all tensors of the call (members of lists and
          absent optional tensors included); True: all tensors of floats.
    exact: results are moved, selected or compared numbers; the tolerance is 0.
    skip: results that are not determined (signs of vectors): neither compared nor differentiated.
  case.error(NAME, OP, ARGUMENTS..., words="", ...)
    torch rejects the call; `words` is the part of its message that is required here (default: its first line).
  python=FUNCTION in either stands for an op that this torch lacks: a formula, or a function of torch.nn.functional. It is
    called with the arguments of the op's row in the tables of tracer/graph, by name.
  t.f32(2, 3, low=-2, high=2), t.bf16, t.f16, t.f64, t.c64, t.s64, t.s32, t.u8, ..., t.pred: random inputs, the same in
    every run; t.values([...], "f32") given ones.

The cases of a family go to cases/FAMILY.cases in the format of tracer/text/record/op_test_case.h, each after a line
`case: NAME`. --check records without writing and fails if a file would change.
"""
import argparse
import importlib.util
import math
import pathlib
import random
import re
import sys
import zlib

import torch

HERE = pathlib.Path(__file__).resolve().parent
TYPES = {
    "pred": torch.bool, "s8": torch.int8, "u8": torch.uint8, "s16": torch.int16, "s32": torch.int32, "s64": torch.int64,
    "bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32, "f64": torch.float64, "c64": torch.complex64,
    "c128": torch.complex128,
}
NAMES = {dtype: name for name, dtype in TYPES.items()}
WIDER = {torch.bfloat16: torch.float32, torch.float16: torch.float32, torch.float32: torch.float64,
         torch.complex64: torch.complex128}
# Tolerances (relative, absolute) from the narrowest to the widest.
NARROW = [(2e-5, 1e-6), (5e-5, 5e-6), (2e-4, 2e-5), (1e-3, 1e-4)]
HALF = [(1e-2, 1e-3), (2e-2, 5e-3), (4e-2, 2e-2)]
DOUBLE = (1e-10, 1e-12)
# Arguments that specify how a result is stored.
# Element types in defaults of schemas.
CODES = {0: "u8", 1: "s8", 2: "s16", 3: "s32", 4: "s64", 5: "f16", 6: "f32", 7: "f64", 11: "pred", 15: "bf16"}
LEFT_OUT = {"layout", "device", "pin_memory", "memory_format", "non_blocking", "generator", "names"}


# ---- literals ----


def number(value, name):
    if name in ("c64", "c128"):
        part = "f32" if name == "c64" else "f64"
        return f"({number(value.real, part)},{number(value.imag, part)})"
    if isinstance(value, (bool, int)):
        return str(int(value))
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0"
    return f"{value:.{17 if name == 'f64' else 9}g}"


def braces(values, name):
    if isinstance(values, list):
        return "{" + ",".join(braces(v, name) for v in values) + "}"
    return number(values, name)


def literal(tensor):
    """HLO literal text, read back to the same bits."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    name = NAMES[tensor.dtype]
    if tensor.dtype == torch.bool and tensor.dim() == 0:
        return "pred[] " + ("true" if tensor.item() else "false")
    text = f"{name}[{','.join(map(str, tensor.shape))}] {braces(tensor.tolist(), name)}"
    atoms = re.findall(r"[-+.\w]+", text[text.index("]") + 1 :])
    parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    if tensor.is_floating_point() or tensor.is_complex():
        back = torch.tensor([float(a) for a in atoms], dtype=torch.float64).to(parts.dtype)
    else:
        back = torch.tensor([int(a) for a in atoms], dtype=torch.int64).to(parts.dtype)
    flat = parts.reshape(-1)
    same = (back == flat) | ((back != back) & (flat != flat))
    if back.shape != flat.shape or not bool(same.all()):
        raise AssertionError(f"not read back: {text}")
    return text


def attribute(value, kind):
    if value is None:
        return "none"
    if isinstance(value, torch.dtype):
        return NAMES[value]
    if kind == "float" and isinstance(value, int):
        value = float(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ("nan" if math.isnan(value) else "inf" if value > 0 else "-inf")
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        inner = kind[5:-1] if kind.startswith("List[") else ""
        return "(" + ", ".join(attribute(v, inner) for v in value) + ")"
    raise TypeError(f"argument {value!r}")


# ---- inputs ----


class Inputs:
    """Random inputs that depend only on their shape and range and on the inputs of the same case before."""

    def __init__(self):
        self.drawn = 0  # inputs of this case

    def values(self, values, name="f32"):
        return torch.tensor(values, dtype=TYPES[name])

    def _random(self, *key):
        self.drawn += 1
        return random.Random(zlib.crc32(repr((key, self.drawn)).encode()))

    def _fill(self, name, shape, draw):
        return torch.tensor([draw() for _ in range(math.prod(shape))], dtype=TYPES[name]).reshape(shape)

    def _floats(self, name, shape, low, high, step):
        # Multiples of 1/step, so that most sums are exact in any order.
        draw = self._random(shape, low, high, step)
        return self._fill(name, shape, lambda: draw.randint(math.ceil(low * step), math.floor(high * step)) / step)

    def f32(self, *shape, low=-2, high=2):
        return self._floats("f32", shape, low, high, 1024)

    def f64(self, *shape, low=-2, high=2):
        return self._floats("f64", shape, low, high, 1024)

    def bf16(self, *shape, low=-2, high=2):
        return self._floats("bf16", shape, low, high, 64)

    def f16(self, *shape, low=-2, high=2):
        return self._floats("f16", shape, low, high, 64)

    def c64(self, *shape, low=-2, high=2):
        return torch.complex(self.f32(*shape, low=low, high=high), self.f32(*shape, low=low, high=high))

    def distinct(self, *shape, name="f32", low=-2):
        """Different numbers, an eighth apart, in random order."""
        count = math.prod(shape)
        values = [low + i / 8 for i in range(count)]
        self._random(shape, low).shuffle(values)
        return torch.tensor(values, dtype=TYPES[name]).reshape(shape)

    def pred(self, *shape):
        draw = self._random(shape)
        return self._fill("pred", shape, lambda: draw.random() < 0.5)

    def __getattr__(self, name):
        if name not in ("s8", "u8", "s16", "s32", "s64"):
            raise AttributeError(name)

        def integers(*shape, low=0 if name == "u8" else -5, high=5):
            draw = self._random(shape, low, high)
            return self._fill(name, shape, lambda: draw.randint(low, high))

        return integers


# ---- calls ----


def is_tensor_list(argument):
    return "Tensor" in str(argument.type) and "List" in str(argument.type)


def is_tensor(argument):
    return "Tensor" in str(argument.type) and "List" not in str(argument.type)


def bind(schema, args, keywords):
    """(argument, value) for each argument of the schema that a case has."""
    args = list(args)
    bound = []
    for a in schema.arguments:
        if a.name in keywords:
            value = keywords.pop(a.name)
        elif args and not a.kwarg_only:
            value = args.pop(0)
        elif a.has_default_value():
            value = a.default_value
        elif str(a.type).startswith("Optional"):
            value = None
        else:
            raise TypeError(f"{schema.name}: no argument {a.name}")
        if a.name not in LEFT_OUT:
            bound.append((a, value))
    if args or keywords:
        raise TypeError(f"{schema.name}: too many arguments")
    return bound


def kind_of(argument):
    kind = str(argument.type)
    return kind[len("Optional[") : -1] if kind.startswith("Optional[") else kind


def tensors_of(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def outputs_of(result, bound):
    """The results as a list of tensors; plain numbers become tensors of rank 0."""
    if isinstance(result, (list, tuple)):
        return [o for r in result for o in outputs_of(r, bound)]
    if isinstance(result, bool):
        return [torch.tensor(result)]
    if isinstance(result, int):
        return [torch.tensor(result, dtype=torch.int64)]
    if isinstance(result, float):
        return [torch.tensor(result, dtype=bound[0][1].dtype)]
    return [result]


def widened(value):
    if isinstance(value, torch.Tensor):
        return value.to(WIDER[value.dtype]) if value.dtype in WIDER else value.clone()
    if isinstance(value, torch.dtype):
        return WIDER.get(value, value)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (torch.Tensor, type(None))):
        return [widened(v) for v in value]
    return value


def cotangent(output, index, name):
    draw = random.Random(zlib.crc32(f"{name} cotangent {index}".encode()))
    shape = list(output.shape)
    scaled = lambda: torch.tensor([draw.randint(-64, 64) / 64 for _ in range(math.prod(shape))]).reshape(shape)
    value = torch.complex(scaled(), scaled()) if output.is_complex() else scaled()
    return value.to(output.dtype)


class Run:
    """One call: results, mutated arguments, gradients."""

    def __init__(self, op, name, bound, grad, skip=()):
        leaves, used = [], []
        positional, keywords = [], {}
        for a, value in bound:
            if is_tensor(a) or is_tensor_list(a):
                members = []
                for v in tensors_of(value):
                    leaf = None if v is None else v.detach().clone()
                    if leaf is not None and len(leaves) in grad:
                        leaf.requires_grad_(True)
                    leaves.append(leaf)
                    written = a.alias_info is not None and a.alias_info.is_write
                    members.append(leaf.clone() if leaf is not None and leaf.requires_grad and written else leaf)
                used += members
                value = members if is_tensor_list(a) else members[0]
            if a.kwarg_only:
                keywords[a.name] = value
            else:
                positional.append(value)
        with torch.set_grad_enabled(bool(grad)):
            result = op(*positional, **keywords)
        self.outputs = outputs_of(result, bound) if op._schema.returns else []
        self.outputs = [o if o is None else o.resolve_conj().resolve_neg() for o in self.outputs]
        for i in skip:
            self.outputs[i] = None
        self.diff_out = [i for i, o in enumerate(self.outputs) if o is not None and o.requires_grad] if grad else []
        self.grad_outs = [cotangent(self.outputs[i], i, name) for i in self.diff_out]
        self.grads = []
        if grad:
            if not self.diff_out:
                raise ValueError(f"{name}: no result is differentiable")
            wanted = [leaves[i] for i in grad]
            found = torch.autograd.grad([self.outputs[i] for i in self.diff_out], wanted, self.grad_outs,
                                        allow_unused=True)
            self.grads = [torch.zeros_like(w) if g is None else g.resolve_conj().resolve_neg() for w, g in zip(wanted, found)]
        self.mutated = []
        position = 0
        for a, value in bound:
            if is_tensor(a) or is_tensor_list(a):
                members = tensors_of(value)
                for k in range(len(members)):
                    if a.alias_info is not None and a.alias_info.is_write:
                        self.mutated.append((position + k, used[position + k]))
                position += len(members)

    def numbers(self):
        return [o for o in self.outputs if o is not None] + [m for _, m in self.mutated] + self.grads


def error_in_rung(narrow, wide, rung):
    """The largest part of a tolerance that torch's own error takes; inf where the kinds of values differ."""
    worst = 0.0
    for a, b in zip(narrow.numbers(), wide.numbers()):
        if a.shape != b.shape:
            return math.inf
        if a.is_complex():
            a, b = torch.view_as_real(a), torch.view_as_real(b)
        if not a.is_floating_point():
            if not torch.equal(a.to(b.dtype), b):
                return math.inf
            continue
        x, y = a.detach().double(), b.detach().double()
        same = (x == y) | (torch.isnan(x) & torch.isnan(y))
        finite = torch.isfinite(x) & torch.isfinite(y)
        if not bool((same | finite).all()):
            return math.inf
        part = (x - y).abs() / (rung[1] + rung[0] * y.abs())
        part = part[finite & ~same]
        if part.numel():
            worst = max(worst, float(part.max()))
    return worst


def tolerance(op, name, bound, grad, skip, run, exact):
    floats = {t.dtype for t in run.numbers() if t.dtype.is_floating_point or t.dtype.is_complex}
    for a, value in bound:
        floats |= {v.dtype for v in tensors_of(value)
                   if isinstance(v, torch.Tensor) and (v.dtype.is_floating_point or v.dtype.is_complex)}
    results = any(t.dtype.is_floating_point or t.dtype.is_complex for t in run.numbers())
    if not results or exact:
        return (0, 0), ""
    half = bool(floats & {torch.bfloat16, torch.float16})
    if not floats & set(WIDER):
        return DOUBLE, ""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        wide = Run(op, name, [(a, widened(v)) for a, v in bound], grad, skip)
    finally:
        torch.set_default_dtype(default)
    rungs, part = (HALF, 0.5) if half else (NARROW, 0.25)
    for rung in rungs:
        if error_in_rung(run, wide, rung) <= part:
            return rung, ""
    return rungs[0], "the wider type gives other values"


class Composed:
    """An op that this torch lacks, with the schema of its row."""

    def __init__(self, name, function):
        tables = "".join(p.read_text() for p in sorted((HERE.parent.parent / "tracer" / "graph").glob("aten_*.def")))
        row = re.search(rf'"(aten::{re.escape(name)}\(.*?)", "', tables)
        if row is None:
            raise ValueError(f"no row of aten::{name}")
        self._schema = torch._C.parse_schema(row[1].replace('\\"', '"'))
        self.function = function

    def __call__(self, *args, **keywords):
        names = [a.name for a in self._schema.arguments]
        return self.function(**dict(zip(names, args)), **keywords)


class Recorder:
    def __init__(self, only):
        self.only = only
        self.cases = {}
        self.refused = []
        self.inputs = Inputs()

    def overload(self, name):
        base, _, overload = name.partition(".")
        return getattr(getattr(torch.ops.aten, base), overload or "default")

    def begin(self, name, op_name, args, keywords):
        if name in self.cases:
            raise ValueError(f"two cases are named {name}")
        python = keywords.pop("python", None)
        op = Composed(op_name, python) if python else self.overload(op_name)
        bound = bind(op._schema, args, keywords)
        lines = [f"case: {name}", f"op: aten::{op_name}"]
        for a, value in bound:
            if not is_tensor(a) and not is_tensor_list(a):
                text = CODES[value] if a.name == "dtype" and isinstance(value, int) else attribute(value, kind_of(a))
                lines.append(f"attr: {a.name}={text}")
        for a, value in bound:
            if is_tensor_list(a):
                lines.append(f"arglist: {len(tensors_of(value))}")
            if is_tensor(a) or is_tensor_list(a):
                lines += ["arg: none" if v is None else f"arg: {literal(v)}" for v in tensors_of(value)]
        return op, bound, lines

    def __call__(self, name, op_name, *args, grad=(), exact=False, skip=(), note="", **keywords):
        self.inputs.drawn = 0
        if not re.search(self.only, name):
            return
        try:
            op, bound, lines = self.begin(name, op_name, args, keywords)
            if grad is True:
                flat = [v for a, value in bound if is_tensor(a) or is_tensor_list(a) for v in tensors_of(value)]
                grad = [i for i, v in enumerate(flat) if v is not None and (v.is_floating_point() or v.is_complex())]
            grad = list(grad or ())
            run = Run(op, name, bound, grad, skip)
            (rel, absolute), odd = tolerance(op, name, bound, grad, skip, run, exact)
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError, NotImplementedError) as e:
            self.refused.append((name, str(e).splitlines()[0][:160]))
            return
        if grad:
            lines.append(f"requires_grad: {','.join(map(str, grad))}")
        lines += ["out: none" if o is None else f"out: {literal(o)}" for o in run.outputs]
        lines += [f"mutated: {i} {literal(m)}" for i, m in run.mutated]
        if grad:
            lines.append(f"diff_out: {','.join(map(str, run.diff_out))}")
        lines += [f"grad_out: {literal(g)}" for g in run.grad_outs]
        lines += [f"grad: {literal(g)}" for g in run.grads]
        lines.append(f"tolerance: rel={rel:g} abs={absolute:g}")
        if note or odd:
            lines.append("note: " + "; ".join(n for n in (note, odd) if n))
        self.cases[name] = lines

    def error(self, name, op_name, *args, words="", **keywords):
        self.inputs.drawn = 0
        if not re.search(self.only, name):
            return
        op, bound, lines = self.begin(name, op_name, args, keywords)
        try:
            Run(op, name, bound, [])
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as e:
            message = str(e).splitlines()[0]
            if words not in message:
                self.refused.append((name, f"torch says: {message}"))
                return
            lines.append(f"error: {words or message}")
            self.cases[name] = lines
            return
        self.refused.append((name, "torch accepts the call"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", action="append", default=[])
    parser.add_argument("--only", default="", help="regular expression of names; prints the cases, writes nothing")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sys.dont_write_bytecode = True
    failed = False
    for path in sorted(HERE.glob("calls_*.py")):
        family = path.stem[len("calls_") :]
        if options.family and family not in options.family:
            continue
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        recorder = Recorder(options.only)
        module.calls(recorder, recorder.inputs)
        for name, reason in recorder.refused:
            failed = True
            print(f"{family}: {name}: {reason}", file=sys.stderr)
        text = f"# Recorded by tests/torch_ops/record.py with torch {torch.__version__}; not edited by hand.\n"
        for lines in recorder.cases.values():
            text += "\n" + "\n".join([lines[0], lines[1], f"family: {family}"] + lines[2:]) + "\n"
        target = HERE / "cases" / f"{family}.cases"
        if options.only:
            print(text)
        elif options.check:
            if not target.exists() or target.read_text() != text:
                failed = True
                print(f"{target} differs", file=sys.stderr)
        else:
            target.parent.mkdir(exist_ok=True)
            target.write_text(text)
            print(f"{family}: {len(recorder.cases)} cases, {len(text)} bytes")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
