# SPDX-License-Identifier: Apache-2.0
"""Eager mode of torch_xla.experimental."""

import contextlib
from typing import Iterator

from . import _lines

_enabled = False


def eager_mode(enable: bool) -> None:
    """Values are the same in both modes: ops are recorded here as without it, until a step ends or a value is read."""
    global _enabled
    if enable:
        _lines.warn_once("eager_mode: hlokit.torch records ops lazily all the same; graphs and estimates are of lazy mode")
    _enabled = enable


def is_eager_mode() -> bool:
    return _enabled


@contextlib.contextmanager
def eager_mode_context(enable: bool) -> Iterator[None]:
    before = _enabled
    eager_mode(enable)
    try:
        yield
    finally:
        eager_mode(before)
