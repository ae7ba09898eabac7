# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing, with the name of torch_xla.utils.checkpoint.

The backward pass computes a part of the model again, and random ops draw what they drew in the forward pass. The compiler
merges the two where it sees that they are equal, so that memory is not saved.
"""

import contextlib
from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch
import torch.utils.checkpoint

from hlokit import _hlokit

from . import _session
from ._tensor import XlaTensor


def _begin_draws(ordinal: int) -> int:
    """Starts a sequence of draws of a device, and returns its seed, with which it can be drawn again."""
    session = _session.current()
    seed = (int(session.seed(ordinal)) * 6364136223846793005 + 1442695040888963407) % (1 << 63)
    session.set_seed(ordinal, seed)
    return seed


@contextlib.contextmanager
def _drawn_again(seeds: Dict[int, int]) -> Iterator[None]:
    """Draws in the block what was drawn with these seeds, by ordinal of the device."""
    after = {ordinal: _begin_draws(ordinal) for ordinal in seeds}
    for ordinal, seed in seeds.items():
        _session.current().set_seed(ordinal, seed)
    try:
        yield
    finally:
        for ordinal, seed in after.items():
            _session.current().set_seed(ordinal, seed)


class _Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        ctx.function, ctx.preserve, ctx.args = function, preserve, list(args)
        ordinals = sorted({_hlokit._lazy_ordinal(t._lazy) for t in args if isinstance(t, XlaTensor)})
        ctx.seeds = {ordinal: _begin_draws(ordinal) for ordinal in ordinals} if preserve else {}
        ctx.host_state = torch.get_rng_state() if preserve else None
        ctx.places = [i for i, value in enumerate(args) if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        for i in ctx.places:
            ctx.args[i] = None
        with torch.no_grad():
            return function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Optional[torch.Tensor]) -> Any:
        needs = ctx.needs_input_grad[2:]
        values = [v.detach() for v in ctx.saved_tensors]
        args = list(ctx.args)
        for place, value in zip(ctx.places, values):
            args[place] = value.requires_grad_(needs[place]) if value.is_floating_point() or value.is_complex() else value
        with contextlib.ExitStack() as stack:
            stack.enter_context(_drawn_again(ctx.seeds))
            if ctx.preserve:
                stack.callback(torch.set_rng_state, torch.get_rng_state())
                torch.set_rng_state(ctx.host_state)
            stack.enter_context(torch.enable_grad())
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, gradients) if isinstance(o, torch.Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *(a.grad if isinstance(a, torch.Tensor) and n else None for a, n in zip(args, needs)))


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool = True, preserve_rng_state: bool = True, **kwargs: Any
) -> Any:
    """function(*args, **kwargs), whose values are computed again in the backward pass.

    As with the reentrant form of torch.utils.checkpoint, one of args must require a gradient for any to be computed, and
    .backward() computes them, not torch.autograd.grad().
    """
    if kwargs:
        return _Checkpoint.apply(lambda *given: function(*given, **kwargs), preserve_rng_state, *args)
    return _Checkpoint.apply(function, preserve_rng_state, *args)


class _DeviceModule:
    """What torch.utils.checkpoint and torch.random.fork_rng ask of a kind of device: its random state."""

    _initialized = True

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def device_count() -> int:
        return int(_session.current().device_count)

    @staticmethod
    def current_device() -> int:
        return _session.ordinal_of(None)

    @staticmethod
    def device(device: Any) -> Any:
        return _session.on_device(_session.ordinal_of(device))

    @staticmethod
    def get_rng_state(device: Any = None) -> Any:
        return torch.tensor([_begin_draws(_session.ordinal_of(device))])

    @staticmethod
    def set_rng_state(state: Any, device: Any = None) -> None:
        _session.current().set_seed(_session.ordinal_of(device), int(state))


def install() -> None:
    """Lets torch.utils.checkpoint draw the same numbers again."""
    if hasattr(torch.utils.checkpoint, "_get_device_module"):
        if not hasattr(torch, "xla"):
            torch.xla = _DeviceModule  # type: ignore[attr-defined]
        return
    original = torch.utils.checkpoint.checkpoint  # before 2.1 it knows no device but CUDA

    def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(value, XlaTensor) for value in args):
            return checkpoint(function, *args, **kwargs)
        return original(function, *args, **kwargs)

    torch.utils.checkpoint.checkpoint = call


__all__: Tuple[str, ...] = ("checkpoint",)
