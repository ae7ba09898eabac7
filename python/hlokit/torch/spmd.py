# SPDX-License-Identifier: Apache-2.0
"""Meshes and shardings, with the names of torch_xla.distributed.spmd.

A program with use_spmd() is one of a virtual device, and shardings say how its tensors lie on the devices behind it: values do
not depend on them. Here the program runs as it is written.
"""

import enum
from collections import OrderedDict
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy
import torch
from torch.utils._pytree import tree_flatten

from . import _lines, runtime, xla_model

PartitionSpec = Tuple[Any, ...]
_global_mesh: Optional["Mesh"] = None


class ShardingType(enum.IntEnum):
    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    TILED = 3
    MANUAL = 4
    PARTIAL = 5
    UNKNOWN = 6


class Mesh:
    """Devices in an array whose axes have names."""

    def __init__(self, device_ids: Any, mesh_shape: Sequence[int], axis_names: Optional[Sequence[str]] = None):
        ids = numpy.asarray(device_ids).reshape(-1)
        count = runtime.global_runtime_device_count()
        shape = tuple(int(n) for n in mesh_shape)
        if len(ids) != count:
            raise AssertionError(
                f"Number of device IDs ({len(ids)}) must match the global number of devices ({count}; hlokit: --devices=N)"
            )
        if axis_names is not None and (len(axis_names) != len(shape) or len(set(axis_names)) != len(axis_names)):
            raise AssertionError(f"axis names {tuple(axis_names)}: expected {len(shape)} different ones")
        if numpy.prod(shape) != len(ids) or sorted(ids.tolist()) != list(range(len(ids))):
            raise AssertionError(f"a mesh of {shape} takes the devices 0 to {int(numpy.prod(shape)) - 1}, each once")
        self.device_ids = ids
        self.mesh_shape = shape
        self.axis_names = None if axis_names is None else tuple(axis_names)

    def size(self) -> int:
        return int(numpy.prod(self.mesh_shape))

    def shape(self) -> "OrderedDict[Any, int]":
        return OrderedDict(zip(self.axis_names or range(len(self.mesh_shape)), self.mesh_shape))

    def get_logical_mesh(self) -> Any:
        return self.device_ids.reshape(self.mesh_shape)

    def get_axis_name_idx(self, name: str) -> Optional[int]:
        names = self.axis_names or ()
        return names.index(name) if name in names else None

    def axes_of(self, entry: Any) -> List[int]:
        """The axes that an entry of a partition spec names."""
        if entry is None:
            return []
        if isinstance(entry, (tuple, list)):
            return [axis for part in entry for axis in self.axes_of(part)]
        axis = self.get_axis_name_idx(entry) if isinstance(entry, str) else int(entry)
        if axis is None or not 0 <= axis < len(self.mesh_shape):
            raise ValueError(f"Axis name {entry} is not defined in the given mesh")
        return [axis]

    def get_op_sharding(self, partition_spec: PartitionSpec) -> str:
        """The sharding as HLO writes it: {devices=[4,1,2]<=[8] last_tile_dim_replicate}."""
        axes = [self.axes_of(entry) for entry in partition_spec]
        used = [axis for group in axes for axis in group]
        if len(set(used)) != len(used):
            raise AssertionError(f"Each device mesh dimension should appear at most once in partition_spec {partition_spec}.")
        if not used or self.size() == 1:
            return "{replicated}"
        rest = [axis for axis in range(len(self.mesh_shape)) if axis not in used]
        devices = self.get_logical_mesh().transpose(used + rest).reshape(-1).tolist()
        tiles = [int(numpy.prod([self.mesh_shape[a] for a in group], initial=1)) for group in axes]
        copies = int(numpy.prod([self.mesh_shape[a] for a in rest], initial=1))
        if copies > 1:
            tiles.append(copies)
        order = f"<=[{self.size()}]" if devices == sorted(devices) else "".join(str(devices)).replace(" ", "")[1:-1]
        text = f"devices=[{','.join(map(str, tiles))}]{order}"
        return "{" + text + (" last_tile_dim_replicate}" if copies > 1 else "}")

    def __repr__(self) -> str:
        return (
            f"{{'device_ids': {self.device_ids.tolist()}, 'mesh_shape': {self.mesh_shape}, 'axis_names': {self.axis_names}}}"
        )

    @classmethod
    def from_str(cls, mesh_str: str) -> Optional["Mesh"]:
        import ast

        try:
            given = ast.literal_eval(mesh_str.replace("Mesh", ""))
            return cls(given["device_ids"], given["mesh_shape"], given["axis_names"])
        except (ValueError, SyntaxError, KeyError, TypeError):
            return None


