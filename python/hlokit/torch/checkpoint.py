# SPDX-License-Identifier: Apache-2.0
"""Activation checkpointing, with the name of torch_xla.utils.checkpoint.

The backward pass computes a part of the model again instead of keeping its values. A barrier keeps the compiler from
merging that with the forward pass, and random ops draw what they drew there.
"""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import torch

from hlokit import _hlokit

from . import _session
from ._tensor import is_lazy, lazy_of, wrap


@contextlib.contextmanager
def _seeds(states: Dict[int, Any]) -> Iterator[None]:
    """Sets the seeds of devices, by ordinal, for the block."""
    session = _session.current()
    before = [_hlokit._lazy_seed(session, ordinal) for ordinal in states]
    for state in states.values():
        _hlokit._lazy_set_seed(state)
    try:
        yield
    finally:
        for state in before:
            _hlokit._lazy_set_seed(state)


class _Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Callable[..., Any], preserve: bool, *args: Any) -> Any:
        session = _session.current()
        ctx.function, ctx.preserve, ctx.args = function, preserve, list(args)
        ordinals = sorted({_hlokit._lazy_ordinal(lazy_of(t)) for t in args if is_lazy(t)})
        ctx.seeds = {ordinal: _hlokit._lazy_seed(session, ordinal) for ordinal in ordinals} if preserve else {}
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
        # The inputs wait for the gradients: what is computed of them is not computed before.
        hidden: List[Any] = [*values, *gradients]
        lazy = [i for i, v in enumerate(hidden) if is_lazy(v)]
        for i, result in zip(lazy, _hlokit._lazy_barrier([lazy_of(hidden[i]) for i in lazy])):
            hidden[i] = wrap(result, hidden[i])
        args = list(ctx.args)
        for place, value in zip(ctx.places, hidden):
            args[place] = value.requires_grad_(needs[place]) if value.is_floating_point() or value.is_complex() else value
        with contextlib.ExitStack() as stack:
            stack.enter_context(_seeds(ctx.seeds))
            if ctx.preserve:
                stack.callback(torch.set_rng_state, torch.get_rng_state())
                torch.set_rng_state(ctx.host_state)
            stack.enter_context(torch.enable_grad())
            outputs = ctx.function(*args)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, hidden[len(values) :]) if isinstance(o, torch.Tensor) and o.requires_grad]
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


__all__: Tuple[str, ...] = ("checkpoint",)
