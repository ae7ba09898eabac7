# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="hlokit"): Dynamo's graphs through AOTAutograd to HLO programs, one for each graph and size.

What the tracer does not have runs on the CPU between programs. Tensors on the host are read where they are, and results
share the memory of the program's. Graphs of tensors on the device become parts of the lazy graph (_compile_device.py).
"""

import functools
import importlib
import operator
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch

import hlokit

from . import _capture, _compile_device, _compile_report
from ._export import Recent, _concrete

aten = torch.ops.aten


# Types whose elements NumPy has too: its arrays pass faster than DLPack's.
_NUMPY = frozenset(
    (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    + (torch.float16, torch.float32, torch.float64, torch.complex64, torch.complex128)
)
_NUMPY_NAMES = frozenset(("pred", "u8", "s8", "s16", "s32", "s64", "f16", "f32", "f64", "c64", "c128"))


def from_host(tensor: torch.Tensor) -> Any:
    """What hlokit.Executable reads in place for a tensor."""
    tensor = tensor.detach()
    if tensor.is_conj():
        tensor = tensor.resolve_conj()
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    if not tensor.is_contiguous():
        tensor = tensor.contiguous()
    return tensor.numpy() if tensor.dtype in _NUMPY else tensor


def form_of(module: hlokit.Module) -> Tuple[str, Callable[[Any], torch.Tensor]]:
    """How hlokit.Executable returns the results of a program, and what makes tensors of them, which share their memory."""
    if all(operand.shape.dtype in _NUMPY_NAMES for operand in module.entry.root.operands):
        return "numpy", torch.from_numpy
    return "array", torch.from_dlpack


class _Input(NamedTuple):
    """An output that is an input, or a view of one that the host makes."""

    place: int
    views: Tuple[Tuple[Any, Any, Any], ...]  # (op, arguments after the first, keywords)


class _Result(NamedTuple):
    """An output that the program computes."""

    place: int
    strides: Optional[Tuple[int, ...]]  # where they are not those of a contiguous tensor
    device: str = ""  # the type of its device


def _restrided(value: torch.Tensor, strides: Tuple[int, ...]) -> torch.Tensor:
    """The tensor with other strides, 0 for dimensions along which its elements are equal."""
    sizes = value.shape
    for dimension, stride in enumerate(strides):
        if stride == 0:
            value = value.narrow(dimension, 0, 1)
    return torch.empty_strided(value.shape, strides, dtype=value.dtype).copy_(value).expand(sizes)


class Options(NamedTuple):
    """Options of torch.compile(options=)."""

    engine: str = "fast"  # of hlokit.Executable; "none": nothing runs, and results have no values, as for simulations
    num_threads: int = 0


class _Entry:
    """A program for one set of sizes."""

    def __init__(self, module: Optional[hlokit.Module], inputs: List[int], seed: bool, outputs: List[Any], options: Options):
        self.inputs = inputs  # the tensors that it takes
        self.seed = seed
        self.outputs = outputs
        self.lock = threading.Lock()
        self.executable: Any = None
        if module is None:
            return
        results, self.to_tensor = form_of(module)
        if options.engine == "none":
            shapes = [(tuple(o.shape.dims), _DTYPES[o.shape.dtype]) for o in module.entry.root.operands]
            self.executable = lambda *_: [torch.empty(shape, dtype=dtype) for shape, dtype in shapes]
            self.to_tensor = lambda value: value
        else:
            self.executable = hlokit.Executable(module, options.engine, results=results, num_threads=options.num_threads)

    def run(self, args: Sequence[Any], row: _compile_report.ProgramRow) -> List[Any]:
        start = time.perf_counter()
        results: Sequence[Any] = ()
        if self.executable is not None:
            given = [from_host(args[i]) for i in self.inputs]
            if self.seed:
                given.append(torch.randint(2**62, ()).numpy())
            with self.lock:
                begin = time.perf_counter()
                results = self.executable(*given)
                row.run_seconds += time.perf_counter() - begin
        values: List[Any] = []
        for output in self.outputs:
            if isinstance(output, _Result):
                value = self.to_tensor(results[output.place])
                if output.strides is not None:
                    value = _restrided(value, output.strides)
                values.append(value)
            elif isinstance(output, _Input):
                value = args[output.place]
                for op, rest, keywords in output.views:
                    value = op(value, *rest, **keywords)
                values.append(value)
            else:
                values.append(output)
        row.calls += 1
        row.seconds += time.perf_counter() - start
        return values


_DTYPES = {
    "bf16": torch.bfloat16,
    "pred": torch.bool,
    "u8": torch.uint8,
    "s8": torch.int8,
    "s16": torch.int16,
    "s32": torch.int32,
    "s64": torch.int64,
    "f16": torch.float16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "c128": torch.complex128,
}


class _Context(NamedTuple):
    """What programs are compiled for: options, and the graph of Dynamo."""

    options: Options
    graph: int


class Program(torch.nn.Module):
    """A graph that runs as HLO. Programs are made for the sizes of its inputs, in the first call or before."""

    def __init__(self, graph: torch.fx.GraphModule, kind: str, context: _Context, strided: int = 0, on_device: bool = False):
        super().__init__()
        self._context = context
        self._on_device = on_device
        self._graph = [graph]  # no submodule of this one
        self._kind = kind
        self._strided = strided
        self._entries = Recent()  # (entry, row of the report) by sizes
        placeholders = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
        self._dynamic = [i for i, value in enumerate(placeholders) if _is_dynamic(value)]
        self._examples = placeholders

    @property
    def is_dynamic(self) -> bool:
        return bool(self._dynamic)

    def prepare(self) -> None:
        """Makes the program of a graph without dynamic sizes. Raises _capture.Unsupported."""
        if not self._dynamic:
            self._entries.put((), self._record(self._examples))

    def forward(self, *args: Any) -> List[Any]:
        key = tuple(tuple(a.shape) if isinstance(a, torch.Tensor) else a for a in (args[i] for i in self._dynamic))
        entry, row = self._entries.get(key) or self._entries.put(key, self._record(args))
        return entry.run(args, row)  # type: ignore[no-any-return]

    def _record(self, inputs: Sequence[Any]) -> Tuple[Any, _compile_report.ProgramRow]:
        start = time.perf_counter()
        graph = self._graph[0]
        views = {} if self._on_device else _views_of_inputs(graph.graph)
        with _capture.recording(one_graph=self._on_device) as recorder:
            arguments: List[_capture.Argument] = []
            places: List[int] = []
            values: List[Any] = []
            nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
            for i, (node, value) in enumerate(zip(nodes, inputs)):
                if not isinstance(value, torch.Tensor):
                    values.append(value)
                    continue
                arguments.append(recorder.argument([int(s) for s in value.shape], value.dtype, node.name))
                places.append(i)
                values.append(arguments[-1].tensor)
            seed = recorder.seed()
            results = recorder.run(graph, values)
            by_tensor = {id(argument.tensor): place for argument, place in zip(arguments, places)}
            final = [node for node in graph.graph.nodes if node.op == "output"][0].args[0]
            final = list(final) if isinstance(final, (list, tuple)) else [final]
            outputs: List[Any] = []
            roots: List[Any] = []
            for number, (node, value) in enumerate(zip(final, results)):
                if not isinstance(value, torch.Tensor):
                    outputs.append(value)
                elif id(value) in by_tensor:
                    outputs.append(_Input(by_tensor[id(value)], ()))
                elif node in views:
                    outputs.append(views[node])
                else:
                    example = node.meta.get("val")
                    strides = _strides(example, value) if number < self._strided else None
                    kind = example.device.type if isinstance(example, torch.Tensor) else ""
                    outputs.append(_Result(len(roots), strides, kind))
                    roots.append(value)
            module, uses_seed = None, False
            entry: Any = None
            if self._on_device:
                entry = _compile_device.Entry(recorder, arguments, places, seed, roots, outputs, _compile_device.home_of(graph))
            if roots:
                module = recorder.module(roots, [*arguments, *recorder.attributes, seed], self._kind)
                uses_seed = _capture.drop_unused_seed(module)
        if entry is None:
            places = places if module is None else _drop_unused(module, places)
            entry = _Entry(module, places, uses_seed, outputs, self._context.options)
        row = _compile_report.record_program(self._context.graph, self._kind, graph, module, time.perf_counter() - start)
        return entry, row


def _drop_unused(module: hlokit.Module, places: List[int]) -> List[int]:
    """Erases parameters that nothing uses; the places of those that stay."""
    kept: List[int] = []
    for parameter, place in zip(list(module.entry.parameters), places):
        if parameter.users or parameter.is_root:
            kept.append(place)
        else:
            parameter.erase()
    return kept


def _is_dynamic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in value.shape)
    return not isinstance(value, torch.Tensor)


_VIEWS = frozenset(
    getattr(aten, name)
    for name in ("permute", "t", "transpose", "detach", "alias", "unsqueeze", "squeeze", "expand", "select", "slice", "view")
)


def _views_of_inputs(graph: torch.fx.Graph) -> Dict[Any, _Input]:
    """Outputs that are views of inputs, which the host makes without a copy: parameters that a derivative needs."""
    found: Dict[Any, _Input] = {}
    place = 0
    for node in graph.nodes:
        if node.op == "placeholder":
            if isinstance(node.meta.get("val"), torch.Tensor):
                found[node] = _Input(place, ())
            place += 1
        elif node.op == "call_function" and getattr(node.target, "_overloadpacket", None) in _VIEWS:
            rest = node.args[1:]
            if node.args and node.args[0] in found and not any(isinstance(a, torch.fx.Node) for a in _leaves((rest, dict(node.kwargs)))):
                source = found[node.args[0]]
                found[node] = _Input(source.place, (*source.views, (node.target, rest, dict(node.kwargs))))
    return found


def _leaves(value: Any) -> List[Any]:
    return list(torch.utils._pytree.tree_leaves(value))


def _strides(example: Any, value: torch.Tensor) -> Optional[Tuple[int, ...]]:
    """The strides that PyTorch gives an output, where they differ from those of a contiguous tensor."""
    if not isinstance(example, torch.Tensor) or any(isinstance(s, torch.SymInt) for s in (*example.stride(), *example.shape)):
        return None
    if example.is_contiguous() or example.numel() == 0:
        return None
    return tuple(example.stride())


# ---- graphs with ops on the CPU ----


class _Survey(_capture.Recorder):
    """Finds the nodes of a graph that have no HLO: their results are values that are given when the program runs."""

    def __init__(self, session: Any, symbols: Dict[Any, int], one_graph: bool):
        super().__init__(session, checks_nodes=True, one_graph=one_graph)
        self.found: Dict[Any, str] = {}
        self._symbols = symbols

    def look(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
        with torch.no_grad(), _capture.HostNumbers(self.device):
            try:
                self._run(graph, inputs)
            finally:
                self._scopes.close_all()

    def _node(self, graph: Any, node: Any, args: Any, kwargs: Any) -> Any:
        try:
            return super()._node(graph, node, args, kwargs)
        except Exception as error:  # noqa: BLE001: whatever it is, torch runs the node
            self.found[node] = error.reason if isinstance(error, _capture.Unsupported) and error.node is node else str(error)
            return torch.utils._pytree.tree_map(self._stand_in, node.meta.get("val"))

    def _stand_in(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.new([_number(s, self._symbols) for s in value.shape], value.dtype)
        return _number(value, self._symbols)


def _number(value: Any, symbols: Dict[Any, int]) -> Any:
    if isinstance(value, torch.SymInt):
        for symbol in value.node.expr.free_symbols:
            symbols.setdefault(symbol, 2)  # of a size that depends on values
    return _concrete(value, symbols)


def _unsupported(graph: torch.fx.GraphModule, examples: Sequence[Any], on_device: bool) -> Dict[Any, str]:
    """The nodes without HLO, with the reasons."""
    symbols: Dict[Any, int] = {}
    for example in examples:
        for size in example.shape if isinstance(example, torch.Tensor) else [example]:
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol and size.node.hint is not None:
                symbols[size.node.expr] = int(size.node.hint)
    with _capture.recording() as base:
        survey = _Survey(base.session, symbols, on_device)
        values = [survey._stand_in(example) for example in examples]
        survey.seed()
        survey.look(graph, values)
        if on_device:
            survey.found.update(_compile_device.nodes_of_host(graph.graph))
        survey.found.update(_strided_reads(graph.graph))
        return survey.found


_ALL = 1 << 30  # outputs
_STRIDED = frozenset((aten.as_strided, aten.as_strided_copy, aten.as_strided_scatter))


def _strided_reads(graph: torch.fx.Graph) -> Dict[Any, str]:
    """Ops whose strides count in a memory that is not that of the elements one after another, as programs have them, and the
    views that they read through."""
    found: Dict[Any, str] = {}
    for node in graph.nodes:
        if node.op != "call_function" or getattr(node.target, "_overloadpacket", None) not in _STRIDED:
            continue
        source = node.args[0]
        if not isinstance(source, torch.fx.Node) or _compile_device.is_whole(source.meta.get("val")):
            continue
        found[node] = "its argument is a part of a memory, or in another order"
        while source.op == "call_function" and _is_view(source.target):
            found[source] = "an op that needs strides reads it"
            source = source.args[0]
    return found


def _is_view(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return schema is not None and bool(schema.returns) and schema.returns[0].alias_info is not None and not schema.is_mutable


def _divide(graph: torch.fx.GraphModule, on_host: Dict[Any, str], kind: str, context: _Context, on_device: bool) -> Any:
    """The graph with its parts as programs, and the nodes that run on the CPU between them."""
    from torch.fx.passes.split_module import split_module

    for node in list(graph.graph.nodes):  # elements stay with the op that returns them
        if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node) and node.args[0].op == "call_function":
            node.args[0].append(node)
            if node.args[0] in on_host:
                on_host[node] = ""
    # What reads by strides needs those that PyTorch gives.
    strided = _ALL if any(getattr(node.target, "_overloadpacket", None) in _STRIDED for node in on_host) else 0
    part, previous, parts = 0, None, {}
    for node in graph.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        hosted = node in on_host
        if previous is not None and hosted != previous:
            part += 1
        previous = hosted
        parts[node] = part
    on_cpu = {parts[node] for node in on_host}
    divided = split_module(graph, graph, lambda node: parts[node], keep_original_order=True, keep_original_node_name=True)
    for name, child in list(divided.named_children()):
        if not name.startswith("submod_"):
            continue
        if int(name[len("submod_") :]) in on_cpu:
            torch.fx._lazy_graph_module._LazyGraphModule.force_recompile(child)
        else:
            setattr(divided, name, _Part(Program(child, f"{kind} part", context, strided, on_device), _returns_one(child)))
    return divided


def _returns_one(graph: torch.fx.GraphModule) -> bool:
    return not isinstance(next(n for n in graph.graph.nodes if n.op == "output").args[0], (tuple, list))


class _Part(torch.nn.Module):
    """A program as the part of a graph, whose only result is no list."""

    def __init__(self, program: Program, one: bool):
        super().__init__()
        self._program = [program]
        self._one = one

    def forward(self, *args: Any) -> Any:
        values = self._program[0].forward(*args)
        return values[0] if self._one else values


# ---- compilers ----


def _boxed(function: Callable[..., Any]) -> Callable[[List[Any]], Any]:
    def run(args: List[Any]) -> Any:
        given = list(args)
        args.clear()
        return function(*given)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def _compile_graph(graph: torch.fx.GraphModule, kind: str, context: _Context) -> Callable[[List[Any]], Any]:
    if not any(node.op == "call_function" for node in graph.graph.nodes):
        return _boxed(graph.forward)
    placeholders = [node.meta.get("val") for node in graph.graph.nodes if node.op == "placeholder"]
    on_device = _compile_device.uses_device(graph.graph)
    program = Program(graph, kind, context, _user_outputs(kind), on_device)
    on_host: Dict[Any, str] = _compile_device.nodes_of_host(graph.graph) if on_device else {}
    on_host.update(_strided_reads(graph.graph))
    if not on_host:
        try:
            program.prepare()
        except _capture.Unsupported:
            on_host = _unsupported(graph, placeholders, on_device)
    if program.is_dynamic or on_host:
        on_host = _unsupported(graph, placeholders, on_device)
    if not on_host:
        return _boxed(program.forward)
    _compile_report.record_host(context.graph, kind, on_host, on_device)
    return _boxed(_divide(graph, on_host, kind, context, on_device).forward)


def _metadata() -> Any:
    return getattr(torch._guards.TracingContext.try_get(), "fw_metadata", None)


def _user_outputs(kind: str) -> int:
    """How many outputs the caller of a forward graph sees, with strides."""
    count = getattr(_metadata(), "num_forward_returns", None)
    return 0 if kind == "backward" or count is None else int(count)


def backend(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Optional[Dict[str, Any]] = None, mode: Any = None
) -> Callable[..., Any]:
    """The backend "hlokit" of torch.compile."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch.nn.attention import SDPBackend, sdpa_kernel

    unknown = set(options or {}) - set(Options._fields)
    if unknown:
        raise ValueError(f"options: there is no {', '.join(sorted(unknown))}; there are {', '.join(Options._fields)}")
    if options and _compile_device.uses_device(graph.graph):
        raise ValueError(f"options: {', '.join(options)} are for graphs of tensors on the host; the device's run in its session")
    context = _Context(Options(**(options or {})), _compile_report.record_graph(graph))
    alone = _compile_device.not_compiled(graph, example_inputs)
    if alone:
        _compile_report.record_host(context.graph, "forward", alone, True)
        return graph.forward  # type: ignore[no-any-return]

    def compiler(kind: str) -> Callable[..., Any]:
        def compile_graph(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> Any:
            if kind != "backward":
                _compile_report.record_copies(context.graph, len(getattr(_metadata(), "mutated_inp_runtime_indices", ())))
            return _compile_graph(graph, kind, context)

        return compile_graph

    compiled = aot_autograd(
        fw_compiler=compiler("forward"),
        bw_compiler=compiler("backward"),
        inference_compiler=compiler("inference"),
        partition_fn=min_cut_rematerialization_partition,
    )
    # The other kinds of attention are kernels of the CPU.
    with sdpa_kernel(SDPBackend.MATH):
        return compiled(graph, example_inputs)  # type: ignore[no-any-return]


def register() -> None:
    """Makes backend="hlokit" known to Dynamo, also by the device's name, which transformers asks for."""
    from torch._dynamo.backends import registry

    for name in ("hlokit", "tpu"):
        if name not in registry._COMPILER_FNS:
            registry.register_backend(backend, name=name)


def extract_compiled_graph(graph: torch.fx.GraphModule, args: Sequence[Any]) -> Callable[..., Any]:
    """What PyTorch's backend "openxla" calls, by torch_xla.core.dynamo_bridge, for a graph of AOTAutograd."""
    context = _Context(Options(), _compile_report.record_graph(graph))
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    for node, value in zip(placeholders, args):
        node.meta.setdefault("val", value)
    kind = "backward" if any(node.name.startswith("tangents") for node in placeholders) else "forward"
    compiled = _compile_graph(graph, kind, context)
    return lambda *given: compiled(list(given))


# Modules whose functions run while a program records, runs or reads; those of _modules.py and the like are PyTorch's own.
_RUN_BY_TORCH = ("_fallback", "_modes", "_program", "_session", "_tensor", "_threads", "_trace", "metrics", "runtime", "xla_model")


def _skip_own_frames() -> None:
    """Keeps Dynamo, which torch.compile imports, from capturing what these modules do."""
    compile_by_dynamo = torch.compile
    known: List[bool] = []

    @functools.wraps(compile_by_dynamo)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not known:
            known.append(True)
            rules = importlib.import_module("torch._dynamo.trace_rules")
            for name in _RUN_BY_TORCH:
                rules.add(f"{__package__}.{name}")
        return compile_by_dynamo(*args, **kwargs)

    torch.compile = call


def install() -> None:
    """Makes torch.compile's default backend, inductor, this one for graphs of tensors on the device, for which it has no code."""
    _skip_own_frames()
    wrapper: Any = torch._TorchCompileInductorWrapper  # type: ignore[attr-defined]
    compile_with_inductor = wrapper.__call__

    def call(self: Any, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        if _compile_device.uses_device(graph.graph):
            return backend(graph, inputs)
        return compile_with_inductor(self, graph, inputs)

    wrapper.__call__ = call
