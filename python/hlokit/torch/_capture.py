# SPDX-License-Identifier: Apache-2.0
"""Graphs that PyTorch captured, as HLO: each node runs on lazy tensors of a session of its own, whose pending graph is the
program. The nodes' lines and modules become metadata."""

import contextlib
import json
import operator
import os
import re
import types
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

import hlokit
from hlokit import _hlokit

from . import _control_flow, _fallback, _plans, _session, _tensor

_SITE = os.path.dirname(os.path.dirname(os.path.realpath(torch.__file__))) + os.sep
_TORCH = os.path.join(_SITE, "torch") + os.sep
_CAPTURING = tuple(f"torch/{part}" for part in ("_dynamo/", "_export/", "_functorch/", "_higher_order_ops/", "export/", "fx/"))
_FRAME = re.compile(r'File "([^"]*)", line (\d+), in (\S+)')

_NO_LINE = ("", 1, "")  # the lines of the caller are none of the graph's

# Checks of values and sizes, which hold for the sizes of the program and are not part of it.
_CHECKS = frozenset(
    f"aten::{name}"
    for name in (
        "_assert_async",
        "_assert_scalar",
        "_assert_tensor_metadata",
        "_functional_assert_async",
        "_functional_assert_scalar",
        "_functional_sym_constrain_range",
        "_functional_sym_constrain_range_for_size",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
    )
)


class Unsupported(RuntimeError):
    """A node of a captured graph that has no HLO: the message names it, its line and the reason."""

    def __init__(self, node: Any, reason: str):
        self.node = node
        self.reason = reason
        place = line_of(node)
        super().__init__(f"{name_of(node.target)}{f' ({place[0]}:{place[1]})' if place else ''}: {reason}")


class Argument(NamedTuple):
    """An argument of a captured graph: a parameter of the program, or with `data` a constant."""

    tensor: Any  # the lazy tensor that stands for it
    value: Any  # its value, whatever is written to the tensor
    name: str
    label: str
    data: Optional[torch.Tensor]


def name_of(target: Any) -> str:
    """The name of an op as torch.ops has it, or of a function."""
    schema = getattr(target, "_schema", None)
    if schema is not None:
        return _plans.full_name(target)
    name = getattr(target, "__name__", None) or str(target)
    return f"higher_order::{name}" if isinstance(target, torch._ops.HigherOrderOperator) else str(name)


def line_of(node: Any) -> Optional[Tuple[str, int, str]]:
    """The line of the program that made a node, (file, line, function): the innermost one outside of torch, or else in it."""
    return _lines(node.meta.get("stack_trace") or "")


def _lines(trace: str) -> Optional[Tuple[str, int, str]]:
    frames = _FRAME.findall(trace)
    # PyTorch names code that it generates with "<".
    real = [(file, int(line), function) for file, line, function in frames if not file.startswith("<")]
    own = [frame for frame in real if not os.path.realpath(frame[0]).startswith(_TORCH) and not frame[0].startswith("torch/")]
    if own:
        return own[-1]
    inside = [(os.path.realpath(file).replace(_SITE, ""), line, function) for file, line, function in real]
    layers = [frame for frame in inside if not frame[0].startswith(_CAPTURING)]
    return layers[-1] if layers else None


def scopes_of(node: Any) -> List[str]:
    """The modules that a node is in, the outermost first: its class, then the names of attributes."""
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    result: List[str] = []
    outer = ""
    for key, (path, kind) in stack.items():
        if key.startswith("_empty_nn_module_stack"):
            continue
        path = _path(path)
        if not path:
            result.append((kind if isinstance(kind, str) else kind.__name__).rpartition(".")[2])
            continue
        inner = path[len(outer) + 1 :] if outer and path.startswith(outer + ".") else path
        result.append(inner.replace("/", "_") or "module")
        outer = path
    return result


