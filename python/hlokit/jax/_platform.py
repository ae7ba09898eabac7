# SPDX-License-Identifier: Apache-2.0
"""What JAX must know about the platform "hlokit" beyond the plugin: lowerings, custom calls, donation, DLPack, caches."""

from __future__ import annotations

import ctypes
import dataclasses
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


def _called_export(rule: Callable[..., Any]) -> Callable[..., Any]:
    """What was exported for the CPU runs here, as what was exported for this platform does."""

    @functools.wraps(rule)
    def lower(ctx: Any, *args: Any, exported: Any) -> Any:
        if PLATFORM not in exported.platforms and "cpu" in exported.platforms:
            platforms = tuple(PLATFORM if p == "cpu" else p for p in exported.platforms)
            exported = dataclasses.replace(exported, platforms=platforms)
        return rule(ctx, *args, exported=exported)

    return lower


def _with_this_platform(branches: Any) -> Any:
    """The platforms of the branches of lax.platform_dependent: that for the CPU is for this one, unless another is.

    None stands for the platforms that no branch names.
    """
    if branches is None or any(names is not None and PLATFORM in names for names in branches):
        return branches
    return tuple((*names, PLATFORM) if names is not None and "cpu" in names else names for names in branches)


def _branch_index(rule: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def lower(ctx: Any, *args: Any, platforms: Any) -> Any:
        return rule(ctx, *args, platforms=_with_this_platform(platforms))

    return lower


def _branches(rule: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(rule)
    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        if "branches_platforms" in params:
            params["branches_platforms"] = _with_this_platform(params["branches_platforms"])
        return rule(ctx, *args, **params)

    return lower


def _interpreted_kernel(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel of Pallas on several cores: its rule names the platforms that it knows, of which all but TPUs interpret it."""

    @functools.wraps(rule)
    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        from jax._src.pallas import mpmd

        return mpmd._mpmd_map_fallback_lowering(ctx, *args, **params)

    return lower


# Primitives whose rule for all platforms is told what this one is.
_ADAPTED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "buffer_callback": lambda rule: _callbacks.lowered_as_for_the_cpu(rule, PLATFORM),
    "call_exported": _called_export,
    "cond": _branches,
    "mpmd_map": _interpreted_kernel,
    "platform_index": _branch_index,
}


class _Rules(dict):
    """The lowering rules of the platform. Looks up those of other platforms late: JAX's modules add them when imported.

    A primitive that has rules for some platforms only, as programs define them, is lowered as for the CPU.
    """

    def __init__(self, rules: dict[str, dict[Any, Any]], rules_of_all: dict[Any, Any]):
        super().__init__(rules.get(PLATFORM, {}))
        self._rules = rules
        self._rules_of_all = rules_of_all

    def __contains__(self, primitive: Any) -> bool:
        return super().__contains__(primitive) or self._find(primitive) is not None

    def __missing__(self, primitive: Any) -> Any:
        entry = self._find(primitive)
        if entry is None:
            raise KeyError(primitive)
        return entry

    def get(self, primitive: Any, default: Any = None) -> Any:
        return self[primitive] if primitive in self else default

    def _find(self, primitive: Any) -> Any:
        for names, platform in ((_AS_ON_CPU, "cpu"), (_AS_ON_TPU, "tpu")):
            if primitive.name in names and primitive in self._rules[platform]:
                return self._rules[platform][primitive]
        entry = self._rules_of_all.get(primitive)
        if entry is None:
            return self._rules["cpu"].get(primitive)
        if primitive.name in _ADAPTED:
            adapt = _ADAPTED[primitive.name]
            is_entry = dataclasses.is_dataclass(entry) and not isinstance(entry, type)
            self[primitive] = dataclasses.replace(entry, rule=adapt(entry.rule)) if is_entry else adapt(entry)
            return self[primitive]
        return None


def _set_up_lowerings() -> None:
    from jax._src.interpreters import mlir

    rules = mlir._platform_specific_lowerings
    if not isinstance(rules.get(PLATFORM), _Rules):
        rules[PLATFORM] = _Rules(rules, mlir._lowerings)


def _set_up_compilation_cache() -> None:
    """JAX keeps compiled programs of the platforms that it knows: what it asks for the CPU, it asks for this one."""
    from jax._src import compilation_cache

    original = compilation_cache.is_cache_used

    class Backend:
        platform = "cpu"
        supports_executable_serialization = True

    @functools.wraps(original)
    def is_cache_used(backend: Any) -> bool:
        return original(Backend() if backend.platform == PLATFORM else backend)

    compilation_cache.is_cache_used = is_cache_used


def _set_up_cost_analysis() -> None:
    """The costs of a program that is not compiled yet are those that JAX computes for its CPU."""
    from jax._src import xla_bridge
    from jax._src.interpreters import pxla
    from jax._src.lib import _jax

    original = pxla.MeshComputation.cost_analysis

    @functools.wraps(original)
    def cost_analysis(self: Any) -> Any:
        backend = self.compile_args["backend"]
        if getattr(backend, "platform", None) != PLATFORM:
            return original(self)
        return _jax.hlo_module_cost_analysis(xla_bridge.get_backend("cpu"), self.hlo().as_hlo_module())

    pxla.MeshComputation.cost_analysis = cost_analysis


def _set_up_donation() -> None:
    from jax._src.interpreters import mlir

    if PLATFORM not in mlir._platforms_with_donation:
        mlir._platforms_with_donation.append(PLATFORM)


def _set_up_custom_calls(plugin: _ffi.Plugin) -> None:
    """Passes on what jax.ffi.register_ffi_target registers for this platform or for the CPU."""
    from jax._src.lib import lapack, xla_client

    def register(name: Any, function: Any, platform: str, api_version: int = 0, traits: Any = 0) -> None:
        if api_version != 1:
            raise NotImplementedError(f"hlokit runs typed custom calls (api_version=1); {name} has {api_version}")
        target = name if isinstance(name, str) else name.decode()
        if isinstance(function, dict):
            stages = {stage: _ffi.pointer_of(handler) for stage, handler in function.items() if handler is not None}
            plugin.register_stages(target, stages, PLATFORM)
        else:
            plugin.register(target, _ffi.pointer_of(function), PLATFORM)

    def register_type(name: Any, registration: Any) -> None:
        parts = registration if isinstance(registration, dict) else {"type_id": registration}
        info = parts.get("type_info")
        plugin.register_type(name if isinstance(name, str) else name.decode(), _ffi.pointer_of(parts["type_id"]),
                             None if info is None else _ffi.pointer_of(info))

    xla_client.register_custom_call_handler(PLATFORM, register)
    if hasattr(xla_client, "register_custom_type_handler"):
        xla_client.register_custom_type_handler(PLATFORM, register_type)

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
    _also_for_cpu(xla_client, register, register_type)


def _also_for_cpu(xla_client: Any, register: Callable[..., None], register_type: Callable[..., None]) -> None:
    """Handlers for the CPU work here too, and the types of their states: memory is the host's."""
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
    if not hasattr(xla_client, "register_custom_type"):
        return
    original_type = xla_client.register_custom_type

    @functools.wraps(original_type)
    def register_type_of(name: Any, registration: Any, platform: str = "cpu", **options: Any) -> Any:
        result = original_type(name, registration, platform=platform, **options)
        if platform == "cpu":
            register_type(name, registration)
        return result

    xla_client.register_custom_type = register_type_of


def _set_up_custom_partitioning(api: Any, in_callback: bool) -> None:
    """Registers JAX's partitioner once more, after JAX itself does, with programs as text instead of MLIR's bytecode."""
    from jax._src import xla_bridge
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    try:
        from jax._src import custom_partitioning
    except ImportError:  # before JAX 0.12
        from jax.experimental import custom_partitioning  # type: ignore[no-redef]

    def partition(*args: Any) -> tuple[bytes, Any, Any]:
        program, of_arguments, of_result = custom_partitioning._custom_partitioning_partition(*args)
        with mlir.make_ir_context():
            return str(ir.Module.parse(program)).encode(), of_arguments, of_result

    def register(c_api: Any) -> None:
        if _ffi.pointer_of(c_api) != _ffi.pointer_of(api):
            return
        xla_client.register_custom_call_partitioner(
            name=custom_partitioning._CUSTOM_PARTITIONING_CALL_NAME,
            prop_user_sharding=custom_partitioning._custom_partitioning_propagate_user_sharding,
            partition=partition,
            infer_sharding_from_operands=custom_partitioning._custom_partitioning_infer_sharding_from_operands,
            can_side_effecting_have_replicated_sharding=True,
            c_api=c_api)

    if in_callback:  # JAX's own comes first, and holds a lock
        register(api)
    else:
        xla_bridge.register_plugin_callbacks(lambda c_api: register(c_api))


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
        set_up(api, in_callback=True)


def set_up(api: Any, in_callback: bool = False) -> None:
    """Does all of it for the plugin with this PJRT_Api. What a version of JAX does not have is a warning.

    `in_callback`: JAX calls this for each of its plugins.
    """
    plugin = _ffi.Plugin(api)
    steps: dict[str, Callable[[], None]] = {
        "the host's arrays": _set_up_host,
        "lowerings": _set_up_lowerings,
        "the compilation cache": _set_up_compilation_cache,
        "costs": _set_up_cost_analysis,
        "donation": _set_up_donation,
        "custom calls": lambda: _set_up_custom_calls(plugin),
        "host callbacks": lambda: _callbacks.set_up(plugin, PLATFORM),
        "custom partitioning": lambda: _set_up_custom_partitioning(api, in_callback),
        "DLPack": _set_up_dlpack,
    }
    for name, step in steps.items():
        try:
            step()
        except Exception as error:  # noqa: BLE001: of JAX's internals, which change
            import jax

            warnings.warn(f"hlokit cannot set up {name} for JAX {jax.__version__}: {type(error).__name__}: {error}",
                          stacklevel=2)
