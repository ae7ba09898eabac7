# SPDX-License-Identifier: Apache-2.0
"""Higher-order ops of captured graphs: branches and loops are HLO computations, recorded as programs of their own, which the
program calls."""

import importlib
import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.overrides import TorchFunctionMode

import hlokit

from . import _capture


class Call(NamedTuple):
    """A conditional or while of a graph that is being recorded."""

    opcode: str
    operands: List[Any]  # tensors; of a conditional the first selects the branch
    results: List[Any]  # arguments that stand for its results in the graph
    computations: List[hlokit.Module]  # branches, the true one first; or condition and body
    scope: str
    line: Optional[Tuple[str, int, str]]


# What calls a graph, with the graph's place among its arguments and what follows: a list of them, or the rest.
_INLINE: Dict[str, Tuple[int, bool]] = {
    "wrap": (0, False),
    "wrap_with_set_grad_enabled": (1, False),
    "wrap_with_autocast": (4, False),
    "wrap_activation_checkpoint": (0, False),
    "tag_activation_checkpoint": (0, False),
    "invoke_subgraph": (0, False),
    "strict_mode": (0, True),
    "hints_wrapper": (0, True),
    "run_const_graph": (0, True),
}


def record(recorder: Any, node: Any, op: Any, args: Any, kwargs: Any) -> Any:
    """Records a higher-order op. Raises _capture.Unsupported for those that have no HLO."""
    name = op.__name__
    if name in _INLINE:
        place, listed = _INLINE[name]
        rest = args[place + 1] if listed else args[place + (2 if name == "invoke_subgraph" else 1) :]
        return tuple(recorder._run(args[place], rest))
    if name in _LOOPS:
        if recorder.one_graph:
            raise _capture.Unsupported(node, "graphs of the device have no branches and loops")
        return _LOOPS[name](recorder, node, *args)
    if name in ("flex_attention", "flex_attention_backward"):
        args = [_recorded(recorder, value) if isinstance(value, torch.fx.GraphModule) else value for value in args]
        mask = args[_BLOCK_MASK[name]]
        args[_BLOCK_MASK[name]] = tuple(_recorded(recorder, v) if isinstance(v, torch.fx.GraphModule) else v for v in mask)
        dense = importlib.import_module("torch._higher_order_ops.flex_attention")
        with _Numbers(recorder.device):
            function = dense.sdpa_dense if name == "flex_attention" else dense.sdpa_dense_backward
            return recorder.guarded(node, function, args, kwargs)
    if name == "out_dtype":
        from torch._higher_order_ops.out_dtype import out_dtype_dense

        return recorder.guarded(node, out_dtype_dense, args, kwargs)
    if name == "with_effects":
        return args[0], recorder.call(node, args[1], args[2:], kwargs)
    raise _capture.Unsupported(node, "it has no HLO")


# The place of the block mask, a tuple whose last element is a graph.
_BLOCK_MASK = {"flex_attention": 4, "flex_attention_backward": 9}


class _Numbers(TorchFunctionMode):
    """torch.tensor() of a number is a constant of the program: a value that is uploaded would be an argument."""

    def __init__(self, device: Any):
        super().__init__()
        self._device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.tensor and isinstance(args[0], (bool, int, float, complex)):
            return torch.full((), args[0], dtype=kwargs.get("dtype"), device=self._device)
        return func(*args, **kwargs)


def _recorded(recorder: Any, graph: torch.fx.GraphModule) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        values = recorder._run(graph, args)
        output = next(node for node in graph.graph.nodes if node.op == "output").args[0]
        return tuple(values) if isinstance(output, (list, tuple)) else values[0]

    return run


# ---- computations ----


def _tensors(values: Sequence[Any]) -> List[Any]:
    return [value for value in values if isinstance(value, torch.Tensor)]


def _with(values: Sequence[Any], tensors: Sequence[Any]) -> List[Any]:
    """The values with other tensors in the place of theirs."""
    given = iter(tensors)
    return [next(given) if isinstance(value, torch.Tensor) else value for value in values]


_Run = Callable[[Any, List[Any]], List[Any]]  # of a recorder and tensors


