# SPDX-License-Identifier: Apache-2.0
"""One program over many devices, with the names of torch_xla.distributed.spmd.

    import hlokit.torch.spmd as spmd
    spmd.use_spmd(devices=8)
    mesh = spmd.Mesh(range(8), (4, 2), ("data", "model"))
    spmd.mark_sharding(model[0].weight, mesh, ("model", None))
    spmd.mark_sharding(x, mesh, ("data", None))

The device is a virtual one, SPMD:0: its tensors are whole, and its programs are divided by the annotations among the devices
of the mesh, where they run with the collectives that this takes.
"""

import ast
import collections
import dataclasses
import enum
import itertools
import math
import types
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np
import torch
from torch.utils._pytree import tree_flatten

from hlokit import _hlokit

from . import _session
from ._tensor import fetch, is_lazy, lazy_of, upload

PartitionSpec = Sequence[Union[int, str, Sequence[Union[int, str]], None]]

_global_mesh: Optional["Mesh"] = None


def use_spmd(auto: bool = False, devices: Optional[int] = None) -> None:
    """Makes this session's device the virtual one of as many devices as it had, or as given.

    Starts a new session unless this one is such: to be called before tensors are made.
    """
    if auto:
        raise NotImplementedError("use_spmd(auto=True): there is no automatic sharding; mark_sharding annotates tensors")
    count = devices or _session.virtual_devices()
    if not is_spmd() or count != _session.virtual_devices():
        _session.configure(count, spmd=True)


def is_spmd() -> bool:
    """Whether the session has one virtual device."""
    return _session.is_spmd()


def global_runtime_device_count() -> int:
    """The devices among which programs are divided."""
    return _session.virtual_devices()


# ---- meshes ----


class Mesh:
    """Devices in an array, row-major, whose axes may have names."""

    def __init__(self, device_ids: Any, mesh_shape: Sequence[int], axis_names: Optional[Sequence[str]] = None):
        self.device_ids = np.asarray(list(device_ids) if isinstance(device_ids, range) else device_ids).reshape(-1)
        self.mesh_shape = tuple(int(size) for size in mesh_shape)
        self.axis_names = None if axis_names is None else tuple(axis_names)
        size = self.size()
        if axis_names is not None:
            assert len(self.mesh_shape) == len(axis_names), (
                f"Number of axis names ({len(axis_names)}) must match mesh dimensions ({len(self.mesh_shape)})"
            )
            assert len(set(axis_names)) == len(axis_names), f"Axis names must be unique, got: {axis_names}"
        count = len(self.device_ids)
        assert count == size, f"Number of device IDs ({count}) must match mesh size ({size})"
        assert count == len(np.unique(self.device_ids)), f"Device IDs must be unique, got: {self.device_ids}"
        assert all(0 <= d < size for d in self.device_ids), f"Device IDs must be less than mesh size ({size}), got: {self.device_ids}"
        if is_spmd():
            devices = global_runtime_device_count()
            assert count == devices, f"Number of device IDs ({count}) must match the global number of devices ({devices})"

    def size(self) -> int:
        return int(np.prod(self.mesh_shape))

    def shape(self) -> "collections.OrderedDict[Any, int]":
        names: Sequence[Any] = range(len(self.mesh_shape)) if self.axis_names is None else self.axis_names
        return collections.OrderedDict(zip(names, self.mesh_shape))

    def get_logical_mesh(self) -> Any:
        return self.device_ids.reshape(self.mesh_shape)

    def get_axis_name_idx(self, name: str) -> Optional[int]:
        return None if self.axis_names is None or name not in self.axis_names else self.axis_names.index(name)

    def __str__(self) -> str:
        return str({"device_ids": self.device_ids.tolist(), "mesh_shape": self.mesh_shape, "axis_names": self.axis_names})

    @classmethod
    def from_str(cls, mesh_str: str) -> Optional["Mesh"]:
        """The mesh that was printed; None of other text."""
        try:
            given = ast.literal_eval(mesh_str)
            return cls(given["device_ids"], given["mesh_shape"], given["axis_names"])
        except (ValueError, SyntaxError, KeyError, TypeError):
            return None

    def _axes(self, entry: Any) -> List[int]:
        """The numbers of the axes that a partition spec names for one dimension."""
        if entry is None:
            return []
        if isinstance(entry, (tuple, list)):
            if any(isinstance(axis, (tuple, list)) for axis in entry):
                raise AssertionError("Partition spec cannot contain nested tuples")
            return [number for axis in entry for number in self._axes(axis)]
        if isinstance(entry, str):
            found = self.get_axis_name_idx(entry)
            if found is None:
                raise ValueError(f"Axis name {entry} is not defined in the given mesh")
            return [found]
        if isinstance(entry, int):
            return [entry + len(self.mesh_shape) if entry < 0 else entry]
        raise ValueError(f"Spec type {type(entry)} is not supported in partition spec")

    def translate(self, partition_spec: PartitionSpec) -> List[List[int]]:
        """The axes of each dimension, by number."""
        return [self._axes(entry) for entry in partition_spec]

    def get_op_sharding(self, partition_spec: PartitionSpec) -> str:
        """The sharding as PyTorch/XLA writes it: {devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}."""
        axes = self.translate(partition_spec)
        used = [axis for group in axes for axis in group]
        if not used or self.size() == 1:
            return "{replicated}"
        rest = [axis for axis in range(len(self.mesh_shape)) if axis not in used]
        devices = self.get_logical_mesh().transpose(used + rest).reshape(-1).tolist()
        tiles = [math.prod(self.mesh_shape[axis] for axis in group) for group in axes]
        copies = math.prod(self.mesh_shape[axis] for axis in rest)
        if copies > 1:
            tiles.append(copies)
        text = f"devices=[{','.join(map(str, tiles))}]{','.join(map(str, devices))}"
        return "{" + text + (" last_tile_dim_replicate}" if copies > 1 else "}")


