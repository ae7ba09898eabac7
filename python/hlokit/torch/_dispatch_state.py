# SPDX-License-Identifier: Apache-2.0
"""The dispatch keys of PyTorch while __torch_dispatch__ runs an op of the CPU."""

import contextlib
from typing import Any, Iterator, List

import torch

_NAMES = ("Conjugate", "Negative", "ZeroTensor")


def _keys() -> List[Any]:
    kinds: Any = getattr(torch._C, "DispatchKey", None)
    if kinds is None or not hasattr(torch._C, "_dispatch_tls_set_dispatch_key_excluded"):
        return []
    return [getattr(kinds, name) for name in _NAMES if hasattr(kinds, name)]


_KEYS = _keys()


@contextlib.contextmanager
def views_resolved() -> Iterator[None]:
    """Ops in the block see conjugates and negatives, which PyTorch's own kernels make as marks on views. __torch_dispatch__ is
    below the keys that do so."""
    state: Any = torch._C
    excluded = [key for key in _KEYS if state._dispatch_tls_is_dispatch_key_excluded(key)]
    for key in excluded:
        state._dispatch_tls_set_dispatch_key_excluded(key, False)
    try:
        yield
    finally:
        for key in excluded:
            state._dispatch_tls_set_dispatch_key_excluded(key, True)
