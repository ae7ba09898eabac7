# SPDX-License-Identifier: Apache-2.0
"""What a function would take on a TPU: it is lowered by JAX, and partitioned, compiled and simulated by the plugin."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pathlib
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from . import _plugin

# Of jax.jit; what is not given is left to it.
_NOT_GIVEN: Any = object()


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What one call of a program takes on a simulated TPU. Numbers of work and memory are those of one device."""

    name: str  # of the program
    device: str  # "v6e:4x4"
    num_devices: int  # of the slice
    used_devices: int  # that the program is for; the others are idle
    lowered_for: str  # the platform for which JAX lowered the function: "tpu", or "hlokit" if it cannot for TPUs
    step_seconds: float  # of one call, back to back with others
    device_seconds: float  # of the device; shorter than the step if the host cannot call as fast
    relative_error: float  # standard deviation of the step's time as a fraction of it
    bound: str  # what takes most of the time: "HBM", "MXU", ...
    flops: float
    mfu: float  # flops in the step's time as a fraction of the bf16 peak
    hbm_peak_bytes: int  # memory at its peak, arguments and results included
    hbm_limit_bytes: int
    collective_seconds: float  # in which collectives are under way, hidden or not
    exposed_seconds: float  # of them, in which the device waits
    not_modeled: tuple[str, ...]  # what the estimate leaves out or assumes, such as custom calls of unknown work
    report: str = dataclasses.field(repr=False)  # as hlo-run --device prints it
    json: dict[str, Any] = dataclasses.field(repr=False)  # as hlo-run --device --json gives it
    _document: Callable[[], str] = dataclasses.field(repr=False, compare=False)

    @property
    def fits(self) -> bool:
        """Whether the program fits into the memory of the device."""
        return self.hbm_peak_bytes <= self.hbm_limit_bytes

    @property
    def flops_per_second(self) -> float:
        """Operations a second of one device."""
        return self.flops / self.step_seconds if self.step_seconds > 0 else 0.0

    def __str__(self) -> str:
        idle = "" if self.used_devices == self.num_devices else f"{self.used_devices} of "
        chips = f"{idle}{self.num_devices} device{'' if self.num_devices == 1 else 's'}"
        fits = "" if self.fits else ": does not fit"
        waits = f", {_time(self.exposed_seconds)} of it exposed" if self.collective_seconds > 0 else ""
        device = f" (of the device {_time(self.device_seconds)})" if self.step_seconds > 1.01 * self.device_seconds else ""
        return "\n".join([
            f"{self.name} on {self.device} ({chips}), lowered for {self.lowered_for}",
            f"step         {_time(self.step_seconds)} ± {100 * self.relative_error:.0f} %, bound by {self.bound}{device}",
            f"HBM          {_bytes(self.hbm_peak_bytes)} of {_bytes(self.hbm_limit_bytes)} at the peak{fits}",
            f"operations   {_flops(self.flops)} a device, MFU {100 * self.mfu:.1f} %",
            f"collectives  {_time(self.collective_seconds)}{waits}",
        ])

    def save_html(self, path: str | os.PathLike[str]) -> pathlib.Path:
        """Writes the report as a page, that of hlo-run --report (docs/report.md), and returns its path.

        Raises RuntimeError if hlokit was built without its pages.
        """
        from hlokit import _pages

        target = pathlib.Path(path)
        _pages.write_whole(target, _pages.report_page(self._document()))
        return target


def _scaled(value: float, units: Sequence[tuple[float, str]]) -> str:
    """The value in the largest of the units, which descend, that it reaches."""
    scale, unit = next((u for u in units if value >= u[0]), units[-1])
    return f"{value / scale:.4g} {unit}"


