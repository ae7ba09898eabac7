# SPDX-License-Identifier: Apache-2.0
"""When what is recorded on the device `tpu` runs: a program for `.to("tpu")` marks no steps, unlike one for PyTorch/XLA.

The modes are those of PyTorch's own TPU backend: "fused" runs what was recorded, as one program, after an optimizer's step and
where a value is read; "strict" runs each op as a program of its own, and "debug" waits for it, and checks its indices; "lazy" is as on `xla`. In "fused"
a read runs all that is recorded, so that nothing is computed again after it.
"""

import functools
import importlib
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from hlokit import _hlokit

from . import _index_checks, _session, _threads
from ._device import NATIVE, TPU
from ._tensor import home_of

_MODES = ("fused", "strict", "debug", "lazy")
_mode = "fused"
used = False  # whether a value of `tpu` was read


def eager_mode(mode: str = "") -> str:
    """Sets the mode of tensors of `tpu`, if one is given, and returns the one before."""
    global _mode
    before = _mode
    if mode:
        if mode not in _MODES:
            raise ValueError(f"there is no mode {mode!r}: {', '.join(_MODES)}")
        _mode = mode
        NATIVE.set_handler(_each_op if mode in ("strict", "debug") else _hlokit._torch_dispatch)
    return before


def _each_op(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    if _mode == "debug" and NATIVE.current_type() == TPU:
        home = home_of(tree_leaves((args, kwargs)))
        if home is not None and not _hlokit._lazy_session(home).fake:
            _index_checks.check(func, args)
    result = _hlokit._torch_dispatch(func, types, args, kwargs)
    if NATIVE.current_type() == TPU:
        home = home_of(tree_leaves((args, kwargs)))
        session = _session.current() if home is None else _hlokit._lazy_session(home)
        ordinal = _session.ordinal_of(kwargs.get("device")) if home is None else _hlokit._lazy_ordinal(home)
        if not session.fake:
            _threads.run_step(lambda: session.run_recorded(ordinal, _mode == "debug"))
    return result


def after_unit(session: Any, ordinal: int) -> None:
    """Runs a graph that was recorded as a unit, in the modes that run ops by themselves."""
    if _mode in ("strict", "debug") and not session.fake:
        _threads.run_step(lambda: session.run_recorded(ordinal, _mode == "debug"))


def before_read(tensor: torch.Tensor) -> None:
    """Runs what is recorded, where a value is read."""
    global used
    if tensor.device.type != TPU:
        return
    used = True
    if _mode == "fused":
        lazy = _hlokit._lazy_of(tensor)
        session = _hlokit._lazy_session(lazy)
        if not session.fake:
            _threads.before_read()
            session.run_recorded(_hlokit._lazy_ordinal(lazy), False, True)


def _after_optimizer(optimizer: Any, *_: Any) -> None:
    if _mode != "fused":
        return
    devices = {p.device for group in optimizer.param_groups for p in group["params"] if p.device.type == TPU and NATIVE.is_lazy(p)}
    if not devices:
        return
    session = _session.current()
    for ordinal in sorted(device.index for device in devices):
        _threads.run_step(functools.partial(session.mark_step, ordinal, False, ""))


def install() -> None:
    importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(_after_optimizer)