class HybridMesh(Mesh):
    """A mesh of several slices: axis i has dcn_mesh_shape[i] times ici_mesh_shape[i] devices, those of a slice next to each
    other."""

    def __init__(
        self,
        *,
        ici_mesh_shape: Sequence[int],
        dcn_mesh_shape: Optional[Sequence[int]] = None,
        axis_names: Optional[Sequence[str]] = None,
    ):
        ici = tuple(ici_mesh_shape)
        dcn = tuple(dcn_mesh_shape) if dcn_mesh_shape is not None else (1,) * len(ici)
        if len(ici) != len(dcn):
            raise AssertionError("ici_mesh_shape and dcn_mesh_shape: expected the same number of axes")
        ids = numpy.arange(int(numpy.prod(ici) * numpy.prod(dcn))).reshape(dcn + ici)
        order = [axis for i in range(len(ici)) for axis in (i, i + len(ici))]
        shape = tuple(a * b for a, b in zip(ici, dcn))
        super().__init__(ids.transpose(order).reshape(-1), shape, axis_names)


def set_global_mesh(mesh: Mesh) -> None:
    global _global_mesh
    _global_mesh = mesh


def get_global_mesh() -> Optional[Mesh]:
    return _global_mesh


def get_1d_mesh(axis_name: Optional[str] = None) -> Mesh:
    count = runtime.global_runtime_device_count()
    return Mesh(numpy.arange(count), (count,), None if axis_name is None else (axis_name,))


def _check(t: torch.Tensor, mesh: Optional[Mesh], partition_spec: PartitionSpec) -> str:
    mesh = mesh or _global_mesh
    if mesh is None:
        raise ValueError("a sharding without a mesh: give one, or set_global_mesh()")
    if t.dim() != len(partition_spec):
        raise AssertionError(f"Partition spec length ({len(partition_spec)}) should be equal to the input rank ({t.dim()}).")
    return mesh.get_op_sharding(tuple(partition_spec))


def mark_sharding(t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec) -> torch.Tensor:
    """Says how the tensor lies on the devices of the mesh. Returns the tensor."""
    t._hlokit_sharding = _check(t, mesh, partition_spec)  # type: ignore[attr-defined]
    if mesh.size() > 1:
        _lines.warn_once(
            "mark_sharding: hlokit.torch checks the sharding and keeps it with the tensor; graphs, HLO and estimates are of one "
            "device that has all of it"
        )
    return t


annotate_custom_sharding = mark_sharding


def mark_sharding_with_gradients(t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec) -> torch.Tensor:
    """A view of the tensor with this sharding."""
    return mark_sharding(t.view_as(t), mesh, partition_spec)


def clear_sharding(t: torch.Tensor) -> torch.Tensor:
    if hasattr(t, "_hlokit_sharding"):
        del t._hlokit_sharding
    return t


def get_sharding(t: torch.Tensor) -> str:
    """The sharding of a tensor as HLO writes it, or ""."""
    return str(getattr(t, "_hlokit_sharding", ""))


def shard_as(a: Any, b: Any) -> Tuple[Any, Any]:
    """The same: both have the sharding that the compiler chooses."""
    return a, b


def wrap_if_sharded(x: Any) -> Any:
    return x


def wrap_as_sharded_tensor(t: torch.Tensor, **kwargs: Any) -> torch.Tensor:
    return t