def _computation(recorder: Any, node: Any, run: _Run, tensors: Sequence[Any]) -> Tuple[hlokit.Module, List[Any]]:
    """What `run` computes of tensors like these, as a program of them, and its results."""
    inner = _capture.Recorder(recorder.session, recorder.decompositions, recorder.checks_nodes)
    arguments = [inner.argument(t.shape, t.dtype, f"a{i}") for i, t in enumerate(tensors)]
    with inner.own_seed() as seed:
        results = run(inner, [argument.tensor for argument in arguments])
        found = _tensors(results)
        # A result that depends on nothing still makes a program.
        module = inner.module(found or [arguments[0].tensor], [*arguments, seed], "region")
    if _capture.drop_unused_seed(module):
        raise _capture.Unsupported(node, "it draws random numbers in a branch or loop")
    return module, results


def _call(
    recorder: Any, node: Any, opcode: str, operands: List[Any], examples: Sequence[Any], computations: List[hlokit.Module]
) -> List[Any]:
    """Records a call, whose results are like the examples."""
    names = f"{opcode}{len(recorder.calls)}"
    results = [recorder.argument(t.shape, t.dtype, f"{names}.{i}") for i, t in enumerate(examples)]
    scope = "/".join([*_capture.scopes_of(node), _capture.name_of(node.target).replace(":", "_")])
    recorder.calls.append(Call(opcode, operands, results, computations, scope, _capture.line_of(node)))
    return [argument.tensor for argument in results]


def _branches(recorder: Any, node: Any, index: Any, graphs: Sequence[Any], operands: Sequence[Any]) -> Any:
    tensors = _tensors(operands)

    def run(graph: Any) -> _Run:
        return lambda inner, given: inner.run(graph, _with(operands, given))  # type: ignore[no-any-return]

    parts = [_computation(recorder, node, run(graph), tensors or [index]) for graph in graphs]
    kinds = [[(tuple(v.shape), v.dtype) if isinstance(v, torch.Tensor) else v for v in results] for _, results in parts]
    if any(kind != kinds[0] for kind in kinds):
        other = next(kind for kind in kinds if kind != kinds[0])
        raise _capture.Unsupported(node, f"its branches return different shapes: {kinds[0]} and {other}")
    first = parts[0][1]
    values = _call(recorder, node, "conditional", [index, *(tensors or [index])], _tensors(first), [module for module, _ in parts])
    return tuple(_with(first, values))


def _cond(recorder: Any, node: Any, predicate: Any, true: Any, false: Any, operands: Any = ()) -> Any:
    if not isinstance(predicate, torch.Tensor):
        return tuple(recorder._run(true if predicate else false, operands))
    return _branches(recorder, node, predicate.reshape(()), [true, false], operands)


def _switch(recorder: Any, node: Any, index: Any, graphs: Any, operands: Any = ()) -> Any:
    if not isinstance(index, torch.Tensor):
        return tuple(recorder._run(graphs[min(max(int(index), 0), len(graphs) - 1)], operands))
    index = index.reshape(()).clamp(0, len(graphs) - 1).to(torch.int32)
    return _branches(recorder, node, index, graphs, operands)


# ---- loops ----


def _loop(recorder: Any, node: Any, condition: Any, body: Any, carried: List[Any], constant: List[Any]) -> List[Any]:
    """A while. condition, body: functions of a recorder and of the tensors that are carried, then of those that are not."""
    operands = [*carried, *constant]
    count = len(carried)
    test, _ = _computation(recorder, node, lambda inner, given: [condition(inner, given).reshape(())], operands)

    def step(inner: Any, given: List[Any]) -> List[Any]:
        results = body(inner, given)
        for before, after in zip(carried, results):
            if not isinstance(after, torch.Tensor) or (before.shape, before.dtype) != (after.shape, after.dtype):
                raise _capture.Unsupported(node, "what it carries changes its shape or type")
        return [*results, *given[count:]]

    region, _ = _computation(recorder, node, step, operands)
    return _call(recorder, node, "while", operands, carried, [test, region])


