# SPDX-License-Identifier: Apache-2.0
"""The device that programs are simulated on where they do not say: of profiles, of reports of the runner, of the memory that
programs are told."""

import functools

import hlokit
from hlokit import _simulate

_device = "v4"


def set_device(device: str) -> None:
    """Sets the device, such as "v5p:4x4x4"; an unknown one is an error."""
    global _device
    _simulate.check_device(device)
    _device = device


def device() -> str:
    return _device


@functools.lru_cache(maxsize=None)
def _memory(name: str) -> int:
    report = hlokit.simulate(hlokit.parse("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }"), name)
    return int(report["memory"]["limit_bytes"])


def memory_bytes() -> int:
    """The memory of a chip."""
    return _memory(_device)
