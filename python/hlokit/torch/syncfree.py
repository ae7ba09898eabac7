# SPDX-License-Identifier: Apache-2.0
"""Optimizers of torch_xla.amp.syncfree: step(found_inf=tensor) keeps the parameters where the tensor is not zero, without reading
it."""

from typing import Any, Optional

import torch


def _of(base: Any) -> Any:
    class SyncFree(base):  # type: ignore[misc]
        __doc__ = f"torch.optim.{base.__name__}, whose step() takes found_inf."

        def step(self, closure: Any = None, found_inf: Optional[torch.Tensor] = None) -> Any:
            if found_inf is None:
                return super().step(closure)
            with torch.no_grad():
                parameters = [p for group in self.param_groups for p in group["params"]]
                before = [p.clone() for p in parameters]
                states = [{k: v.clone() for k, v in self.state[p].items() if isinstance(v, torch.Tensor)} for p in parameters]
                result = super().step(closure)
                for p, old, state in zip(parameters, before, states):
                    p.copy_(torch.where(found_inf.to(p.device) != 0, old, p))
                    for name, value in state.items():
                        now = self.state[p][name]
                        now.copy_(torch.where(found_inf.to(now.device) != 0, value, now))
            return result

    SyncFree.__name__ = SyncFree.__qualname__ = base.__name__
    return SyncFree


SGD = _of(torch.optim.SGD)
Adam = _of(torch.optim.Adam)
AdamW = _of(torch.optim.AdamW)
