# SPDX-License-Identifier: Apache-2.0
"""Modules that are made on a device."""

import contextlib
from typing import Any, Iterator

import torch

from . import _session


@contextlib.contextmanager
def on_device(device: Any = None) -> Iterator[torch.device]:
    """New tensors and modules of the block are on the device, as with `torch.device`: no memory on the host, as with fake=True.
    """
    target = _session.device(None if device is None else _session.ordinal_of(device))
    with target:
        yield target
