# SPDX-License-Identifier: Apache-2.0
"""PyTorch/XLA on hlokit: the hook by which torch_xla finds the PJRT plugin. docs/jax.md has the options.

Where this package is installed, `PJRT_DEVICE=HLOKIT` selects the plugin; a program can instead call `register`, for
options and for a build directory.
"""

from __future__ import annotations

import functools
import os

from hlokit.jax import plugin_path

_NAME = "HLOKIT"
# Options of the client, and the variables that processes which torch_xla starts have them from.
_VARIABLES = {
    "callback_seconds": "HLOKIT_CALLBACK_SECONDS",
    "device": "HLOKIT_DEVICE",
    "dump_to": "HLOKIT_DUMP_TO",
    "engine": "HLOKIT_ENGINE",
    "max_bytes": "HLOKIT_MAX_BYTES",
    "max_seconds": "HLOKIT_MAX_SECONDS",
    "num_devices": "HLOKIT_NUM_DEVICES",
    "num_threads": "HLOKIT_NUM_THREADS",
    "report": "HLOKIT_REPORT",
}


@functools.cache
def _plugin_class() -> type:
    """Returns the class of the plugin, which derives from torch_xla's: torch_xla takes no other."""
    from torch_xla.experimental import plugins

    class Plugin(plugins.DevicePlugin):
        """The hlokit plugin of torch_xla.

        Options are those of the client: Plugin(device="v5p:2x2x2", engine="fast").
        """

        def __init__(self, **options: str | int) -> None:
            super().__init__()
            self._options = options

        def library_path(self) -> str:
            """Returns the path of the library."""
            return plugin_path()

        def physical_chip_count(self) -> int:
            """Returns the number of processes that torch_xla starts: one, with a thread for each device."""
            return 1

        def client_create_options(self) -> dict[str, str | int]:
            """Returns the options that torch_xla gives the client."""
            return dict(self._options)

        def requires_xla_coordinator(self) -> bool:
            """Returns whether processes need a key-value store: there is one process."""
            return False

        def configure_single_process(self) -> None:
            """Called before the client of a process on its own is created."""

        def configure_multiprocess(self, local_rank: int, local_world_size: int) -> None:
            """Called in each process that torch_xla starts.

            Raises RuntimeError for more than one process, which the plugin does not support.
            """
            if local_world_size > 1:
                raise RuntimeError("hlokit runs all devices in one process: start one")

    Plugin.__qualname__ = "Plugin"
    return Plugin


def __getattr__(name: str) -> type:
    # The class needs torch_xla, which imports this module while it is itself imported.
    if name == "Plugin":
        return _plugin_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register(**options: str | int) -> None:
    """Registers the plugin with torch_xla as the device "HLOKIT" and selects it, before torch_xla is first used.

    Options are those of the client: device="v5p:2x2x2", num_devices=8, engine="fast". They are also set in the
    environment: torch_xla.launch and spawn start a process that reads them there. Where this package is not installed,
    that process has to call this function too, so a program calls it where it is imported, not under
    `if __name__ == "__main__"`.
    """
    unknown = sorted(set(options) - set(_VARIABLES))
    if unknown:
        raise TypeError(f"register() has no option {unknown[0]!r}; the options are {', '.join(sorted(_VARIABLES))}")
    os.environ.update({_VARIABLES[name]: str(value) for name, value in options.items()})
    os.environ["PJRT_DEVICE"] = _NAME
    from torch_xla.experimental import plugins

    plugins.register_plugin(_NAME, _plugin_class()(**options))
    plugins.use_dynamic_plugins()
