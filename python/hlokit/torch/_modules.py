# SPDX-License-Identifier: Apache-2.0
"""Scopes of modules: calls of torch.nn modules name what they record, as in "ResNet.1/layer1.5/0.1/conv1.1"."""

import weakref
from typing import Any

import torch

from hlokit import _hlokit

_names: "weakref.WeakKeyDictionary[torch.nn.Module, str]" = weakref.WeakKeyDictionary()


def _name(module: torch.nn.Module) -> str:
    # The outermost module that is called names those inside.
    _names[module] = name = type(module).__name__
    for path, inner in module.named_modules():
        if path and inner not in _names:
            _names[inner] = path.rpartition(".")[2]
    return name


def install() -> None:
    """Wraps the call of modules, once. Hooks of modules would not see a call that raises."""
    original = torch.nn.Module.__call__
    if hasattr(original, "_hlokit"):
        return
    push, pop = _hlokit._push_scope, _hlokit._pop_scope

    def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        push(_names.get(self) or _name(self))
        try:
            return original(self, *args, **kwargs)
        finally:
            pop()

    call._hlokit = True  # type: ignore[attr-defined]
    call.__wrapped__ = original  # type: ignore[attr-defined]
    torch.nn.Module.__call__ = call  # type: ignore[assignment]
