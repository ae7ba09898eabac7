# SPDX-License-Identifier: Apache-2.0
"""Modules: their calls name what they record, as in "ResNet.1/layer1.5/0.1/conv1.1", and parameters that were one stay one
when a module goes to a device."""

import importlib
import weakref
from typing import Any, Dict, Optional, Tuple

import torch
from torch.nn.parameter import UninitializedParameter

from hlokit import _hlokit

from . import _lines
from ._tensor import is_lazy

_names: "weakref.WeakKeyDictionary[torch.nn.Module, str]" = weakref.WeakKeyDictionary()


def _name(module: torch.nn.Module) -> str:
    # The outermost module that is called names those inside.
    _names[module] = name = type(module).__name__
    for path, inner in module.named_modules():
        if path and inner not in _names:
            _names[inner] = path.rpartition(".")[2]
    return name


def _scope_of(module: torch.nn.Module) -> str:
    return _names.get(module) or _name(module)


def install() -> None:
    """Wraps the call of modules, once. Hooks of modules would not see a call that raises."""
    original = torch.nn.Module.__call__
    if hasattr(original, "_hlokit"):
        return
    push, pop = _hlokit._push_scope, _hlokit._pop_scope
    # Dynamo, which names the modules itself, must not see the rest.
    is_captured = getattr(getattr(torch, "compiler", None), "is_dynamo_compiling", None) or bool

    def call(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if is_captured():
            return original(self, *args, **kwargs)
        push(_scope_of(self))
        try:
            return original(self, *args, **kwargs)
        finally:
            pop()

    call._hlokit = True  # type: ignore[attr-defined]
    call.__wrapped__ = original  # type: ignore[attr-defined]
    torch.nn.Module.__call__ = call  # type: ignore[assignment]
    # Dynamo compiles what a module does, not this frame, which all modules share: its limit on recompilations is by frame.
    frames: Any = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(frames, "set_code_exec_strategy"):
        action = frames._FrameAction
        frames.set_code_exec_strategy(call.__code__, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))
        frames.set_code_exec_strategy(_scope_of.__code__, frames._FrameExecStrategy(action.SKIP, action.SKIP))
    _keep_ties()
    _watch_ties()
    _watch_optimizers()


def _keep_ties() -> None:
    """Module.to() makes new parameters on the device, one for each place in a module; those of one parameter become one."""
    original = torch.nn.Module._apply

    def apply(self: torch.nn.Module, fn: Any, *args: Any, **kwargs: Any) -> torch.nn.Module:
        before = [(m, name, p) for m in self.modules() for name, p in m._parameters.items() if p is not None]
        result = original(self, fn, *args, **kwargs)
        new: Dict[int, torch.nn.Parameter] = {}
        for module, name, old in before:
            moved = module._parameters.get(name)
            if moved is None or moved is old or not (is_lazy(moved) or is_lazy(old)):
                continue
            if isinstance(old, UninitializedParameter) and is_lazy(moved):
                module._parameters[name] = UninitializedParameter(old.requires_grad, moved.device, moved.dtype)
                continue
            first = new.setdefault(id(old), moved)
            if first is not moved:
                module._parameters[name] = first
                if is_lazy(moved):
                    _ties.kept(self, module, name, first)
            if is_lazy(moved) and not is_lazy(old):
                old._hlokit_moved_to = str(moved.device)
        return result

    torch.nn.Module._apply = apply  # type: ignore[assignment, method-assign]


class _Ties:
    """Parameters that stayed one here, and are two in PyTorch/XLA unless the program ties them again."""

    def __init__(self) -> None:
        self._kept: "Dict[Tuple[int, str], Tuple[Any, str, Any]]" = {}  # by module and name: the tensor, the model's class, the line

    def kept(self, model: torch.nn.Module, module: torch.nn.Module, name: str, parameter: Any) -> None:
        self._kept[id(module), name] = (weakref.ref(parameter), type(model).__name__, _lines.user_frame())

    def tied_again(self, module: torch.nn.Module, name: str) -> None:
        self._kept.pop((id(module), name), None)

    def check(self) -> None:
        for parameter, model, frame in self._kept.values():
            if parameter() is not None and frame is not None:
                _lines.warn_at(
                    f"{model} has weights that are one parameter. They stay one here; PyTorch/XLA makes two of them, which are "
                    "trained apart: tie them again after .to(device)",
                    *frame,
                )
        self._kept.clear()


_ties = _Ties()


def check_ties() -> None:
    """Warns of parameters that PyTorch/XLA would not have kept tied."""
    _ties.check()


def _watch_ties() -> None:
    """A program ties parameters by assigning one to a module, which registers it."""
    original = torch.nn.Module.register_parameter

    def register_parameter(self: torch.nn.Module, name: str, param: Any) -> None:
        original(self, name, param)
        _ties.tied_again(self, name)

    torch.nn.Module.register_parameter = register_parameter  # type: ignore[method-assign]


def check_optimizer(optimizer: Any, *_: Any, stacklevel: int = 3) -> None:
    """Warns of an optimizer whose parameters a module no longer has."""
    if getattr(optimizer, "_hlokit_checked", False):
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    places = [place for place in (getattr(p, "_hlokit_moved_to", None) for p in parameters) if place is not None]
    if places:
        frame = _lines.user_frame() or ("<program>", stacklevel)
        _lines.warn_at(
            f"{len(places)} of {len(parameters)} parameters of this {type(optimizer).__name__} were replaced when their module "
            f"went to {places[0]}: step() does not change the module. Make the optimizer after module.to(device).",
            *frame,
        )
    optimizer._hlokit_checked = True
    check_ties()


def _watch_optimizers() -> None:
    hook: Optional[Any] = getattr(importlib.import_module("torch.optim.optimizer"), "register_optimizer_step_pre_hook", None)
    if hook is not None:
        hook(check_optimizer)
        return
    # Before 2.0 there are no hooks: the wrapper that is around step() of every class calls this at its end.
    original = torch.optim.Optimizer._optimizer_step_code  # type: ignore[attr-defined]

    def _optimizer_step_code(self: torch.optim.Optimizer) -> None:
        original(self)
        check_optimizer(self, stacklevel=4)

    torch.optim.Optimizer._optimizer_step_code = _optimizer_step_code  # type: ignore[attr-defined]