def unwrap_sharded_tensor(t: torch.Tensor) -> torch.Tensor:
    return t


def enable_manual_sharding(t: torch.Tensor, partition_spec: PartitionSpec, *, mesh: Optional[Mesh] = None) -> torch.Tensor:
    raise NotImplementedError("manual sharding: tensors here have all their elements, so a shard of one is not known")


def disable_manual_sharding(t: torch.Tensor, partition_spec: PartitionSpec, full_shape: Any, *, mesh: Any = None) -> torch.Tensor:
    raise NotImplementedError("manual sharding: tensors here have all their elements, so a shard of one is not known")


class ShardingSpec:
    """A sharding of the tensors of a loader: of those of the spec's rank; minibatch: of the shard of this host."""

    def __init__(self, mesh: Mesh, partition_spec: PartitionSpec, minibatch: bool = False):
        self.mesh, self.partition_spec, self.minibatch = mesh, tuple(partition_spec), minibatch
        mesh.get_op_sharding(self.partition_spec)

    def can_apply(self, t: torch.Tensor) -> bool:
        return t.dim() == len(self.partition_spec)

    def apply(self, t: torch.Tensor) -> None:
        mark_sharding(t, self.mesh, self.partition_spec)


def apply_shardings(batch: Any, sharding: Union[None, ShardingSpec, Dict[str, Any], Sequence[Any]]) -> Any:
    """Marks the tensors of a batch: sharding is of all whose rank fits, or of each by name or place."""
    if sharding is None:
        return batch
    if isinstance(sharding, dict):
        for name, spec in sharding.items():
            apply_shardings(batch[name], spec)
        return batch
    if isinstance(sharding, (list, tuple)):
        for value, spec in zip(batch, sharding):
            apply_shardings(value, spec)
        return batch
    of_all: Any = sharding
    for tensor in tree_flatten(batch)[0]:
        if isinstance(tensor, torch.Tensor) and of_all.can_apply(tensor):
            of_all.apply(tensor)
    return batch


class XLAPatchedLinear(torch.autograd.Function):
    """x @ weight.T + bias without merging dimensions, which would lose their shardings."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, weight: torch.Tensor, bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        ctx.save_for_backward(input, weight)
        ctx.has_bias = bias is not None
        product = torch.einsum("...n,mn->...m", input, weight)
        return product if bias is None else product + bias

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        input, weight = ctx.saved_tensors
        to_bias = torch.einsum("...m->m", grad) if ctx.has_bias else None
        return torch.einsum("...m,mn->...n", grad, weight), torch.einsum("...m,...n->mn", grad, input), to_bias


def xla_patched_nn_linear_forward(m: torch.nn.Linear, input: torch.Tensor) -> torch.Tensor:
    return XLAPatchedLinear.apply(input, m.weight, m.bias)  # type: ignore[no-any-return]


def apply_xla_patch_to_nn_linear(module: torch.nn.Module, patched: Any = xla_patched_nn_linear_forward) -> torch.nn.Module:
    """Lets the linear layers of a module be einsums."""
    for layer in module.modules():
        if isinstance(layer, torch.nn.Linear):
            layer.forward = patched.__get__(layer)  # type: ignore[method-assign]
    return module


def apply_backward_optimization_barrier(m: torch.nn.Module) -> Any:
    """Keeps the compiler from moving computations over the module's backward pass."""

    def barrier(module: Any, grad_input: Any, grad_output: Any) -> None:
        xla_model.optimization_barrier_([p.grad for p in module.parameters() if p.grad is not None] or [g for g in grad_input if g is not None])

    return m.register_full_backward_hook(barrier)


def xla_distribute_tensor(tensor: torch.Tensor, device_mesh: Any, placements: Any = None) -> torch.Tensor:
    raise NotImplementedError("xla_distribute_tensor: mark shardings with mark_sharding(tensor, mesh, spec)")


def xla_distribute_module(module: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
    raise NotImplementedError("xla_distribute_module: mark shardings with mark_sharding(tensor, mesh, spec)")
