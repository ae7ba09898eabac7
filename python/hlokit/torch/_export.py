# SPDX-License-Identifier: Apache-2.0
"""Programs of torch.export as HLO."""

import os
import threading
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

import torch
from torch.utils import _pytree

import hlokit
from hlokit import _hlokit

from . import _capture


class Recent:
    """The programs for the sizes that were used last, of any thread: others are made again."""

    def __init__(self, limit: int = 64):
        self._limit = limit
        self._lock = threading.Lock()
        self._values: Dict[Any, Any] = {}  # the one used last is the last

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Any) -> Any:
        with self._lock:
            value = self._values.pop(key, None)
            if value is not None:
                self._values[key] = value
            return value

    def put(self, key: Any, value: Any) -> Any:
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._limit:
                del self._values[next(iter(self._values))]
            return value


class ProgramArgument(NamedTuple):
    """An argument of the HLO of an exported program."""

    name: str  # of the HLO parameter
    kind: str  # "parameter", "buffer", "input", "seed"
    target: str  # its name in the module, "layer.0.weight"; of an input that in the program


class ProgramResult(NamedTuple):
    """A result of the HLO of an exported program."""

    kind: str  # "output"; "mutated buffer", "mutated input": the new value of what `target` names
    target: str


class ExportedModule:
    """An exported program as HLO. module: the HLO; arguments and results: what it takes and returns, in order.

    A call takes what the program takes, and returns what it returns; parameters and buffers are those of the program. Arguments
    of other sizes, in the ranges of the program, run on another HLO, made by the first such call and kept while
    it is one of the last 64.
    """

    def __init__(
        self,
        program: Any,
        module: hlokit.Module,
        arguments: List[ProgramArgument],
        results: List[ProgramResult],
        outputs: List[Any],
        symbols: Dict[Any, int],
        of_sizes: Callable[[Dict[Any, int]], "ExportedModule"],
    ):
        self.module = module
        self._symbols = symbols
        self._of_sizes = of_sizes
        self._others = Recent()
        self.arguments = arguments
        self.results = results
        self._program = program
        self._outputs = outputs  # by output of the program: the number of a result, or what is no tensor
        self._executables: Dict[str, Any] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(args, kwargs)

    def run(self, args: Any = (), kwargs: Optional[Mapping[str, Any]] = None, *, engine: str = "fast", seed: Optional[int] = None) -> Any:
        """Runs the program, with an engine of hlokit.Executable. Buffers that it writes change, as in the module."""
        from ._compile import form_of, from_host

        inputs = _inputs_by_name(self._program, args, dict(kwargs or {}))
        symbols = {**self._symbols, **_symbols_of(self._program, inputs)}
        if symbols != self._symbols:
            key = tuple(sorted((str(symbol), size) for symbol, size in symbols.items()))
            other = self._others.get(key) or self._others.put(key, self._of_sizes(symbols))
            return other.run(args, kwargs, engine=engine, seed=seed)
        form, to_tensor = form_of(self.module)
        executable = self._executables.get(engine)
        if executable is None:
            executable = self._executables[engine] = hlokit.Executable(self.module, engine=engine, results=form)
        state = {**dict(self._program.named_parameters()), **dict(self._program.named_buffers())}
        given: List[Any] = []
        for argument in self.arguments:
            if argument.kind == "seed":
                given.append(torch.tensor(seed) if seed is not None else torch.randint(2**62, ()))
            else:
                given.append(inputs[argument.target] if argument.kind == "input" else state[argument.target])
        values = executable(*[from_host(value) for value in given])
        tensors = [to_tensor(value) for value in values]
        with torch.no_grad():
            for result, tensor in zip(self.results, tensors):
                if result.kind == "mutated buffer":
                    state[result.target].copy_(tensor)
                elif result.kind == "mutated input":
                    inputs[result.target].copy_(tensor)
        flat = [tensors[value.number] if isinstance(value, _Result) else value for value in self._outputs]
        return _pytree.tree_unflatten(flat, self._program.call_spec.out_spec)

    def stablehlo(self) -> str:
        """The StableHLO text."""
        return self.module.to_format("stablehlo").decode()

    def save(self, path: Union[str, "os.PathLike[str]"], format: Optional[str] = None) -> None:
        """Writes the HLO or StableHLO, as Module.save does: the format is that of the suffix, or `format`."""
        self.module.save(path, format)


class _Result(NamedTuple):
    number: int


def from_exported(program: Any, **options: Any) -> hlokit.Module:
    """The HLO of a torch.export.ExportedProgram: exported(program, **options).module."""
    return exported(program, **options).module


