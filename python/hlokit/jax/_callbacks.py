# SPDX-License-Identifier: Apache-2.0
"""Host callbacks (pure_callback, io_callback, buffer_callback, debug.print, checkify.check …) on the platform "hlokit".

JAX lowers them as for its own CPU, to typed custom calls with the index of a Python function. The functions are in a
table of this process; a program keeps its own alive.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _ffi

_BUFFER_TARGET = "xla_buffer_python_cpu_callback"
_TARGETS = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")


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


class _Buffer:
    """An array of a program, as jax.experimental.buffer_callback gives it: an argument, or a result to write into."""

    def __init__(self, array: np.ndarray, writeable: bool):
        self._array = array.view()
        self._array.flags.writeable = writeable

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def writeable(self) -> bool:
        return self._array.flags.writeable

    def unsafe_raw_buffer_pointer(self) -> int:
        return self._array.ctypes.data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False and dtype not in (None, self.dtype):
            raise ValueError(f"an array of {self.dtype} is one of {dtype} by a copy only")
        if dtype not in (None, self.dtype):
            return self._array.astype(dtype)
        return self._array.copy() if copy else self._array

    def __dlpack__(self, **options: Any) -> Any:
        # NumPy exports no array that must not be written, but only as a copy says so.
        array = self._array if self.writeable else self._array.copy()
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


class _ExecutionContext:
    """What a buffer callback is told of its run."""

    @property
    def stage(self) -> Any:
        from jax.experimental import buffer_callback

        return buffer_callback.ExecutionStage.EXECUTE

    @property
    def stream(self) -> Any:
        import jax

        raise jax.errors.JaxRuntimeError("INVALID_ARGUMENT: XLA FFI GPU context is not available")


def _call_with_buffers(index: int, arguments: list[np.ndarray | None], results: list[np.ndarray | None]) -> None:
    callback = _callbacks.get(index)
    if callback is None:
        raise RuntimeError(f"this process has no host callback {index}")
    buffers = [None if a is None else _Buffer(a, False) for a in arguments]
    buffers += [None if r is None else _Buffer(r, True) for r in results]
    callback.function(_ExecutionContext(), *buffers)


class _Callbacks:
    """What a lowering takes for the list of the module's host callbacks; its size gives the index of the last one.

    The module's own list has them too: what JAX makes of the module keeps them alive, as do its runs.
    """

    def __init__(self, module_context: Any):
        self._module_context = module_context
        self._size = 0

    def append(self, function: Callable[..., Any]) -> None:
        callback = _Callback(function)
        _callbacks[callback.index] = callback
        self._module_context.add_host_callback(callback)
        self._size = callback.index + 1

    def __len__(self) -> int:
        return self._size


def _as_on_cpu(ctx: Any, platform: str) -> Any:
    """Returns the context in which JAX lowers a callback for its CPU, if the module is for the platform alone."""
    module_context = ctx.module_context
    if tuple(module_context.platforms) != (platform,):
        return ctx
    return ctx.replace(module_context=module_context.replace(platforms=("cpu",), backend=None,
                                                             host_callbacks=_Callbacks(module_context)))


def set_up(plugin: _ffi.Plugin, platform: str) -> None:
    """Registers the handlers, and has JAX lower callbacks on the platform."""
    import jax.interpreters.mlir
    from jax._src import callback as jax_callback

    handler = _ffi.python_handler(_call)
    for target in _TARGETS:
        plugin.register(target, handler, platform)
    lower = jax_callback.emit_python_callback

    @functools.wraps(lower)
    def emit(ctx: Any, *args: Any, **options: Any) -> Any:
        return lower(_as_on_cpu(ctx, platform), *args, **options)

    jax_callback.emit_python_callback = emit
    jax.interpreters.mlir.emit_python_callback = emit


def set_up_buffers(plugin: _ffi.Plugin, platform: str) -> None:
    """Does the same for jax.experimental.buffer_callback, whose functions read and write the memory of the program."""
    from jax._src import buffer_callback
    from jax._src.interpreters import mlir

    plugin.register(_BUFFER_TARGET, _ffi.python_handler(_call_with_buffers), platform)

    def lower(ctx: Any, *args: Any, **options: Any) -> Any:
        return buffer_callback._buffer_callback_lowering(_as_on_cpu(ctx, platform), *args, **options)

    mlir.register_lowering(buffer_callback.buffer_callback_p, lower, platform=platform)
