# SPDX-License-Identifier: Apache-2.0
"""PyTorch/XLA on hlokit: the hook by which torch_xla finds the PJRT plugin. docs/jax.md has the options.

Where this package is installed, `PJRT_DEVICE=HLOKIT PJRT_DYNAMIC_PLUGINS=1` selects the plugin; a program can instead
call `register`, for options and for a build directory.
"""

from __future__ import annotations

import os

from hlokit.jax import plugin_path


class Plugin:
    """What torch_xla asks a plugin for, as torch_xla.experimental.plugins.DevicePlugin describes it.

    Options are those of the client: Plugin(device="v5p:2x2x2", engine="fast").
    """

    def __init__(self, **options: str | int) -> None:
        self._options = options

    def library_path(self) -> str:
        """Returns the path of the library."""
        return plugin_path()

    def physical_chip_count(self) -> int:
        """Returns the number of processes that torch_xla starts: one, which has all devices of the client."""
        return 1

    def client_create_options(self) -> dict[str, str | int]:
        """Returns the options that torch_xla gives the client."""
        return dict(self._options)

    def requires_xla_coordinator(self) -> bool:
        """Returns whether processes need a key-value store: there is one process."""
        return False

    def configure_single_process(self) -> None:
        """Called before the client of a process on its own is created."""

    def configure_multiprocess(self, local_rank: int, local_world_size: int) -> int:
        """Returns the number of devices of a process among several.

        Raises RuntimeError for more than one process, which the plugin does not support.
        """
        if local_world_size > 1:
            raise RuntimeError("hlokit runs all devices in one process: start one")
        return 1


def register(**options: str | int) -> None:
    """Registers the plugin with torch_xla as the device "HLOKIT" and selects it, before torch_xla is first used.

    Options are those of the client: device="v5p:2x2x2", num_devices=8, engine="fast".
    """
    from torch_xla.experimental import plugins

    plugins.register_plugin("HLOKIT", Plugin(**options))
    plugins.use_dynamic_plugins()
    os.environ.setdefault("PJRT_DEVICE", "HLOKIT")
