# SPDX-License-Identifier: Apache-2.0
"""Mixed precision and optimizers of torch_xla.amp."""

from typing import Any, Optional

import torch

from . import _lines


class autocast(torch.amp.autocast_mode.autocast):  # type: ignore[misc]
    """torch.autocast("xla"): bfloat16 unless dtype says otherwise."""

    def __init__(self, device: Any, enabled: bool = True, dtype: Optional[torch.dtype] = None, cache_enabled: bool = True):
        if torch.device(device).type != "xla":
            raise AssertionError("torch_xla.autocast is available for XLA:TPU")
        super().__init__("xla", enabled=enabled, dtype=dtype or torch.bfloat16, cache_enabled=cache_enabled)


class GradScaler(torch.amp.GradScaler):  # type: ignore[misc]
    """A scaler for float16; bfloat16, the type of TPUs, needs none. Reads whether gradients are finite in each step."""

    def __init__(self, init_scale: float = 2.0**16, use_zero_grad: bool = False, **kwargs: Any):
        kwargs.pop("device", None)
        super().__init__("cpu", init_scale=init_scale, **kwargs)
        if self.is_enabled():
            _lines.warn_once("GradScaler: bfloat16 needs no scaling, and step() waits for the device to know whether gradients are finite")
