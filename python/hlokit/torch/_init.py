# SPDX-License-Identifier: Apache-2.0
"""Modules that are made on a device."""

import contextlib
from typing import Any, Iterator

import torch

from . import _session

_FACTORIES = ("empty", "zeros", "ones", "full", "rand", "randn", "arange", "tensor", "linspace", "eye", "randint")


@contextlib.contextmanager
def on_device(device: Any = None) -> Iterator[torch.device]:
    """New tensors and modules of the block are on the device: no memory on the host, as with fake=True.

    Replaces functions of torch for the time of the block, in all threads.
    """
    target = _session.device(None if device is None else _session.ordinal_of(device))
    originals = {name: getattr(torch, name) for name in _FACTORIES}

    def placed(original: Any) -> Any:
        def make(*args: Any, **kwargs: Any) -> Any:
            if kwargs.get("device") is None:
                kwargs["device"] = target
            return original(*args, **kwargs)

        return make

    for name, original in originals.items():
        setattr(torch, name, placed(original))
    try:
        yield target
    finally:
        for name, original in originals.items():
            setattr(torch, name, original)
