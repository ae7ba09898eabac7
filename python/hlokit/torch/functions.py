# SPDX-License-Identifier: Apache-2.0
"""Collectives with derivatives, with the names of torch_xla.core.functions."""

from typing import Any, Optional

import torch

from . import xla_model


class AllReduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, reduce_type: str, scale: float, groups: Any) -> Any:
        ctx.reduce_type, ctx.scale, ctx.groups = reduce_type, scale, groups
        output = xla_model.all_reduce(reduce_type, input, scale, groups)
        if reduce_type in (xla_model.REDUCE_MIN, xla_model.REDUCE_MAX):
            ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        if ctx.reduce_type == xla_model.REDUCE_SUM:
            return xla_model.all_reduce(ctx.reduce_type, grad, ctx.scale, ctx.groups), None, None, None
        if ctx.reduce_type in (xla_model.REDUCE_MIN, xla_model.REDUCE_MAX):
            input, output = ctx.saved_tensors
            return torch.where(input == output, grad, torch.zeros_like(grad)), None, None, None
        raise RuntimeError(f"Unsupported reduce type: {ctx.reduce_type}")


def all_reduce(reduce_type: str, value: torch.Tensor, scale: float = 1.0, groups: Any = None) -> Any:
    """xla_model.all_reduce with a derivative."""
    return AllReduce.apply(value, reduce_type, scale, groups)


class AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, dim: int) -> Any:
        ctx.dim = dim
        ctx.ordinal, ctx.world = xla_model.get_ordinal(), xla_model.xrt_world_size()
        return xla_model.all_gather(input, dim=dim)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return xla_model.reduce_scatter(xla_model.REDUCE_SUM, grad, 1.0, ctx.dim, ctx.world), None


def all_gather(value: torch.Tensor, dim: int = 0) -> Any:
    """xla_model.all_gather with a derivative."""
    return AllGather.apply(value, dim)


class SyncBatchNorm(torch.nn.Module):
    """Batch normalization over the batches of all devices."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1):
        super().__init__()
        self.eps, self.momentum = eps, momentum
        self.weight = torch.nn.Parameter(torch.ones(num_features))
        self.bias = torch.nn.Parameter(torch.zeros(num_features))
        self.running_mean: torch.Tensor
        self.running_var: torch.Tensor
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        dims = [0, *range(2, batch.dim())]
        shape = [1, -1] + [1] * (batch.dim() - 2)
        mean: Optional[torch.Tensor] = self.running_mean
        variance: Optional[torch.Tensor] = self.running_var
        if self.training:
            scale = 1.0 / xla_model.xrt_world_size()
            mean = all_reduce(xla_model.REDUCE_SUM, batch.mean(dims), scale)
            square = all_reduce(xla_model.REDUCE_SUM, (batch * batch).mean(dims), scale)
            variance = square - mean * mean
            count = batch.numel() / batch.size(1) / scale
            with torch.no_grad():
                self.running_mean.mul_(1 - self.momentum).add_(mean, alpha=self.momentum)
                self.running_var.mul_(1 - self.momentum).add_(variance * (count / max(count - 1, 1)), alpha=self.momentum)
        assert mean is not None and variance is not None
        normal = (batch - mean.reshape(shape)) * torch.rsqrt(variance.reshape(shape) + self.eps)
        return normal * self.weight.reshape(shape) + self.bias.reshape(shape)
