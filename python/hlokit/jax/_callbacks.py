# SPDX-License-Identifier: Apache-2.0
"""Host callbacks (pure_callback, io_callback, debug.callback, debug.print, checkify.check, buffer_callback) on the
platform "hlokit".

JAX lowers them as for its own CPU, to typed custom calls with the index of a Python function. The functions are in a
table of this process; a program keeps its own alive.
"""

from __future__ import annotations

import functools
import itertools
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _ffi

_TARGETS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")
_BUFFER_TARGET = "xla_buffer_python_cpu_callback"


class _Callback:
    """A function that a program calls by its index."""

    _indexes = itertools.count()

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.index = next(self._indexes)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __reduce__(self) -> Any:
        raise TypeError("a program with host callbacks cannot be serialized: it calls functions of this process")


_callbacks: weakref.WeakValueDictionary[int, _Callback] = weakref.WeakValueDictionary()


def _call(index: int, arguments: list[np.ndarray | None], results: list[np.ndarray | None]) -> None:
    callback = _callbacks.get(index)
    if callback is None:
        raise RuntimeError(f"this process has no host callback {index}")
    values = callback.function(*(None if a is None else a.copy() for a in arguments)) or ()
    if len(values) != len(results):
        raise RuntimeError(f"the callback returned {len(values)} values for {len(results)} results")
    for result, value in zip(results, values):
        if result is not None:
            result[...] = np.asarray(value)


class _Context:
    """What a buffer callback learns of its call, as jax.experimental.buffer_callback.ExecutionContext."""

    @property
    def stage(self) -> Any:
        from jax._src import buffer_callback

        return buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self) -> Any:
        import jax

        raise jax.errors.JaxRuntimeError("UNIMPLEMENTED: XLA FFI GPU context is not available")


def _call_with_buffers(index: int, arguments: list[_ffi.Buffer], results: list[_ffi.Buffer]) -> None:
    callback = _callbacks.get(index)
    if callback is None:
        raise RuntimeError(f"this process has no host callback {index}")
    callback.function(_Context(), *arguments, *results)


class _Callbacks:
    """What a lowering takes for the list of the module's host callbacks; its size gives the index of the last one.

    The module's own list has them too: what JAX makes of the module keeps them alive, as do its runs.
    """

    def __init__(self, module_context: Any):
        self._module_context = module_context
        self._size = 0

    def append(self, function: Callable[..., Any]) -> None:
        _keep_threads_on_host()
        callback = _Callback(function)
        _callbacks[callback.index] = callback
        self._module_context.add_host_callback(callback)
        self._size = callback.index + 1

    def __len__(self) -> int:
        return self._size


def _keep_threads_on_host() -> None:
    """Cores of an interpreted kernel of Pallas are threads that a callback waits for, and run programs of their own: on
    JAX's CPU, as the callback itself does, since the device waits for the callback."""
    module = sys.modules.get("jax._src.pallas.mosaic.interpret.thread_map")
    run: Any = getattr(module, "_run_jaxpr", None)
    if run is None or hasattr(run, "__wrapped__"):
        return
    import jax

    @functools.wraps(run)
    def run_on_host(*args: Any) -> Any:
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            return run(*args)

    setattr(module, "_run_jaxpr", run_on_host)


def set_up(plugin: _ffi.Plugin, platform: str) -> None:
    """Registers the handlers, and has JAX lower callbacks on the platform."""
    import jax.interpreters.mlir
    from jax._src import callback as jax_callback

    handler = _ffi.python_handler(_call)
    for target in _TARGETS:
        plugin.register(target, handler, platform)
    plugin.register(_BUFFER_TARGET, _ffi.buffer_handler(_call_with_buffers), platform)
    emit = lowered_as_for_the_cpu(jax_callback.emit_python_callback, platform)
    jax_callback.emit_python_callback = emit
    jax.interpreters.mlir.emit_python_callback = emit


def lowered_as_for_the_cpu(lower: Callable[..., Any], platform: str) -> Callable[..., Any]:
    """Returns a function that lowers a callback of the platform as JAX's own function does one of the CPU."""

    @functools.wraps(lower)
    def emit(ctx: Any, *args: Any, **options: Any) -> Any:
        module_context = ctx.module_context
        if tuple(module_context.platforms) == (platform,):
            as_cpu = module_context.replace(platforms=("cpu",), backend=None,
                                            host_callbacks=_Callbacks(module_context))
            ctx = ctx.replace(module_context=as_cpu)
        return lower(ctx, *args, **options)

    return emit