def exported(
    program: Any,
    *,
    parameters: str = "arguments",
    sizes: Optional[Mapping[str, int]] = None,
    decompositions: Optional[Dict[Any, Callable[..., Any]]] = None,
    name: str = "exported",
) -> ExportedModule:
    """The HLO of a torch.export.ExportedProgram, with what its arguments and results are.

    Arguments are the parameters, buffers and inputs of the program, in its order; a last one, `seed`, if it draws random
    numbers. parameters="constants" makes constants of parameters and of buffers that the program does not write. Results are
    new values of buffers and inputs that the program writes, which may share memory with the arguments, then its outputs.
    sizes: of dynamic dimensions, by the name of the torch.export.Dim or of the symbol, {"batch": 8}; they are needed where
    the program has any. decompositions: functions of tensors for ops that have no HLO. Instructions have the lines and
    modules of the program as metadata.

    Raises ValueError for sizes that are missing or out of range, RuntimeError for an op without HLO, with its line.
    """
    if parameters not in ("arguments", "constants"):
        raise ValueError(f'parameters: "{parameters}" is none of arguments and constants')
    if not hasattr(program, "graph_signature"):
        raise TypeError(f"expected a torch.export.ExportedProgram, found {type(program).__name__}")
    program = program.run_decompositions({})

    def of_sizes(symbols: Dict[Any, int]) -> ExportedModule:
        with _capture.recording(decompositions) as recorder:
            return _record(recorder, program, parameters == "constants", symbols, name, of_sizes)

    return of_sizes(_symbols(program, dict(sizes or {})))


def _record(
    recorder: _capture.Recorder,
    program: Any,
    constants: bool,
    symbols: Dict[Any, int],
    name: str,
    of_sizes: Callable[[Dict[Any, int]], ExportedModule],
) -> ExportedModule:
    signature = program.graph_signature
    state = {**program.state_dict, **program.constants}
    written = set(signature.buffers_to_mutate.values())
    arguments: List[_capture.Argument] = []
    described: List[ProgramArgument] = []
    by_name: Dict[str, int] = {}
    values: List[Any] = []
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for spec in signature.input_specs:
        kind = spec.kind.name
        if not hasattr(spec.arg, "name") or spec.arg.name not in nodes:
            values.append(getattr(spec.arg, "value", None))
            continue
        node = nodes[spec.arg.name]
        example = node.meta.get("val")
        if not isinstance(example, torch.Tensor):
            values.append(_concrete(example, symbols))
            continue
        fixed = kind == "CONSTANT_TENSOR" or (constants and kind in ("PARAMETER", "BUFFER") and spec.target not in written)
        shape = [_concrete(size, symbols) for size in example.shape]
        label = spec.target or spec.arg.name
        data = state[spec.target].detach() if fixed else None
        argument = recorder.argument(shape, example.dtype, spec.arg.name, label, data)
        values.append(argument.tensor)
        if fixed:
            recorder.constants.append(argument)
        else:
            by_name[spec.arg.name] = by_name[label] = len(arguments)
            arguments.append(argument)
            described.append(ProgramArgument(spec.arg.name, _KINDS.get(kind, "input"), label))
    seed = recorder.seed()
    outputs = recorder.run(program.graph_module, values)
    results: List[Any] = []
    kinds: List[ProgramResult] = []
    aliases: List[Tuple[int, int]] = []
    returned: List[Any] = []
    for spec, value in zip(signature.output_specs, outputs):
        kind = spec.kind.name
        place: Any = value
        if isinstance(value, torch.Tensor):
            place = _Result(len(results))
            results.append(value)
            kinds.append(ProgramResult(_RESULTS.get(kind, "output"), spec.target if kind in _RESULTS else spec.arg.name))
            if kind in _RESULTS and spec.target in by_name:
                aliases.append((place.number, by_name[spec.target]))
        if kind not in _RESULTS:
            returned.append(place)
    module = recorder.module(results, [*arguments, seed], name)
    if _capture.drop_unused_seed(module):
        described.append(ProgramArgument("seed", "seed", "seed"))
    _hlokit._set_aliases(module, sorted(aliases))
    return ExportedModule(program, module, described, kinds, returned, symbols, of_sizes)


_KINDS = {"PARAMETER": "parameter", "BUFFER": "buffer", "USER_INPUT": "input"}
_RESULTS = {"BUFFER_MUTATION": "mutated buffer", "PARAMETER_MUTATION": "mutated buffer", "USER_INPUT_MUTATION": "mutated input"}