def _path(path: str) -> str:
    """"L['self']._modules['layer'][0]" of Dynamo as "layer.0"."""
    if not re.match(r"[LG]\[", path):
        return path
    parts = re.findall(r"\['?([\w.\-]+)'?\]|\.(\w+)", path)
    names = [a or b for a, b in parts]
    return ".".join(name for name in names[1:] if name not in ("_modules", "_parameters", "_buffers"))


def _call(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


_callers: Dict[Tuple[str, int, str], Callable[..., Any]] = {}


def _caller(place: Tuple[str, int, str]) -> Callable[..., Any]:
    """A function that calls another from a line of a program: what it records has this line."""
    found = _callers.get(place)
    if found is None:
        file, line, function = place
        code = _call.__code__.replace(co_filename=file, co_firstlineno=line - 1, co_name=function)
        found = _callers[place] = types.FunctionType(code, globals())
    return found


class _Scopes:
    """The open scopes of a recording: those that successive nodes share stay open."""

    def __init__(self) -> None:
        self._open: List[str] = []

    def enter(self, names: List[str]) -> None:
        common = 0
        while common < min(len(names), len(self._open)) and names[common] == self._open[common]:
            common += 1
        self.close(len(self._open) - common)
        for name in names[common:]:
            _hlokit._push_scope(name)
            self._open.append(name)

    def close(self, count: int) -> None:
        for _ in range(count):
            _hlokit._pop_scope()
            self._open.pop()

    def close_all(self) -> None:
        self.close(len(self._open))


class HostNumbers(TorchDispatchMode):
    """Makes constants of the numbers that PyTorch passes to ops as tensors on the host."""

    def __init__(self, device: Any):
        super().__init__()
        self._device = device

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        values = tree_leaves((args, kwargs))
        if any(_tensor.is_lazy(v) for v in values) and any(_is_host_number(v) for v in values):
            args, kwargs = tree_map(self._constant, (args, kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _constant(self, value: Any) -> Any:
        if not _is_host_number(value):
            return value
        return torch.full((), value.item(), dtype=value.dtype, device=self._device)


def _is_host_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not _tensor.is_lazy(value) and value.dim() == 0 and value.device.type == "cpu"


class Recorder:
    """Records graphs in a session. calls: computations that the graph calls (_control_flow); with one_graph there are none.
    """

    def __init__(
        self,
        session: Any,
        decompositions: Optional[Dict[Any, Callable[..., Any]]] = None,
        checks_nodes: bool = False,
        one_graph: bool = False,
    ):
        self.session = session
        self.checks_nodes = checks_nodes
        self.one_graph = one_graph
        self.decompositions = decompositions or {}
        self.calls: List[_control_flow.Call] = []
        self.constants: List[Argument] = []  # tensors of the host that graphs have as attributes
        self.attributes: List[Argument] = []  # those of the device, which are `attribute_values`
        self.attribute_values: List[torch.Tensor] = []
        self.device = _session.XLA_DEVICES[0]
        self._scopes = _Scopes()

    def new(self, shape: Sequence[int], dtype: torch.dtype) -> Any:
        """A lazy tensor whose value is given when the program runs."""
        return _tensor.upload(torch.empty(tuple(shape), dtype=dtype, device="meta"), self.session, 0)

    def argument(self, shape: Sequence[int], dtype: torch.dtype, name: str, label: str = "", data: Any = None) -> Argument:
        tensor = self.new(shape, dtype)
        return Argument(tensor, _hlokit._captured_value(_tensor.lazy_of(tensor)), name, label or name, data)

    def seed(self) -> Argument:
        """The seed of random numbers as the last argument; drop_unused_seed() drops it from a program that draws none."""
        argument = self.argument((), torch.int64, "seed")
        _hlokit._lazy_set_seed(_tensor.lazy_of(argument.tensor))
        return argument

    @contextlib.contextmanager
    def own_seed(self) -> Iterator[Argument]:
        """A seed of the block, which is that of a computation that the program calls."""
        before = _hlokit._lazy_seed(self.session, 0)
        try:
            yield self.seed()
        finally:
            _hlokit._lazy_set_seed(before)

    def run(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> List[Any]:
        """Runs a graph on lazy tensors and numbers, and returns its results. Raises Unsupported."""
        with torch.no_grad(), HostNumbers(self.device):
            try:
                before = self._reads()
                results = self._run(graph, inputs)
                if self._reads() == before:
                    return results
                # Again, to find the node: a look at the counters after each one takes long.
                self.checks_nodes = True
                self._run(graph, inputs)
                raise RuntimeError("a graph read values of its arguments")
            finally:
                self._scopes.close_all()

    def _reads(self) -> int:
        """How many ops ran on the host so far, or read values there, which are not those of the arguments."""
        state = json.loads(self.session.metrics_json())
        fallbacks = sum(count for name, count in state["counters"].items() if name.startswith("aten::"))
        executions = state["counters"].get("ExecuteComputation", 0)
        return int(fallbacks + executions + state["metrics"].get("TransferFromDeviceTime", {}).get("total_samples", 0))

    def _run(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> List[Any]:
        values: Dict[Any, Any] = {}
        last = _last_uses(graph.graph)
        given = iter(inputs)
        for node in graph.graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                values[node] = self._attribute(graph, node)
            elif node.op == "output":
                result = torch.fx.node.map_arg(node.args[0], values.__getitem__)
                return list(result) if isinstance(result, (list, tuple)) else [result]
            else:
                args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), values.__getitem__)
                values[node] = self._node(graph, node, args, kwargs)
            for used in last.get(node, ()):
                del values[used]
        return []

    def _attribute(self, graph: torch.fx.GraphModule, node: Any) -> Any:
        value: Any = graph
        for part in node.target.split("."):
            value = getattr(value, part)
        if isinstance(value, torch.Tensor) and not _tensor.is_lazy(value):
            if type(value) not in (torch.Tensor, torch.nn.Parameter):
                raise Unsupported(node, "a tensor without values")
            constant = self.argument(value.shape, value.dtype, "constant", node.target, value.detach())
            self.constants.append(constant)
            return constant.tensor
        if self.one_graph and isinstance(value, torch.Tensor):
            attribute = self.argument(value.shape, value.dtype, "attribute", node.target)
            self.attributes.append(attribute)
            self.attribute_values.append(value.detach())
            return attribute.tensor
        return value

    def _node(self, graph: Any, node: Any, args: Any, kwargs: Any) -> Any:
        if node.op == "call_method":
            function: Any = getattr(args[0], node.target)
            args = args[1:]
        elif node.op == "call_module":
            return _one(self._run(graph.get_submodule(node.target), args))
        else:
            function = node.target
        scopes = scopes_of(node)
        if scopes:
            self._scopes.enter(scopes)
        if isinstance(function, torch._ops.HigherOrderOperator):
            return _control_flow.record(self, node, function, args, kwargs)
        return self.call(node, function, args, kwargs)

    def call(self, node: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Records a call that a node makes. Raises Unsupported where it would run on the CPU."""
        through = _caller(line_of(node) or _NO_LINE)
        if function is operator.getitem or not isinstance(function, torch._ops.OpOverload):
            return through(function, args, kwargs)
        if function._schema.name in _CHECKS:
            return None
        own = self.decompositions.get(function) or _definition(function) or _copy_of_view(function)
        if own is not None:
            return self.guarded(node, own, args, kwargs)
        args, kwargs = self._on_device(function, args, kwargs)
        return self.guarded(node, function, args, kwargs)

    def guarded(self, node: Any, function: Any, args: Any, kwargs: Any) -> Any:
        """Calls a function of lazy tensors. Raises Unsupported where a part would run on the CPU."""
        through = _caller(line_of(node) or _NO_LINE)
        before, reads = sum(_fallback.fallbacks.values()), self._reads() if self.checks_nodes else 0
        try:
            result = through(function, args, kwargs)
        except (RuntimeError, NotImplementedError, TypeError) as error:
            raise Unsupported(node, str(error).splitlines()[0]) from error
        if sum(_fallback.fallbacks.values()) != before:
            raise Unsupported(node, "the tracer has no such op")
        if self.checks_nodes and self._reads() != reads:
            raise Unsupported(node, "it reads values")
        if any(_is_on_host(value) for value in tree_leaves(result)):
            raise Unsupported(node, "its result is on the host")
        return result

    def _on_device(self, function: Any, args: Any, kwargs: Any) -> Tuple[Any, Dict[str, Any]]:
        names = [argument.name for argument in function._schema.arguments]
        if "device" not in names:
            return args, kwargs
        kwargs = dict(kwargs)
        place = names.index("device")
        if place < len(args):
            args = (*args[:place], self.device, *args[place + 1 :])
        elif kwargs.get("device") is not None or not _has_tensor(args):
            kwargs["device"] = self.device
        kwargs.pop("pin_memory", None)
        return args, kwargs

    def module(self, results: Sequence[Any], arguments: Sequence[Argument], name: str) -> hlokit.Module:
        """The program that computes the results."""
        calls, self.calls = self.calls, []
        roots = [_tensor.value_of(tensor) for tensor in results]
        roots += [_tensor.value_of(t) for call in calls for t in call.operands]
        given = [*arguments, *(a for call in calls for a in call.results), *self.constants]
        if not roots:
            raise ValueError("the graph has no results that are tensors")
        rows = [(a.value, a.name, a.label, None if a.data is None else _tensor.bytes_of(a.data)) for a in given]
        module = _hlokit._captured_module(roots, rows, name)
        return _control_flow.connect(module, calls, len(results)) if calls else module


def drop_unused_seed(module: hlokit.Module) -> bool:
    """Erases the last parameter, the seed, unless something uses it; whether it stays."""
    seed = module.entry.parameters[-1]
    if seed.users:
        return True
    seed.erase()
    return False


def _one(values: List[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)


def _is_on_host(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or _tensor.is_lazy(value):
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(value)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_tensor(v) for v in value)
    return isinstance(value, torch.Tensor)


def _last_uses(graph: torch.fx.Graph) -> Dict[Any, List[Any]]:
    """By node, the nodes whose values nothing needs after it."""
    result: Dict[Any, List[Any]] = {}
    seen = set()
    for node in reversed(graph.nodes):
        for used in node.all_input_nodes:
            if used not in seen:
                seen.add(used)
                result.setdefault(node, []).append(used)
    return result


def _copy_of_view(function: Any) -> Optional[Callable[..., Any]]:
    """detach_copy and the like, in terms of the op that makes a view, where there is nothing else for them."""
    name = str(function._schema.name)
    base = getattr(torch.ops.aten, name[len("aten::") : -len("_copy")], None) if name.endswith("_copy") else None
    view = None if base is None else getattr(base, function._overloadname, None)
    if view is None or not any(a.alias_info is not None for a in view._schema.returns):
        return None
    if _plans.plan_for(function) is not None or function in torch._decomp.decomposition_table:
        return None
    make: Any = view
    return lambda *args, **kwargs: tree_map(torch.clone, make(*args, **kwargs))


def _definition(function: Any) -> Optional[Callable[..., Any]]:
    """The Python function of an op of torch.library.custom_op, which is recorded in its place."""
    try:
        from torch._library.custom_ops import OPDEFS
    except ImportError:
        return None
    space, _, name = function._schema.name.partition("::")
    found = OPDEFS.get(f"{space}::{name}")
    return None if found is None or space == "aten" else found._init_fn  # type: ignore[no-any-return]


@contextlib.contextmanager
def recording(decompositions: Optional[Dict[Any, Callable[..., Any]]] = None, one_graph: bool = False) -> Iterator[Recorder]:
    """A recorder in a session of its own."""
    from torch.utils._python_dispatch import _disable_current_modes

    # Compilers run under modes that would take the calls.
    with _disable_current_modes(), _session.capture(fake=True, debug=True, devices=1, spmd=False) as session, _session.on_device(0):
        yield Recorder(session, decompositions, one_graph=one_graph)
