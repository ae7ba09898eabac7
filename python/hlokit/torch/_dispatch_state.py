# SPDX-License-Identifier: Apache-2.0
"""PyTorch's kernels of an op that are not those of a kind of device, and its dispatch keys while an op of the CPU runs."""

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


_COMPOSED = "CompositeExplicitAutograd"


def composed(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of PyTorch's own kernel for any device, which calls other ops, or NotImplemented."""
    key = getattr(getattr(torch._C, "DispatchKey", None), _COMPOSED, None)
    if key is None or not hasattr(func, "_op_dk") or any(a.alias_info is not None for a in func._schema.arguments):
        return NotImplemented
    try:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), _COMPOSED):
            return NotImplemented
        return func._op_dk(key, *args, **kwargs)
    except (AttributeError, NotImplementedError, RuntimeError):
        return NotImplemented  # the CPU has torch's own error
