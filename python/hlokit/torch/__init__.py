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

Modules with the names of torch_xla: xla_model, metrics, profiler, parallel_loader, xla_multiprocessing, checkpoint.
"""

from hlokit import _hlokit

from . import _device, _fallback, _modules, _tensor, _worlds, checkpoint, metrics, parallel_loader, profiler, spmd, spmd_fsdp, tpu, xla_model, xla_multiprocessing
from ._init import on_device
from ._session import configure, device
from ._tensor import is_lazy
from ._trace import Graph, Simulation, Trace, explain_recompiles, pending, trace
from .metrics import metrics_report
from .parallel_loader import MpDeviceLoader
from .xla_model import mark_step, optimizer_step, save
from .xla_multiprocessing import launch, spawn

_tensor.setup(_fallback.untranslated)
_device.install(_hlokit._torch_dispatch, tpu)
_fallback.install()
_modules.install()
_worlds.install()


def fallbacks() -> "dict[tuple[str, str], int]":
    """The ops that ran on the CPU, with the reason: (name, reason) -> calls."""
    return dict(_fallback.fallbacks)


__all__ = [name for name in dir() if not name.startswith("_")]
