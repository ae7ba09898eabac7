# SPDX-License-Identifier: Apache-2.0
"""Fully sharded data parallelism by annotations, with the names of torch_xla.experimental.spmd_fully_sharded_data_parallel."""

from typing import Any, Callable, Optional, Tuple

import torch

from . import _session, spmd


def _partition_spec(tensor: torch.Tensor, extra_data_axis: Optional[str] = None, largest: bool = False) -> Tuple[Any, ...]:
    """Divides the first dimension, or the largest, along fsdp."""
    spec: Any = [None] * tensor.dim()
    if spec:
        dim = list(tensor.shape).index(max(tensor.shape)) if largest else 0
        spec[dim] = (extra_data_axis, "fsdp") if extra_data_axis else "fsdp"
    return tuple(spec)


class SpmdFullyShardedDataParallel(torch.nn.Module):
    """A module whose parameters are divided along the axis fsdp of a mesh, as its batch is, and gathered where they are used.

    shard_output(output, mesh) annotates the output: by default its first dimension along fsdp, and extra_data_axis too.
    auto_wrap_policy: wraps modules inside, as PyTorch's policies say.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        *,
        mesh: Optional[spmd.Mesh] = None,
        shard_output: Optional[Callable[..., None]] = None,
        auto_wrap_policy: Optional[Callable[..., bool]] = None,
        auto_wrapper_callable: Optional[Callable[..., torch.nn.Module]] = None,
        extra_data_axis: Optional[str] = None,
    ):
        if isinstance(module, SpmdFullyShardedDataParallel):
            raise RuntimeError("Cannot wrap a module that is already wrapped with FSDP.")
        if isinstance(module, (torch.nn.ModuleList, torch.nn.ModuleDict)):
            raise RuntimeError("The module wrapped by FSDP must define a `forward` method.")
        mesh = mesh or spmd.get_global_mesh()
        if mesh is None:
            raise ValueError("No mesh is provided and no global mesh is set. Please provide a mesh.")
        names = mesh.axis_names or ()
        if "fsdp" not in names:
            raise ValueError("The mesh must have an axis named 'fsdp'.")
        if extra_data_axis and extra_data_axis not in names:
            raise ValueError(f"The provided {extra_data_axis} axis is not in the mesh.")
        super().__init__()
        self._mesh = mesh
        self._extra_data_axis = extra_data_axis
        self._shard_output = shard_output
        if auto_wrap_policy is not None:
            wrapper = auto_wrapper_callable or SpmdFullyShardedDataParallel
            self._wrap_inner(module, auto_wrap_policy, lambda inner: wrapper(inner, mesh=mesh, shard_output=shard_output))
        self._orig_module = module.to(_session.device())
        for parameter in module.parameters():
            if not spmd.get_sharding_spec(parameter):
                spmd.mark_sharding(parameter, mesh, _partition_spec(parameter, largest=True))
        spmd.apply_backward_optimization_barrier(module)

    @staticmethod
    def _wrap_inner(module: torch.nn.Module, policy: Callable[..., bool], wrap: Callable[..., torch.nn.Module]) -> None:
        from torch.distributed.fsdp.wrap import _recursive_wrap

        def wrapper(inner: torch.nn.Module, **_: Any) -> torch.nn.Module:
            return wrap(inner)

        _recursive_wrap(
            module=module,
            auto_wrap_policy=policy,
            wrapper_cls=wrapper,
            ignored_modules=set(),
            ignored_params=set(),
            only_wrap_children=True,
        )

    @property
    def module(self) -> torch.nn.Module:
        return self._orig_module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        output = self.module(*args, **kwargs)
        if self._shard_output is not None:
            self._shard_output(output, self._mesh)
            return output
        first = output[0] if isinstance(output, tuple) else output
        if not isinstance(first, torch.Tensor):
            raise RuntimeError(f"The output type is not supported: {type(output)}. Please provide your own shard_output callable.")
        if not spmd.get_sharding_spec(first):
            spmd.mark_sharding(first, self._mesh, _partition_spec(first, self._extra_data_axis))
        return output

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules["_orig_module"], name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]  # type: ignore[index]