class HybridMesh(Mesh):
    """The mesh of several slices: along each axis dcn_mesh_shape of them, each of ici_mesh_shape devices."""

    def __init__(
        self,
        *,
        ici_mesh_shape: Sequence[int],
        dcn_mesh_shape: Optional[Sequence[int]] = None,
        axis_names: Optional[Sequence[str]] = None,
    ):
        ici = tuple(ici_mesh_shape)
        dcn = tuple(dcn_mesh_shape) if dcn_mesh_shape is not None else (1,) * len(ici)
        assert len(ici) == len(dcn), f"ici_mesh_shape {ici} and dcn_mesh_shape {dcn} must have as many axes"
        self.ici_mesh_shape = ici
        self.dcn_mesh_shape = dcn
        rank = len(ici)
        shape = tuple(a * b for a, b in zip(dcn, ici))
        slices = np.arange(int(np.prod(shape))).reshape(dcn + ici)
        order = [axis for pair in zip(range(rank), range(rank, 2 * rank)) for axis in pair]
        super().__init__(slices.transpose(order).reshape(-1), shape, axis_names)


def set_global_mesh(mesh: Optional[Mesh]) -> None:
    """The mesh of what is given none."""
    global _global_mesh
    _global_mesh = mesh


def get_global_mesh() -> Optional[Mesh]:
    return _global_mesh


def get_1d_mesh(axis_name: Optional[str] = None) -> Mesh:
    """All devices along one axis."""
    count = global_runtime_device_count()
    return Mesh(range(count), (count,), None if axis_name is None else (axis_name,))


# ---- annotations ----


class ShardingType(enum.IntEnum):
    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    TILED = 3
    MANUAL = 4
    PARTIAL = 5
    UNKNOWN = 6


def _lazy(tensor: torch.Tensor) -> Any:
    lazy = lazy_of(tensor)
    if lazy is None:
        raise TypeError(f"a sharding is of a tensor of an XLA device, not of {tensor.device}")
    return lazy


