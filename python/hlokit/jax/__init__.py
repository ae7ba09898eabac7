# SPDX-License-Identifier: Apache-2.0
"""JAX on hlokit: registers the PJRT plugin, with which JAX programs run on hlokit. docs/jax.md has the options.

JAX finds the plugin by itself where this package is installed; `JAX_PLATFORMS=hlokit` then selects it. `register` is for
programs that choose options, and for a build directory. `estimate` says what a function would take on a TPU, `lower`
gives its program as a module of hlokit, and `transform` rewrites programs within XLA's pipeline, on any platform of JAX.
"""

from __future__ import annotations

import os
import pathlib

from ._estimate import Estimate, estimate
from ._lower import lower
from ._transform import NotTransformedWarning, Program, transform

__all__ = ["Estimate", "NotTransformedWarning", "Program", "estimate", "lower", "plugin_path", "register", "transform"]

_NAME = "libhlokit_pjrt.so"
# Below JAX's own platforms: hlokit runs programs that ask for it.
_PRIORITY = -100
_options: dict[str, str | int] = {}  # that the plugin was registered with


def plugin_path() -> str:
    """Returns the path of the plugin: HLOKIT_PJRT_PLUGIN, or the one of this installation.

    Raises FileNotFoundError if there is none: hlokit was built without it.
    """
    named = os.environ.get("HLOKIT_PJRT_PLUGIN")
    if named:
        return named
    package = pathlib.Path(os.path.abspath(__file__)).parents[1]
    candidates = [
        package / _NAME,  # a wheel, or a build directory
        package.parents[2] / "hlokit" / _NAME,  # an installation: lib/python3/dist-packages/hlokit
    ]
    for candidate in candidates:
        if candidate.exists():
            return str(candidate)
    raise FileNotFoundError(f"no {_NAME} in any of {', '.join(str(c.parent) for c in candidates)}; "
                            "HLOKIT_PJRT_PLUGIN may name it")


def register(**options: str | int) -> None:
    """Registers the plugin with JAX as the platform "hlokit", before JAX is first used.

    Options are those of the client: device="v5p:2x2x2", num_devices=8, dump_to="dumps". Where
    PJRT_NAMES_AND_LIBRARY_PATHS names a plugin `hlokit`, JAX registers that one, and options are in the environment. A
    second call without options, or with the same ones, does nothing; with others it raises RuntimeError.
    """
    from jax._src import xla_bridge  # JAX has no public name for it

    from . import _platform

    named = _library_in_environment()
    if named is not None:
        if options:
            raise ValueError("PJRT_NAMES_AND_LIBRARY_PATHS names the plugin hlokit, whose options are in the environment: "
                             "HLOKIT_DEVICE for device")
        xla_bridge.register_plugin_callbacks(lambda c_api: _platform.set_up_library(c_api, named))
    elif "hlokit" not in xla_bridge._backend_factories:
        api = xla_bridge.register_plugin("hlokit", priority=_PRIORITY, library_path=plugin_path(), options=dict(options))
        _platform.set_up(api)
        _options.update(options)
    elif options and options != _options:
        raise RuntimeError("hlokit is registered with JAX already, with other options: call register before JAX is used, once")


def _library_in_environment() -> str | None:
    for entry in os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(","):
        name, _, path = entry.partition(":")
        if name == "hlokit" and path:
            return path
    return None
