# SPDX-License-Identifier: Apache-2.0
"""What JAX must know about the platform "hlokit" beyond the plugin: lowerings, custom calls, donation, DLPack."""

from __future__ import annotations

import ctypes
import functools
import warnings
from collections.abc import Callable
from typing import Any

from . import _callbacks, _ffi

PLATFORM = "hlokit"

# Primitives that JAX lowers by platform and that are lowered as for its CPU: to custom calls of jaxlib's LAPACK, or to
# host callbacks.
_AS_ON_CPU = frozenset({
    "eig", "eigh", "geqp3", "hessenberg", "ormqr", "schur", "svd", "tridiagonal", "tridiagonal_solve",
    "csr_spmm", "csr_spmv", "spsolve",
    "check", "debug_callback", "debug_print",
})
# Those that are lowered as for a TPU: to custom calls of hlokit.
_AS_ON_TPU = frozenset({"lu"})


class _Rules(dict):
    """The lowering rules of the platform. Looks up those of other platforms late: JAX's modules add them when imported."""

    def __init__(self, rules: dict[str, dict[Any, Any]]):
        super().__init__(rules.get(PLATFORM, {}))
        self._rules = rules

    def __contains__(self, primitive: Any) -> bool:
        return super().__contains__(primitive) or self._find(primitive)

    def __missing__(self, primitive: Any) -> Any:
        if not self._find(primitive):
            raise KeyError(primitive)
        return super().__getitem__(primitive)

    def get(self, primitive: Any, default: Any = None) -> Any:
        return self[primitive] if primitive in self else default

    def _find(self, primitive: Any) -> bool:
        for names, platform in ((_AS_ON_CPU, "cpu"), (_AS_ON_TPU, "tpu")):
            if primitive.name in names and primitive in self._rules[platform]:
                self[primitive] = self._rules[platform][primitive]
                return True
        return False


def _set_up_lowerings() -> None:
    from jax._src.interpreters import mlir

    rules = mlir._platform_specific_lowerings
    if not isinstance(rules.get(PLATFORM), _Rules):
        rules[PLATFORM] = _Rules(rules)


def _set_up_custom_partitioning() -> None:
    """Functions of jax.custom_partitioning are lowered as JAX does it on one device: they are partitioned as any code."""
    from jax._src import core, custom_partitioning
    from jax._src.interpreters import mlir

    def lower(ctx: Any, *values: Any, call: Any, **_: Any) -> Any:
        return mlir.lower_fun(core.jaxpr_as_fun(call), multiple_results=True)(ctx, *values)

    mlir.register_lowering(custom_partitioning.custom_partitioning_p, lower, platform=PLATFORM)


def _set_up_donation() -> None:
    from jax._src.interpreters import mlir

    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)


def _set_up_custom_calls(plugin: _ffi.Plugin) -> None:
    """Passes on what jax.ffi.register_ffi_target registers for this platform or for the CPU."""
    from jax._src.lib import lapack, xla_client

    def register(name: Any, function: Any, platform: str, api_version: int = 0, traits: Any = 0) -> None:
        if isinstance(function, dict):
            stages = [stage for stage, handler in function.items() if handler is not None]
            if stages != ["execute"]:
                raise NotImplementedError(f"hlokit runs handlers of the stage execute only; {name} has {stages}")
            function = function["execute"]
        if api_version != 1:
            raise NotImplementedError(f"hlokit runs typed custom calls (api_version=1); {name} has {api_version}")
        plugin.register(name if isinstance(name, str) else name.decode(), _ffi.pointer_of(function), PLATFORM)

    xla_client.register_custom_call_handler(PLATFORM, register)

    # Registered before: jaxlib's LAPACK and its sparse products.
    modules = [lapack]
    try:
        from jaxlib import cpu_sparse
        modules.append(cpu_sparse)
    except ImportError:
        pass
    for module in modules:
        for name, function, api_version in module.registrations().get("cpu", ()):
            if api_version == 1:
                register(name, function, PLATFORM, api_version)
    lapack._lapack.initialize()
    _also_for_cpu(xla_client, register)


def _also_for_cpu(xla_client: Any, register: Callable[..., None]) -> None:
    """Handlers for the CPU work here too: memory is the host's."""
    original = xla_client.register_custom_call_target

    @functools.wraps(original)
    def register_target(name: Any, fn: Any, platform: str = "cpu", api_version: int = 0, *args: Any,
                        **options: Any) -> Any:
        result = original(name, fn, platform, api_version, *args, **options)
        if platform == "cpu" and api_version == 1:
            try:
                register(name, fn, PLATFORM, api_version)
            except (NotImplementedError, ValueError) as error:
                warnings.warn(f"the custom call {name} is for the CPU only: {error}", stacklevel=2)
        return result

    xla_client.register_custom_call_target = register_target


def _set_up_dlpack() -> None:
    """Arrays of the platform are exported as those of the CPU, by a copy that JAX makes."""
    from jax._src import array
    from jax._src.dlpack import DLDeviceType

    device = array.ArrayImpl.__dlpack_device__
    export = array.ArrayImpl.__dlpack__

    def is_ours(x: Any) -> bool:
        return len(x.sharding.device_set) == 1 and next(iter(x.sharding.device_set)).platform == PLATFORM

    @functools.wraps(device)
    def __dlpack_device__(self: Any) -> Any:
        return (DLDeviceType.kDLCPU, 0) if is_ours(self) else device(self)

    @functools.wraps(export)
    def __dlpack__(self: Any, *, dl_device: Any = None, **options: Any) -> Any:
        if dl_device is None and is_ours(self):
            dl_device = (DLDeviceType.kDLCPU, 0)
        return export(self, dl_device=dl_device, **options)

    array.ArrayImpl.__dlpack_device__ = __dlpack_device__
    array.ArrayImpl.__dlpack__ = __dlpack__


def _set_up_host() -> None:
    """Gives a program that selects hlokit alone JAX's CPU too, where host callbacks and DLPack have their arrays."""
    import jax

    platforms = jax.config.jax_platforms
    if platforms and "hlokit" in platforms.split(",") and "cpu" not in platforms.split(","):
        jax.config.update("jax_platforms", platforms + ",cpu")


def set_up_library(api: Any, path: str) -> None:
    """As set_up, if the PJRT_Api is that of the library."""
    get_api = ctypes.CDLL(path).GetPjrtApi
    get_api.restype = ctypes.c_void_p
    if get_api() == _ffi.pointer_of(api):
        set_up(api)


def set_up(api: Any) -> None:
    """Does all of it for the plugin with this PJRT_Api. What a version of JAX does not have is a warning."""
    plugin = _ffi.Plugin(api)
    steps: dict[str, Callable[[], None]] = {
        "the host's arrays": _set_up_host,
        "lowerings": _set_up_lowerings,
        "custom partitioning": _set_up_custom_partitioning,
        "donation": _set_up_donation,
        "custom calls": lambda: _set_up_custom_calls(plugin),
        "host callbacks": lambda: _callbacks.set_up(plugin, PLATFORM),
        "DLPack": _set_up_dlpack,
    }
    for name, step in steps.items():
        try:
            step()
        except Exception as error:  # noqa: BLE001: of JAX's internals, which change
            import jax

            warnings.warn(f"hlokit cannot set up {name} for JAX {jax.__version__}: {type(error).__name__}: {error}",
                          stacklevel=2)