def mark_sharding(t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec) -> torch.Tensor:
    """Divides the tensor, in place, along the axes of the mesh that the spec names for each of its dimensions: the number or
    name of an axis, a tuple of them, or None."""
    assert len(t.shape) == len(partition_spec), (
        f"Partition spec length ({len(partition_spec)}) should be equal to the input rank ({len(t.shape)})."
    )
    axes = [axis for entry in mesh.translate(partition_spec) for axis in entry]
    assert len(axes) == len(set(axes)), f"Each device mesh dimension should appear at most once in partition_spec {partition_spec}."
    ids = [int(device) for device in mesh.device_ids]
    _hlokit._lazy_mark_sharding(_lazy(t), list(mesh.mesh_shape), ids, mesh.translate(partition_spec))
    return t


def annotate_custom_sharding(t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec) -> torch.Tensor:
    """As mark_sharding, of a tensor that may be annotated already."""
    clear_sharding(t)
    return mark_sharding(t, mesh, partition_spec)


def clear_sharding(t: torch.Tensor) -> torch.Tensor:
    """Takes the annotation away: the tensor is on all devices."""
    _hlokit._lazy_clear_sharding(_lazy(t))
    return t


def get_sharding_spec(t: torch.Tensor) -> str:
    """The distribution of a tensor as in HLO, "{devices=[2,1]0,1}", as it was annotated or as its program computed it; "" if
    it is on all devices."""
    found = _hlokit._lazy_sharding(_lazy(t))
    return "" if found is None or not found[0] else found[3]


get_sharding = get_sharding_spec


def get_sharding_type(t: torch.Tensor) -> Optional[ShardingType]:
    """How a tensor is distributed; None of one that has no annotation."""
    found = _hlokit._lazy_sharding(_lazy(t))
    if found is None:
        return None
    tiles, _, copies, _ = found
    if not tiles:
        return ShardingType.REPLICATED
    return ShardingType.PARTIAL if copies else ShardingType.TILED


def wrap_if_sharded(x: Any) -> Any:
    """The same: a tensor with an annotation is a torch.Tensor."""
    return x


def wrap_as_sharded_tensor(t: torch.Tensor, **_: Any) -> torch.Tensor:
    return t


def unwrap_sharded_tensor(t: torch.Tensor) -> torch.Tensor:
    return t


def enable_manual_sharding(t: torch.Tensor, partition_spec: PartitionSpec, *, mesh: Optional[Mesh] = None) -> torch.Tensor:
    raise NotImplementedError("manual sharding: programs for the parts of tensors are threads of spawn() (hlokit.torch.spawn)")


def disable_manual_sharding(
    t: torch.Tensor, partition_spec: PartitionSpec, full_shape: Any, *, mesh: Optional[Mesh] = None
) -> torch.Tensor:
    raise NotImplementedError("manual sharding: programs for the parts of tensors are threads of spawn() (hlokit.torch.spawn)")


class MarkShardingFunction(torch.autograd.Function):
    """mark_sharding of a copy, and of its gradient."""

    @staticmethod
    def forward(ctx: Any, torch_tensor: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec) -> torch.Tensor:  # type: ignore[override]
        ctx.mesh, ctx.partition_spec = mesh, partition_spec
        return mark_sharding(torch_tensor.clone(), mesh, partition_spec)

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:  # type: ignore[override]
        return mark_sharding(grad_output.clone(), ctx.mesh, ctx.partition_spec), None, None


def mark_sharding_with_gradients(t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec) -> torch.Tensor:
    """A copy of the tensor that is divided, as its gradient will be."""
    return MarkShardingFunction.apply(t, mesh, partition_spec)  # type: ignore[no-untyped-call, no-any-return]


@dataclasses.dataclass
class ShardingSpec:
    """A mesh and a partition spec, for data that go to the device."""

    mesh: Mesh
    partition_spec: PartitionSpec
    minibatch: Optional[bool] = False

    def can_apply(self, t: torch.Tensor) -> bool:
        return len(t.shape) == len(self.partition_spec)

    def apply(self, t: torch.Tensor) -> None:
        mark_sharding(t, self.mesh, self.partition_spec)


