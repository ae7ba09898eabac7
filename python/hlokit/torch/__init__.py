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

Modules with the names of torch_xla: xla_model, metrics, profiler, parallel_loader, xla_multiprocessing, checkpoint. With
provide_torch_xla(), or run by `python -m hlokit.torch`, programs import torch_xla itself.
"""

import sys as _sys

from hlokit import _hlokit

from . import (
    _device,
    _fallback,
    _fused_optimizers,
    _grouped_products,
    _modes,
    _modules,
    _recurrent_cells,
    _tensor,
    _worlds,
    checkpoint,
    metrics,
    parallel_loader,
    profiler,
    spmd,
    spmd_fsdp,
    tpu,
    xla_model,
    xla_multiprocessing,
)
from ._compile import backend as compile_backend
from ._compile import install as _install_backend
from ._compile import register as _register_backend
from ._compile_report import CompileReport, compile_report
from ._modes import eager_mode
from ._export import ExportedModule, exported, from_exported
from ._init import on_device
from ._provide import provide_torch_xla
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
_modes.install()
_fused_optimizers.install()
_worlds.install()
_install_backend()

# Otherwise Dynamo finds the backend by the entry point of the package.
if "torch._dynamo.backends.registry" in _sys.modules:
    _register_backend()


_ON_HOST = "it runs on the host: the size of its result depends on values"


def fallbacks() -> "dict[tuple[str, str], int]":
    """The ops that ran on the CPU, with the reason: (name, reason) -> calls."""
    found = dict(_fallback.fallbacks)
    known = {name for name, _ in found}
    for name, count in metrics.ops_on_host().items():
        if name not in known:
            found[name, _ON_HOST] = count
    return found


__all__ = [name for name in dir() if not name.startswith("_") and name != "torch"]
