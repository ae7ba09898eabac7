# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs on hlokit's lazy tracer.

    import torch, hlokit.torch as ht
    model = Model().to(ht.device())
    with ht.trace() as t:
        loss = loss_of(model(x), y)
        loss.backward()
        optimizer.step()
        ht.mark_step()
    print(t.graphs[0].lazy_ir, t.graphs[0].hlo)
"""

from ._session import configure, device
from . import _fallback, _tensor
from ._tensor import XlaTensor

_tensor.setup(_fallback.untranslated)
_fallback.register_creation()
from .xla_model import mark_step