def _while_loop(recorder: Any, node: Any, condition: Any, body: Any, carried: Any, constant: Any = ()) -> Any:
    # Numbers that are carried are tensors in the loop.
    if not all(isinstance(value, torch.Tensor) for value in carried):
        raise _capture.Unsupported(node, "it carries numbers that are no tensors")
    values = [*carried, *constant]
    run = lambda graph: lambda inner, given: inner.run(graph, _with(values, given))
    test = lambda inner, given: run(condition)(inner, given)[0]
    return tuple(_loop(recorder, node, test, run(body), list(carried), _tensors(constant)))


def _row(tensor: Any, place: Any) -> Any:
    return tensor.index_select(0, place.reshape(1)).squeeze(0)


def _steps(recorder: Any, node: Any, step: Any, carried: List[Any], xs: List[Any], constant: List[Any]) -> Tuple[List[Any], List[Any]]:
    """Calls step(inner, carried, rows, constant) -> (carried, results) for each row of the tensors, in order; returns what is
    carried, and the results by row. Results may be None."""
    count = xs[0].shape[0]
    samples = [recorder.new(x.shape[1:], x.dtype) for x in xs]
    inner = _capture.Recorder(recorder.session, recorder.decompositions, recorder.checks_nodes)
    with inner.own_seed():
        _, examples = step(inner, [recorder.new(c.shape, c.dtype) for c in carried], samples, constant)
    stacked = [torch.zeros((count, *y.shape), dtype=y.dtype, device=recorder.device) for y in examples if y is not None]
    place = torch.zeros((), dtype=torch.int64, device=recorder.device)
    before, kept, rows = len(carried) + 1, len(stacked), len(xs)

    def body(inner: Any, given: List[Any]) -> List[Any]:
        at, state, results = given[0], given[1:before], given[before : before + kept]
        inputs = given[before + kept : before + kept + rows]
        state, values = step(inner, state, [_row(x, at) for x in inputs], given[before + kept + rows :])
        values = [v for v in values if v is not None]
        return [at + 1, *state, *(r.index_copy(0, at.reshape(1), v.unsqueeze(0)) for r, v in zip(results, values))]

    state = [place, *carried, *stacked]
    final = _loop(recorder, node, lambda inner, given: given[0] < count, body, state, [*xs, *constant])
    results = iter(final[before:])
    return final[1:before], [None if y is None else next(results) for y in examples]


def _scan(recorder: Any, node: Any, graph: Any, init: Any, xs: Any, constant: Any = ()) -> Any:
    def step(inner: Any, carried: Any, rows: Any, given: Any) -> Any:
        results = inner.run(graph, [*carried, *rows, *_with(constant, given)])
        return results[: len(init)], results[len(init) :]

    carried, results = _steps(recorder, node, step, list(init), list(xs), _tensors(constant))
    return (*carried, *results)


def _map(recorder: Any, node: Any, graph: Any, xs: Any, constant: Any = ()) -> Any:
    def step(inner: Any, carried: Any, rows: Any, given: Any) -> Any:
        return [], inner.run(graph, [*rows, *_with(constant, given)])

    return tuple(_steps(recorder, node, step, [], list(xs), _tensors(constant))[1])


def _associative_scan(recorder: Any, node: Any, graph: Any, xs: Any, constant: Any = ()) -> Any:
    def step(inner: Any, carried: Any, rows: Any, given: Any) -> Any:
        first, before = carried[0], carried[1:]
        values = inner.run(graph, [*before, *rows, *_with(constant, given)])
        values = [torch.where(first, row, value) for row, value in zip(rows, values)]
        return [torch.zeros_like(first), *values], values

    first = torch.ones((), dtype=torch.bool, device=recorder.device)
    start = [first, *(x.select(0, 0) for x in xs)]
    return tuple(_steps(recorder, node, step, start, list(xs), _tensors(constant))[1])


_LOOPS: Dict[str, Callable[..., Any]] = {
    "cond": _cond,
    "switch": _switch,
    "while_loop": _while_loop,
    "scan": _scan,
    "map_impl": _map,
    "associative_scan": _associative_scan,
}


# ---- the whole program ----

_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")')
_NAME = re.compile(r"%([\w.\-]+)")


