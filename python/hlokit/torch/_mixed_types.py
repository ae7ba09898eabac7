# SPDX-License-Identifier: Apache-2.0
"""Calls with tensors of two types of elements, which PyTorch takes in some ops and the recorder in none of these."""

from typing import Any, Callable, Dict

import torch
from torch._decomp import decomposition_table

from ._decompositions import NotRecorded, decomposes

# By overload.
RETRIES: Dict[Any, Callable[..., Any]] = {}

aten = torch.ops.aten


def _result_like(func: Any, place: int) -> None:
    """Registers a loss that is computed in the type to which both promote, and has the type of the argument at a place."""

    def retry(self: torch.Tensor, target: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        wide = torch.promote_types(self.dtype, target.dtype)
        result = (self, target)[place].dtype
        if self.dtype == target.dtype or not torch.can_cast(wide, result):
            return NotImplemented  # the CPU has torch's own error
        if any(isinstance(value, torch.Tensor) for value in (*args, *kwargs.values())):
            return NotImplemented
        return func(self.to(wide), target.to(wide), *args, **kwargs).to(result)

    RETRIES[func] = retry


_result_like(aten.huber_loss.default, 0)
_result_like(aten.soft_margin_loss.default, 0)
_result_like(aten.binary_cross_entropy_with_logits.default, 1)


def _normalization(func: Any) -> None:
    """Registers a layer whose input may be of 16-bit floats with parameters of 32 bits: statistics are then of 32 bits."""

    def retry(*args: Any, **kwargs: Any) -> Any:
        values = list(args)
        parameters = [v for v in values[1:] if isinstance(v, torch.Tensor)]
        narrow = values[0].dtype
        if narrow not in (torch.float16, torch.bfloat16) or any(p.dtype != torch.float32 for p in parameters):
            return NotImplemented
        values[0] = values[0].to(torch.float32)
        result, mean, rstd = func(*values, **kwargs)
        return result.to(narrow), mean, rstd

    RETRIES[func] = retry


_normalization(aten.native_layer_norm.default)
_normalization(aten.native_group_norm.default)


@decomposes("huber_loss_backward")
def _huber_loss_backward(grad_output: torch.Tensor, self: torch.Tensor, target: torch.Tensor, reduction: int, delta: float) -> Any:
    if not grad_output.dtype == self.dtype == target.dtype:
        raise NotRecorded("tensors of several types")  # PyTorch's kernel refuses them
    return decomposition_table[aten.huber_loss_backward.default](grad_output, self, target, reduction, delta)
