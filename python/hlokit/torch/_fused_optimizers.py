# SPDX-License-Identifier: Apache-2.0
"""Updates that PyTorch has as one kernel, fused=True: here of the same ops as those without, which are one program in any case.
PyTorch/XLA refuses fused=True."""

from typing import Any, Optional, Sequence

import torch

from . import _lines
from ._decompositions import decomposes

_TEXT = "fused=True: PyTorch/XLA refuses it for tensors of device xla; a step is one program without it too"


def _scaled(grad: torch.Tensor, grad_scale: Optional[torch.Tensor], maximize: bool) -> torch.Tensor:
    if grad_scale is not None:
        grad = grad / grad_scale
    return -grad if maximize else grad


def _store(found_inf: Optional[torch.Tensor], pairs: Sequence[Any]) -> None:
    """Writes new values, unless a gradient is not finite."""
    for target, value in pairs:
        target.copy_(value if found_inf is None else torch.where(found_inf != 0, target, value))


def _adam(decoupled: bool) -> Any:
    def update(
        self: Sequence[torch.Tensor],
        grads: Sequence[torch.Tensor],
        exp_avgs: Sequence[torch.Tensor],
        exp_avg_sqs: Sequence[torch.Tensor],
        max_exp_avg_sqs: Sequence[torch.Tensor],
        state_steps: Sequence[torch.Tensor],
        *,
        lr: Any,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Optional[torch.Tensor] = None,
        found_inf: Optional[torch.Tensor] = None,
    ) -> None:
        for i, (p, given, m, v, step) in enumerate(zip(self, grads, exp_avgs, exp_avg_sqs, state_steps)):
            grad = _scaled(given, grad_scale, maximize)
            value = p
            if decoupled:
                value = value * (1 - lr * weight_decay)
            elif weight_decay != 0:
                grad = grad + value * weight_decay
            new_m = m + (grad - m) * (1 - beta1)
            new_v = v * beta2 + grad * grad * (1 - beta2)
            pairs = [(m, new_m), (v, new_v)]
            scale = new_v
            if amsgrad:
                scale = torch.maximum(max_exp_avg_sqs[i], new_v)
                pairs.append((max_exp_avg_sqs[i], scale))
            correction = 1 - beta1**step
            denominator = scale.sqrt() / (1 - beta2**step).sqrt() + eps
            pairs.append((p, value - lr * (new_m / correction) / denominator))
            _store(found_inf, pairs)

    return update


decomposes("_fused_adam_", "_fused_adam_.tensor_lr")(_adam(False))
decomposes("_fused_adamw_", "_fused_adamw_.tensor_lr")(_adam(True))


@decomposes("_fused_sgd_", "_fused_sgd_.tensor_lr")
def _sgd(
    self: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor],
    momentum_buffer_list: Sequence[torch.Tensor],
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Optional[torch.Tensor] = None,
    found_inf: Optional[torch.Tensor] = None,
) -> None:
    for i, (p, given) in enumerate(zip(self, grads)):
        grad = _scaled(given, grad_scale, maximize)
        if weight_decay != 0:
            grad = grad + p * weight_decay
        pairs = []
        if momentum != 0:
            buffer = momentum_buffer_list[i]
            new = grad if is_first_step else buffer * momentum + grad * (1 - dampening)
            pairs.append((buffer, new))
            grad = grad + new * momentum if nesterov else new
        pairs.append((p, p - lr * grad))
        _store(found_inf, pairs)


@decomposes("_fused_adagrad_", "_fused_adagrad_.tensor_lr")
def _adagrad(
    self: Sequence[torch.Tensor],
    grads: Sequence[torch.Tensor],
    state_sums: Sequence[torch.Tensor],
    state_steps: Sequence[torch.Tensor],
    *,
    lr: Any,
    lr_decay: float,
    weight_decay: float,
    eps: float,
    maximize: bool,
    grad_scale: Optional[torch.Tensor] = None,
    found_inf: Optional[torch.Tensor] = None,
) -> None:
    for p, given, total, step in zip(self, grads, state_sums, state_steps):
        grad = _scaled(given, grad_scale, maximize)
        if weight_decay != 0:
            grad = grad + p * weight_decay
        new = total + grad * grad
        _store(found_inf, [(total, new), (p, p - lr / (1 + (step - 1) * lr_decay) * grad / (new.sqrt() + eps))])


def install() -> None:
    """Lets PyTorch's optimizers take fused=True for tensors of device xla."""
    import torch.optim.optimizer as module

    original = getattr(module, "_get_fused_kernels_supported_devices", None)
    check = getattr(module, "_device_dtype_check_for_fused", None)
    if original is None or check is None:
        return

    supported = original

    def devices() -> Any:
        return [*supported(), "xla"]

    module._get_fused_kernels_supported_devices = devices  # type: ignore[attr-defined]
    for name in ("adam", "sgd", "adagrad"):
        optimizer = getattr(torch.optim, name, None)
        if optimizer is not None and getattr(optimizer, "_device_dtype_check_for_fused", None) is check:
            optimizer._device_dtype_check_for_fused = _checked(check)  # type: ignore[attr-defined]


def _checked(check: Any) -> Any:
    def checked(parameter: torch.Tensor, *args: Any, **kwargs: Any) -> None:
        check(parameter, *args, **kwargs)
        if parameter.device.type == "xla":
            _lines.warn_once(_TEXT)

    return checked