def _concrete(size: Any, symbols: Dict[Any, int]) -> Any:
    """A number of the program, with the sizes of its dynamic dimensions."""
    if not isinstance(size, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return size
    value = size.node.expr.subs(symbols)
    return bool(value) if isinstance(size, torch.SymBool) else float(value) if isinstance(size, torch.SymFloat) else int(value)


def _symbols(program: Any, sizes: Dict[str, int]) -> Dict[Any, int]:
    """The sizes of the symbols of dynamic dimensions."""
    names: Dict[Any, List[str]] = {symbol: [str(symbol)] for symbol in program.range_constraints}
    for node in program.graph.nodes:
        example = node.meta.get("val")
        if node.op != "placeholder":
            continue
        for size in example.shape if isinstance(example, torch.Tensor) else [example]:
            if isinstance(size, torch.SymInt) and not size.node.expr.is_number:
                environment = size.node.shape_env
                for symbol, sources in getattr(environment, "var_to_sources", {}).items():
                    known = names.setdefault(symbol, [str(symbol)])
                    for source in sources:
                        label = getattr(environment, "source_name_to_debug_name", {}).get(source.name)
                        if label and label not in known:
                            known.insert(0, label)
    used = {s for node in program.graph.nodes if node.op == "placeholder" for s in _free_symbols(node.meta.get("val"))}
    result: Dict[Any, int] = {}
    for symbol in used:
        found = [n for n in names.get(symbol, [str(symbol)]) if n in sizes]
        if not found:
            raise ValueError(f"sizes: the dimension {names.get(symbol, [symbol])[0]} is dynamic: give its size")
        size = sizes[found[0]]
        bounds = program.range_constraints.get(symbol)
        if bounds is not None and not bounds.lower <= size <= bounds.upper:
            raise ValueError(f"sizes: {found[0]} is from {bounds.lower} to {bounds.upper}, not {size}")
        result[symbol] = size
    unknown = set(sizes) - {n for symbol in used for n in names.get(symbol, [str(symbol)])}
    if unknown:
        raise ValueError(f"sizes: the program has no dynamic dimension {', '.join(sorted(unknown))}")
    return result


def _symbols_of(program: Any, inputs: Mapping[str, Any]) -> Dict[Any, int]:
    """The sizes of the symbols of dynamic dimensions in a call. Raises ValueError for those that the program does not take."""
    found: Dict[Any, int] = {}
    dynamic = []  # (name, dimension, its size in the program, that of the call)
    for node in program.graph.nodes:
        value, example = inputs.get(node.name), node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, int) and isinstance(example, torch.SymInt):
            if example.node.expr.is_symbol:
                found[example.node.expr] = value
        if node.op != "placeholder" or not isinstance(value, torch.Tensor) or not isinstance(example, torch.Tensor):
            continue
        if value.dim() != example.dim():
            raise ValueError(f"{node.name} has {value.dim()} dimensions, the program takes {example.dim()}")
        for number, (size, expected) in enumerate(zip(value.shape, example.shape)):
            dynamic.append((node.name, number, expected, size))
            if isinstance(expected, torch.SymInt) and expected.node.expr.is_symbol:
                found.setdefault(expected.node.expr, size)
    for name, number, expected, size in dynamic:
        if any(symbol not in found for symbol in _free_symbols(expected)):
            continue  # of a dimension that only expressions name
        wanted = _concrete(expected, found)
        if wanted != size:
            raise ValueError(f"{name} has the size {size} in dimension {number}, the program takes {wanted}")
    for symbol, size in found.items():
        bounds = program.range_constraints.get(symbol)
        if bounds is not None and not bounds.lower <= size <= bounds.upper:
            raise ValueError(f"a dynamic dimension, {symbol}, is from {bounds.lower} to {bounds.upper}, not {size}")
    return found


def _free_symbols(value: Any) -> Any:
    sizes = value.shape if isinstance(value, torch.Tensor) else [value]
    return {s for size in sizes if isinstance(size, torch.SymInt) for s in size.node.expr.free_symbols}


def _inputs_by_name(program: Any, args: Any, kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """What the caller gives, by the names of the program's inputs."""
    order = list(program.call_spec.in_spec.child(1).context) if program.call_spec.in_spec.num_children > 1 else []
    kwargs = {name: kwargs[name] for name in order if name in kwargs} | {n: v for n, v in kwargs.items() if n not in order}
    flat, spec = _pytree.tree_flatten((tuple(args), kwargs))
    if spec != program.call_spec.in_spec:
        raise TypeError(f"expected arguments like those of the export, {program.call_spec.in_spec}; found {spec}")
    names = [s.arg.name for s in program.graph_signature.input_specs if s.kind.name == "USER_INPUT"]
    return dict(zip(names, flat))
