# SPDX-License-Identifier: Apache-2.0
"""From a function of JAX to a module of hlokit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _estimate

if TYPE_CHECKING:
    import hlokit

_STAGES = ("stablehlo", "hlo", "optimized")


def lower(f: Callable[..., Any], *args: Any, stage: str = "stablehlo", in_shardings: Any = _estimate._NOT_GIVEN,
          out_shardings: Any = _estimate._NOT_GIVEN, static_argnums: int | Sequence[int] | None = None,
          static_argnames: str | Sequence[str] | None = None, donate_argnums: int | Sequence[int] | None = None,
          **kwargs: Any) -> hlokit.Module:
    """Returns the program of f(*args, **kwargs): lower(step, params, batch). Instructions have JAX's source lines.

    `f` is a function, jitted or not; the options are those of jax.jit. Arguments are arrays or jax.ShapeDtypeStruct;
    nothing is run. `stage` is where the program is taken: "stablehlo", as JAX lowers it, translated by hlokit; "hlo",
    translated by XLA; "optimized", compiled by XLA for the platform of the arguments, for one of its devices.

    Raises what tracing or compiling `f` raises, and hlokit.ParseError for a program that hlokit cannot read.
    """
    import hlokit

    if stage not in _STAGES:
        raise ValueError(f"stage {stage!r}: expected one of {', '.join(map(repr, _STAGES))}")
    lowered = _estimate._jitted(f, {
        "in_shardings": in_shardings, "out_shardings": out_shardings, "static_argnums": static_argnums,
        "static_argnames": static_argnames, "donate_argnums": donate_argnums}).lower(*args, **kwargs)
    if stage == "stablehlo":
        code = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)
    elif stage == "hlo":
        code = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    else:
        code = lowered.compile().runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    return hlokit.parse(code, name=f"<{stage} of {getattr(f, '__name__', type(f).__name__)}>", verify=stage != "optimized")
