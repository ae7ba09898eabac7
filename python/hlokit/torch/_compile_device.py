# SPDX-License-Identifier: Apache-2.0
"""Graphs of torch.compile whose tensors are on the device: each is recorded once, and a call appends its nodes to the lazy
graph as a unit, so that forward, backward and what is around them run as one program."""

import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hlokit import _hlokit

from . import _capture, _compile_report, _modes, _session, _tensor
from ._device import TPU, TYPES


def _tensors_of(node: Any) -> List[torch.Tensor]:
    value = node.meta.get("val", node.meta.get("example_value"))
    return [v for v in torch.utils._pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


def uses_device(graph: torch.fx.Graph) -> bool:
    """Whether a graph has tensors on the device."""
    return any(t.device.type in TYPES for node in graph.nodes for t in _tensors_of(node))


def home_of(graph: torch.fx.GraphModule) -> torch.device:
    """The device of a graph that has no arguments there."""
    found = (t.device for node in graph.graph.nodes for t in _tensors_of(node) if t.device.type in TYPES)
    return next(found, torch.device(TYPES[0]))


def nodes_of_host(graph: torch.fx.Graph) -> Dict[Any, str]:
    """The ops of tensors on the host, but for those of constants that only ops of the device use, with the reason."""
    constant = set()
    found: Dict[Any, str] = {}
    for node in graph.nodes:
        tensors = _tensors_of(node)
        on_host = bool(tensors) and all(t.device.type == "cpu" for t in tensors)
        if node.op == "get_attr" or (node.op == "call_function" and on_host):
            drawn = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
            if not drawn and all(n in constant for n in node.all_input_nodes):
                constant.add(node)
            else:
                found[node] = "its result is on the host"
    for node in reversed(graph.nodes):
        if node in constant and node.op == "call_function" and any(user in found or user.op == "output" for user in node.users):
            found[node] = "its result is on the host"
    return found


class _Writes(TorchDispatchMode):
    """Notes whether ops write to some of the storages."""

    def __init__(self, storages: Any):
        super().__init__()
        self._storages = storages
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func._schema.is_mutable:
            for place, argument in enumerate(func._schema.arguments):
                if argument.alias_info is not None and argument.alias_info.is_write:
                    value = args[place] if place < len(args) else kwargs.get(argument.name)
                    tensors = [v for v in tree_leaves(value) if isinstance(v, torch.Tensor)]
                    self.found = self.found or any(_storage_of(t) in self._storages for t in tensors)
        return func(*args, **kwargs)


def _storage_of(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def not_compiled(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Dict[Any, str]:
    """The ops of a graph of `xla` for which AOTAutograd would make another one, with the reason to run each by itself. Tensors of
    `xla` have no offsets and strides, from which it finds what they share and where they are."""
    reason = ""
    if any(_reads_strides(node) for node in graph.graph.nodes):
        reason = "the graph reads a part of a memory by strides"
    elif _writes_to_shared(graph, inputs):
        reason = "the graph writes to an argument whose memory another one shares"
    ops = ("call_function", "call_method", "call_module")
    return {node: reason for node in graph.graph.nodes if node.op in ops} if reason else {}


def _is_of_xla(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type in TYPES and value.device.type != TPU


def _reads_strides(node: Any) -> bool:
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if node.op not in ("call_function", "call_method") or not name.startswith("as_strided"):
        return False
    source = node.args[0] if node.args else node.kwargs.get("input")
    found = _tensors_of(source) if isinstance(source, torch.fx.Node) else []
    return any(_is_of_xla(t) and not is_whole(t) for t in found)


def is_whole(value: Any) -> bool:
    """Whether the elements of a tensor are all those of its memory, in order."""
    if not isinstance(value, torch.Tensor) or any(isinstance(n, torch.SymInt) for n in (*value.shape, *value.stride())):
        return False
    first = value.storage_offset()
    size = value.untyped_storage().nbytes()
    if isinstance(first, torch.SymInt) or isinstance(size, torch.SymInt):
        return False
    return value.is_contiguous() and first == 0 and size <= value.numel() * value.element_size()


def _writes_to_shared(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> bool:
    from torch._guards import detect_fake_mode
    from torch._subclasses.fake_tensor import FakeTensor

    by_storage: Dict[int, List[int]] = {}
    for place, value in enumerate(inputs):
        if _is_of_xla(value):
            by_storage.setdefault(_storage_of(value), []).append(place)
    groups = [places for places in by_storage.values() if any(inputs[place] is not inputs[places[0]] for place in places)]
    if not groups:
        return False
    nodes = [node for node in graph.graph.nodes if node.op == "placeholder"]
    examples = [node.meta.get("example_value", node.meta.get("val")) for node in nodes]
    fake = detect_fake_mode(examples)
    shared = [examples[place] for places in groups for place in places]
    if fake is None or not all(isinstance(value, FakeTensor) for value in shared):
        return True  # as far as is known
    writes = _Writes({_storage_of(value) for value in shared})
    try:
        with fake, torch.no_grad(), writes:
            graph(*examples)
    except Exception:  # noqa: BLE001: what is not known may write
        return True
    return writes.found


def _restrided(value: torch.Tensor, strides: Tuple[int, ...]) -> torch.Tensor:
    """The tensor with other strides, as a view of a contiguous one."""
    sizes = value.shape
    for dimension, stride in enumerate(strides):
        if stride == 0:
            value = value.narrow(dimension, 0, 1)
    order = sorted(range(len(strides)), key=lambda d: -strides[d])
    inverse = sorted(range(len(strides)), key=order.__getitem__)
    return value.permute(order).clone().permute(inverse).expand(sizes)


class Entry:
    """A recorded graph for one set of sizes. outputs: _Result and _Input of _compile, or what is no tensor."""

    def __init__(
        self,
        recorder: _capture.Recorder,
        arguments: Sequence[_capture.Argument],
        places: Sequence[int],
        seed: _capture.Argument,
        roots: Sequence[torch.Tensor],
        outputs: Sequence[Any],
        device: torch.device,
    ):
        self._places = places  # of the tensors among a call's arguments
        self._outputs = outputs
        self._device = device
        self._constants = [constant.data for constant in recorder.constants]
        self._attributes = recorder.attribute_values
        self._uploaded: Tuple[Any, int, List[Any]] = (None, 0, [])
        given = [*arguments, *recorder.constants, *recorder.attributes]
        lazies = [_tensor.value_of(root) for root in roots]
        self._graph = _hlokit._record_graph(lazies, [a.value for a in given], seed.value, _tensor.lazy_of(seed.tensor))

    def run(self, args: Sequence[Any], row: _compile_report.ProgramRow) -> List[Any]:
        start = time.perf_counter()
        tensors = [args[place] for place in self._places]
        session, ordinal = self._home(tensors)
        given = [self._on_device(tensor, session, ordinal) for tensor in tensors]
        given += self._constants_in(session, ordinal)
        given += [_tensor.value_of(tensor) for tensor in self._attributes]
        begin = time.perf_counter()
        lazies = self._graph.append(session, ordinal, given)
        row.run_seconds += time.perf_counter() - begin
        values = [self._value(output, args, lazies) for output in self._outputs]
        if self._device.type == TPU:
            _modes.after_unit(session, ordinal)
        row.calls += 1
        row.seconds += time.perf_counter() - start
        return values

    def _home(self, tensors: Sequence[Any]) -> Tuple[Any, int]:
        lazy: Optional[Any] = _tensor.home_of([*tensors, *self._attributes])
        if lazy is None:
            return _session.current(), _session.target_of(self._device)
        return _hlokit._lazy_session(lazy), _hlokit._lazy_ordinal(lazy)

    @staticmethod
    def _on_device(tensor: torch.Tensor, session: Any, ordinal: int) -> Any:
        lazy = _tensor.value_of(tensor)
        return _tensor.lazy_of(_tensor.upload(tensor.detach(), session, ordinal)) if lazy is None else lazy

    def _constants_in(self, session: Any, ordinal: int) -> List[Any]:
        if not self._constants:
            return []
        if self._uploaded[:2] != (session, ordinal):
            self._uploaded = (session, ordinal, [self._on_device(t, session, ordinal) for t in self._constants if t is not None])
        return self._uploaded[2]

    def _value(self, output: Any, args: Sequence[Any], lazies: Sequence[Any]) -> Any:
        if hasattr(output, "views"):
            return args[output.place]
        if not hasattr(output, "strides"):
            return output
        with _tensor.of_type(output.device or self._device.type):
            value: torch.Tensor = _hlokit._torch_wrap(lazies[output.place])
        return value if output.strides is None or value.device.type != TPU else _restrided(value, output.strides)