def _renamed(module: hlokit.Module, prefix: str) -> str:
    """The computations of a module as text, with a prefix to all names."""
    text = module.text("lossless").partition("\n")[2].replace("\nENTRY %", "\n%")
    parts = _QUOTED.split(text)
    return "".join(part if i % 2 else _NAME.sub(rf"%{prefix}.\1", part) for i, part in enumerate(parts))


def _tuple(shapes: Sequence[str]) -> str:
    return f"({', '.join(shapes)})"


def _wrapped(module: hlokit.Module, prefix: str, only_first: bool) -> str:
    """A computation of a tuple that calls a program of its elements. only_first: its result is the first of the program's."""
    shapes = [str(parameter.shape) for parameter in module.entry.parameters]
    root = module.entry.root
    result = str(root.shape)
    lines = [f"  %{prefix}.argument = {_tuple(shapes)} parameter(0)"]
    for i, shape in enumerate(shapes):
        lines.append(f"  %{prefix}.argument.{i} = {shape} get-tuple-element(%{prefix}.argument), index={i}")
    operands = ", ".join(f"%{prefix}.argument.{i}" for i in range(len(shapes)))
    lines.append(f"  {'' if only_first else 'ROOT '}%{prefix}.result = {result} call({operands}), to_apply=%{prefix}.{module.entry.name}")
    if only_first:
        result = str(root.operands[0].shape)
        lines.append(f"  ROOT %{prefix}.first = {result} get-tuple-element(%{prefix}.result), index=0")
    return "\n".join([f"%{prefix} (argument: {_tuple(shapes)}) -> {result} {{", *lines, "}"]) + "\n"


def connect(module: hlokit.Module, calls: Sequence[Call], results: int) -> hlokit.Module:
    """Puts the calls in the place of the arguments that stand for their results. The module returns its results, then the
    operands of the calls."""
    header, _, rest = module.text("lossless").partition("\n")
    texts: List[str] = []
    names: List[List[str]] = []
    for c, call in enumerate(calls):
        names.append([f"{call.opcode}{c}.region{r}" for r in range(len(call.computations))])
        for r, (prefix, computation) in enumerate(zip(names[-1], call.computations)):
            texts.append(_renamed(computation, prefix))
            texts.append(_wrapped(computation, prefix, call.opcode == "while" and r == 0))
    whole = hlokit.parse("\n".join([header, *texts, rest]), module.name)
    root = whole.entry.root
    builder = hlokit.Builder(whole.entry)
    place = results
    first = len(whole.entry.parameters) - sum(len(call.results) for call in calls)
    for call, regions in zip(calls, names):
        # What stood for results of earlier calls was replaced in the root too.
        operands = root.operands[place : place + len(call.operands)]
        place += len(call.operands)
        computations = [whole[name] for name in regions]
        if call.opcode == "while":
            made = builder.while_(builder.tuple(*operands), condition=computations[0], body=computations[1])
        else:
            arguments = builder.tuple(*operands[1:])
            made = _conditional(builder, operands[0], [arguments] * len(computations), computations)
        _describe(made, call)
        for i, argument in enumerate(call.results):
            element = builder.get_tuple_element(made, index=i)
            _describe(element, call)
            whole.entry.parameters[first + i].replace_all_uses_with(element)
        first += len(call.results)
    builder.set_root(builder.tuple(*root.operands[:results]))
    root.erase()
    for parameter in list(whole.entry.parameters)[first - sum(len(call.results) for call in calls) :][::-1]:
        parameter.erase()
    whole.run("inline")
    return whole


def _conditional(builder: Any, index: Any, arguments: List[Any], computations: List[Any]) -> Any:
    if index.shape.dtype == "pred":
        return builder.conditional(index, *arguments, true_computation=computations[0], false_computation=computations[1])
    return builder.conditional(index, *arguments, branch_computations=computations)


def _describe(instruction: Any, call: Call) -> None:
    place = {} if call.line is None else {"source_file": call.line[0], "source_line": call.line[1]}
    instruction.set_metadata(op_name=call.scope, op_type=call.scope.rpartition("/")[2], **place)
