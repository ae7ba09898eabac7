# SPDX-License-Identifier: Apache-2.0
"""Modules whose parameters are divided among the devices, with the names of torch_xla.distributed.fsdp."""

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch
from torch import nn
from torch.utils._pytree import tree_flatten

from . import _lines, _session, checkpoint, xla_model
from ._wrap_policies import recursive_wrap
from .spmd_fsdp import SpmdFullyShardedDataParallel  # noqa: F401


class _Gather(torch.autograd.Function):
    """A parameter of all shards; its gradient is the mean of those of the devices, of which each keeps its part."""

    @staticmethod
    def forward(ctx: Any, shard: torch.Tensor) -> Any:
        return xla_model.all_gather(shard, 0)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        world = xla_model.xrt_world_size()
        return xla_model.reduce_scatter(xla_model.REDUCE_SUM, grad, 1.0 / world, 0, world)


class XlaFullyShardedDataParallel(nn.Module):
    """A module of whose parameters each device has a part: they are gathered in its forward pass, and gradients are reduced to
    parts. Gathered parameters are kept for the backward pass, as with reshard_after_forward=False."""

    def __init__(
        self,
        module: nn.Module,
        reshard_after_forward: bool = True,
        flatten_parameters: bool = False,
        compute_dtype: Optional[torch.dtype] = None,
        auto_wrap_policy: Optional[Callable[..., bool]] = None,
        auto_wrapper_callable: Optional[Callable[..., nn.Module]] = None,
        optimization_barrier_in_forward: bool = True,
        optimization_barrier_in_backward: bool = True,
        disable_reshard_on_root: bool = True,
        shard_param_on_dim_0: bool = False,
        pin_layout_in_collective_ops: bool = True,
        **kwargs: Any,
    ):
        super().__init__()
        unknown = {k: v for k, v in kwargs.items() if k not in ("execute_sharding_on_init", "_debug_msg", "mark_step_on_finalization")}
        if any(value not in (None, False, ()) for value in unknown.values()):
            raise NotImplementedError(f"XlaFullyShardedDataParallel: {', '.join(sorted(unknown))} are not supported by hlokit.torch")
        self._compute_dtype = compute_dtype
        if auto_wrap_policy is not None:
            wrapper = auto_wrapper_callable or type(self)
            recursive_wrap(module, auto_wrap_policy, wrapper, only_wrap_children=True, compute_dtype=compute_dtype)
        module.to(_session.device())
        self._fsdp_wrapped_module = module
        self._places: List[Tuple[nn.Module, str, torch.Size, int]] = []
        self.shards = nn.ParameterList()
        self._take_parameters()

    @property
    def module(self) -> nn.Module:
        return self._fsdp_wrapped_module

    def _take_parameters(self) -> None:
        world, rank = xla_model.xrt_world_size(), xla_model.get_ordinal()
        nested = {id(m) for child in self.module.modules() if isinstance(child, XlaFullyShardedDataParallel) for m in child.modules()}
        shared: Dict[int, int] = {}
        for module in self.module.modules():
            if id(module) in nested:
                continue
            for name, parameter in list(module._parameters.items()):
                if parameter is None:
                    continue
                if id(parameter) not in shared:
                    flat = parameter.detach().reshape(-1)
                    padding = -flat.numel() % world
                    if padding:
                        flat = torch.cat([flat, flat.new_zeros(padding)])
                    part = flat.numel() // world
                    shard = flat[rank * part : (rank + 1) * part].clone()
                    shared[id(parameter)] = len(self.shards)
                    self.shards.append(nn.Parameter(shard, requires_grad=parameter.requires_grad))
                del module._parameters[name]
                self._places.append((module, name, parameter.shape, shared[id(parameter)]))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        full: Dict[int, torch.Tensor] = {}
        for module, name, shape, number in self._places:
            if number not in full:
                shard = self.shards[number]
                if self._compute_dtype is not None:
                    shard = shard.to(self._compute_dtype)
                gathered = shard if xla_model.xrt_world_size() == 1 else _Gather.apply(shard)
                full[number] = gathered[: shape.numel()].view(shape)
        self._set_parameters(full)
        try:
            outputs = self.module(*args, **kwargs)
        finally:
            self._unset_parameters()
        for output in tree_flatten(outputs)[0]:
            if isinstance(output, torch.Tensor) and output.requires_grad:
                output.register_hook(lambda _: self._set_for_backward(full))
        return outputs

    def _set_parameters(self, full: Dict[int, torch.Tensor]) -> None:
        for module, name, _, number in self._places:
            module.__dict__[name] = full[number]

    def _unset_parameters(self) -> None:
        for module, name, _, _ in self._places:
            module.__dict__.pop(name, None)

    def _set_for_backward(self, full: Dict[int, torch.Tensor]) -> None:
        """A backward pass begins, which may call the module again: that of a checkpoint does."""
        self._set_parameters(full)
        torch.autograd.Variable._execution_engine.queue_callback(self._unset_parameters)  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("_fsdp_wrapped_module"), name)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0, groups: Any = None) -> torch.Tensor:
        """Scales the gradients so that their norm over all devices is at most max_norm; returns the norm."""
        gradients = [p.grad for p in self.parameters() if p.grad is not None]
        if norm_type == float("inf"):
            total = torch.stack([g.abs().max() for g in gradients]).max()
            total = xla_model.all_reduce(xla_model.REDUCE_MAX, total, groups=groups)
        else:
            total = torch.stack([(g.float().abs() ** norm_type).sum() for g in gradients]).sum()
            total = xla_model.all_reduce(xla_model.REDUCE_SUM, total, groups=groups) ** (1.0 / norm_type)
        factor = torch.clamp(max_norm / (total + 1e-6), max=1.0)
        for gradient in gradients:
            gradient.mul_(factor)
        return total

    def get_shard_metadata(self) -> Any:
        raise NotImplementedError("get_shard_metadata: shards here are not in torch_xla's format of checkpoints")


def consolidate_sharded_model_checkpoints(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("consolidate_sharded_model_checkpoints: shards here are not in torch_xla's format of checkpoints")


def checkpoint_module(module: nn.Module) -> nn.Module:
    """Computes the module's values again in the backward pass."""
    original = module.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        return checkpoint.checkpoint(original, *args, **kwargs)

    module.forward = forward  # type: ignore[method-assign]
    return module