def apply_shardings(batch: Any, sharding: Any) -> Any:
    """Annotates the tensors of a batch by a ShardingSpec for those that have as many dimensions, or by one for each in a dict,
    list or tuple like the batch."""
    if sharding is None:
        return batch
    if isinstance(sharding, dict):
        for name, spec in sharding.items():
            apply_shardings(batch[name], spec)
    elif isinstance(sharding, (list, tuple)):
        for value, spec in zip(batch, sharding):
            apply_shardings(value, spec)
    else:
        for tensor in tree_flatten(batch)[0]:
            if isinstance(tensor, torch.Tensor) and sharding.can_apply(tensor):
                sharding.apply(tensor)
    return batch


# ---- parts ----


@dataclasses.dataclass
class XLAShard:
    """The part of a tensor on one device, on the host. indices: a slice of each dimension of the tensor."""

    data: torch.Tensor
    indices: List[slice]
    shard_device: str
    replica_id: int

    @property
    def unpadded_data(self) -> torch.Tensor:
        return self.data


def shard_indices(t: torch.Tensor) -> List[Tuple[List[slice], int]]:
    """By device the slices of the tensor that it holds, and the number of its copy."""
    found = _hlokit._lazy_sharding(_lazy(t))
    sizes = list(t.shape)
    if found is None or not found[0]:
        return [([slice(0, size) for size in sizes], device) for device in range(global_runtime_device_count())]
    tiles, devices, _, _ = found
    result: Dict[int, Tuple[List[slice], int]] = {}
    for place, at in zip(itertools.product(*map(range, tiles)), devices):
        slices = []
        for size, count, number in zip(sizes, tiles, place):
            part = -(-size // count)
            slices.append(slice(min(part * number, size), min(part * (number + 1), size)))
        result[at] = (slices, place[len(sizes)] if len(place) > len(sizes) else 0)
    return [result[device] for device in sorted(result)]


def local_shards(t: torch.Tensor) -> List[XLAShard]:
    """The parts of a tensor, by device."""
    value = fetch(t)
    return [
        XLAShard(value[tuple(slices)].clone() if slices else value.clone(), slices, f"SPMD:0 of {device}", copy)
        for device, (slices, copy) in enumerate(shard_indices(t))
    ]


def load_local_shards_(t: torch.Tensor, shards: Sequence[XLAShard]) -> None:
    """Sets the tensor to the parts, which keeps its annotation."""
    places = shard_indices(t)
    if len(shards) != len(places):
        raise ValueError(f"the tensor is in {len(places)} parts on its devices, and {len(shards)} are given")
    value = fetch(t).clone()
    for shard, (slices, _) in zip(shards, places):
        value[tuple(slices)] = shard.data
    set_values([t], [value])


def set_values(targets: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    """Gives tensors of the device the values of those on the host; annotations stay."""
    for target, value in zip(targets, values):
        lazy = _lazy(target)
        sent = upload(value.detach().to(target.dtype), _hlokit._lazy_session(lazy), _hlokit._lazy_ordinal(lazy))
        _hlokit._lazy_write(lazy, lazy_of(sent))


# ---- modules ----


class XLAPatchedLinear(torch.autograd.Function):
    """x @ weight.T + bias, whose derivatives do not merge dimensions either."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:  # type: ignore[override]
        ctx.save_for_backward(input, weight)
        ctx.has_bias = bias is not None
        product = torch.einsum("...n,mn->...m", input, weight)
        return product if bias is None else product + bias

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> Any:  # type: ignore[override]
        input, weight = ctx.saved_tensors
        of_bias = torch.einsum("...m->m", grad_output) if ctx.has_bias else None
        of_weight = torch.einsum("...m,...n->mn", grad_output, input)
        return torch.einsum("...m,mn->...n", grad_output, weight), of_weight, of_bias


def xla_patched_nn_linear_forward(m: torch.nn.Linear, input: torch.Tensor) -> torch.Tensor:
    """The forward of a linear layer, for `layer.forward = MethodType(xla_patched_nn_linear_forward, layer)`."""
    return XLAPatchedLinear.apply(input, m.weight, m.bias)  # type: ignore[no-untyped-call, no-any-return]


def apply_xla_patch_to_nn_linear(module: torch.nn.Module, patched: Callable[..., Any] = xla_patched_nn_linear_forward) -> torch.nn.Module:
    """Gives the linear layers of a module another forward."""
    for layer in module.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.forward = types.MethodType(patched, layer)  # type: ignore[method-assign]
    return module


def apply_backward_optimization_barrier(m: torch.nn.Module) -> None:
    """Keeps the compiler from joining the derivatives of the module with those of others."""
    from . import xla_model

    def barrier(module: torch.nn.Module, grad_input: Any, grad_output: Any) -> None:
        gradients = [p.grad for p in module.parameters() if p.grad is not None]
        if gradients:
            xla_model.optimization_barrier_(gradients)

    m.register_full_backward_hook(barrier)  # type: ignore[arg-type]


# ---- DTensor's placements ----


def convert_to_xla_mesh(dt_mesh: Any) -> Mesh:
    """The mesh of a DeviceMesh."""
    use_spmd(devices=None if is_spmd() else int(dt_mesh.size()))
    return Mesh(dt_mesh.mesh.flatten().tolist(), tuple(dt_mesh.mesh.size()), dt_mesh.mesh_dim_names)


def convert_to_xla_partition_spec(tensor: torch.Tensor, placements: Sequence[Any]) -> Tuple[Any, ...]:
    """The partition spec of Shard and Replicate, one for each axis of the mesh."""
    axes: List[List[int]] = [[] for _ in tensor.shape]
    for number, placement in enumerate(placements):
        if placement.is_shard():
            axes[placement.dim % tensor.dim()].append(number)
        elif not placement.is_replicate():
            raise ValueError(f"{placement}: a tensor is distributed by Shard and Replicate")
    return tuple(None if not a else a[0] if len(a) == 1 else tuple(a) for a in axes)


def xla_distribute_tensor(tensor: torch.Tensor, device_mesh: Any, placements: Optional[Sequence[Any]] = None) -> torch.Tensor:
    """distribute_tensor() of a mesh of type xla: the tensor on the virtual device, annotated."""
    from torch.distributed.tensor import Replicate

    mesh = convert_to_xla_mesh(device_mesh)
    placements = [Replicate() for _ in mesh.mesh_shape] if placements is None else placements
    assert len(placements) == device_mesh.ndim, "`placements` must have the same length as `device_mesh.ndim`"
    spec = convert_to_xla_partition_spec(tensor, placements)
    result = tensor
    if not is_lazy(tensor):
        result = tensor.detach().to(_session.device())
        if isinstance(tensor, torch.nn.Parameter):
            result = torch.nn.Parameter(result, requires_grad=tensor.requires_grad)
        else:
            result.requires_grad_(tensor.requires_grad)
    return annotate_custom_sharding(result, mesh, spec)


def xla_distribute_module(
    module: torch.nn.Module,
    device_mesh: Any = None,
    partition_fn: Optional[Callable[..., None]] = None,
    input_fn: Optional[Callable[..., Any]] = None,
    output_fn: Optional[Callable[..., Any]] = None,
) -> torch.nn.Module:
    """distribute_module() of a mesh of type xla: partition_fn(name, module, mesh) annotates; other parameters are on all
    devices."""
    module.to(_session.device())
    if partition_fn is not None:
        for name, inner in module.named_modules():
            partition_fn(name, inner, device_mesh)
    if input_fn is not None:
        take = input_fn
        module.register_forward_pre_hook(lambda _, inputs: take(inputs, device_mesh))
    if output_fn is not None:
        give = output_fn
        module.register_forward_hook(lambda _, inputs, outputs: give(outputs, device_mesh))
    return module