def _time(seconds: float) -> str:
    return _scaled(seconds, ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")))


def _bytes(count: float) -> str:
    return _scaled(count, ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")))


def _flops(count: float) -> str:
    return _scaled(count, ((1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1, "FLOP")))


def estimate(f: Callable[..., Any], *args: Any, device: str, in_shardings: Any = _NOT_GIVEN, out_shardings: Any = _NOT_GIVEN,
             static_argnums: int | Sequence[int] | None = None, static_argnames: str | Sequence[str] | None = None,
             donate_argnums: int | Sequence[int] | None = None, **kwargs: Any) -> Estimate:
    """Estimates what f(*args, **kwargs) takes on a TPU: estimate(step, params, batch, device="v6e:4x4").

    `f` is a function, jitted or not; the options are those of jax.jit. Arguments are arrays or jax.ShapeDtypeStruct:
    only their shapes, types and shardings count, nothing is run. Meshes may be jax.sharding.AbstractMesh, for which no
    devices need to exist. `device` is a generation with the chips of a slice: "v5e", "v5p:2x2x1", "v6e:4x4".

    Raises what tracing `f` raises, and ValueError with a message of hlokit: for a device that does not exist (it names
    those that do) or has too few chips, and for a program that cannot be simulated.
    """
    if not isinstance(device, str):
        raise TypeError(f'device is the name of a slice of TPUs, such as "v6e:4x4", not {device!r}')
    lowered, platform = _lower(_jitted(f, {
        "in_shardings": in_shardings, "out_shardings": out_shardings, "static_argnums": static_argnums,
        "static_argnames": static_argnames, "donate_argnums": donate_argnums}), *_shapes((args, kwargs)))
    module = lowered.compiler_ir("stablehlo")
    code = module.operation.get_asm(enable_debug_info=True).encode()
    options = _compile_options(module)
    api = _api()
    report, text, _ = _plugin.simulate(api, code, options, device, document=False)
    found = _of_report(report, json.loads(text), platform,
                       lambda: _plugin.simulate(api, code, options, device, document=True)[2])
    if found.used_devices < found.num_devices:
        what = ("nothing is sharded, so the program runs on one device, and each of the others could only do the same"
                if found.used_devices == 1 else f"the program's shardings are for {found.used_devices} devices")
        warnings.warn(f"{device} has {found.num_devices} devices; {what}", stacklevel=2)
    if found.not_modeled:
        warnings.warn(f"not modeled: {'; '.join(found.not_modeled)}", stacklevel=2)
    return found


def _jitted(f: Callable[..., Any], options: dict[str, Any]) -> Any:
    import jax

    given = {k: v for k, v in options.items() if v is not None and v is not _NOT_GIVEN}
    return f if hasattr(f, "trace") and not given else jax.jit(f, **given)


def _shapes(tree: Any) -> Any:
    """Shapes in place of arrays: a program for another device than theirs takes them."""
    import jax

    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(tree)):
        return tree

    def shape_of(x: Any) -> Any:
        if not isinstance(x, jax.Array) or isinstance(x, jax.core.Tracer):
            return x
        sharding = x.sharding if isinstance(x.sharding, jax.sharding.NamedSharding) and x.sharding.num_devices > 1 else None
        return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding, weak_type=x.aval.weak_type)

    return jax.tree.map(shape_of, tree)


def _lower(jitted: Any, args: Any, kwargs: Any) -> tuple[Any, str]:
    """Returns the program as JAX lowers it for TPUs, or for hlokit where it cannot, and which it is."""
    traced = jitted.trace(*args, **kwargs)
    try:
        return traced.lower(lowering_platforms=("tpu",)), "tpu"
    except Exception:  # noqa: BLE001: primitives say in their own ways that they need a TPU
        from . import register

        register()
        return traced.lower(lowering_platforms=("hlokit",)), "hlokit"


def _compile_options(module: Any) -> bytes:
    """A CompileOptionsProto for the partitions of the module, as JAX makes it."""
    from jax._src.lib import xla_client

    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = _counts(module)
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = options.num_replicas, options.num_partitions
    build.use_spmd_partitioning = True
    # Arguments and results that the program gives no sharding get one, as JAX has it.
    build.allow_spmd_sharding_propagation_to_parameters = [True]
    build.allow_spmd_sharding_propagation_to_output = [True]
    return options.SerializeAsString()


def _counts(module: Any) -> tuple[int, int]:
    """Returns the numbers of replicas and partitions of the module."""
    from jax._src.lib.mlir.dialects import sdy

    def count(name: str) -> int:
        attributes = module.operation.attributes
        return attributes[name].value if name in attributes else 1

    partitions = count("mhlo.num_partitions")
    # JAX counts no devices where only the function's own operations name an abstract mesh.
    for operation in module.body.operations:
        if operation.operation.name == "sdy.mesh":
            axes = sdy.MeshAttr(operation.operation.attributes["mesh"]).axes
            partitions = max(partitions, math.prod(axis.size for axis in map(sdy.MeshAxisAttr, axes)))
    return count("mhlo.num_replicas"), partitions


def _api() -> _plugin.Api:
    from . import _library_in_environment, plugin_path

    return _plugin.Api.of_library(_library_in_environment() or plugin_path())


def _of_report(report: str, contents: dict[str, Any], platform: str, document: Callable[[], str]) -> Estimate:
    memory, collectives = contents["memory"], contents["collectives"]
    seconds = contents["step_time_us"] / 1e6
    times = lambda count: f" ({count} times)" if count > 1 else ""
    return Estimate(
        name=contents["module"],
        device=f"{contents['device']}:{contents['topology']}",
        num_devices=contents["devices"],
        used_devices=contents["used_devices"],
        lowered_for=platform,
        step_seconds=seconds,
        device_seconds=contents["device_time_us"] / 1e6,
        relative_error=contents["uncertainty"]["relative"],
        bound=contents["bound_by"],
        flops=contents["flops"],
        mfu=contents["flops"] / (seconds * contents["peaks"]["bf16_flops_per_second"]) if seconds > 0 else 0.0,
        hbm_peak_bytes=memory["peak_bytes"],
        hbm_limit_bytes=int(memory["limit_bytes"]),
        collective_seconds=sum(c["time_us"] for c in collectives) / 1e6,
        exposed_seconds=sum(c["exposed_us"] for c in collectives) / 1e6,
        not_modeled=tuple(f"{u['what']}{times(u['count'])}" for u in contents["unmodeled"]),
        report=report,
        json=contents,
        _document=document,
    )
