# SPDX-License-Identifier: Apache-2.0
"""The functions of torch_xla itself: devices, steps, regions that are one program, launches."""

import functools
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch

from . import _lines, _logs, _session, _trace, xla_model, xla_multiprocessing


def device(index: Optional[int] = None) -> torch.device:
    """This thread's device, or xla:index."""
    return _session.device(index)


def devices() -> List[torch.device]:
    return [torch.device(name) for name in xla_model.get_xla_supported_devices()]


def real_devices() -> List[str]:
    """Names of devices in dumps: "TPU:0"."""
    return xla_model.xla_real_devices(devices())


def device_count() -> int:
    return len(real_devices())


def sync(wait: bool = False, reset_scope: bool = True) -> None:
    """Ends a step: what this thread's device recorded runs as one program."""
    xla_model.mark_step(wait, reset_scope)


def manual_seed(seed: int, device: Any = None) -> None:
    """Sets the seed of random ops of the device."""
    xla_model.set_rng_state(seed, device)


def launch(fn: Callable[..., Any], args: Tuple[Any, ...] = (), start_method: str = "spawn", debug_single_process: bool = False) -> None:
    """fn(index, *args) in a thread for each device."""
    xla_multiprocessing.spawn(fn, args=args, nprocs=1 if debug_single_process else None, start_method=start_method)


def step() -> Any:
    """`with torch_xla.step():` is a step: what was recorded before is one program, the block another."""
    return compile()


def compile(
    f: Optional[Callable[..., Any]] = None,
    full_graph: Optional[bool] = False,
    name: Optional[str] = None,
    max_different_graphs: Optional[int] = None,
) -> Any:
    """f, or a block, as one program: pending ops run before it, and its own at its end. full_graph: more programs are an
    error. max_different_graphs: more different ones than these are an error."""
    if f is None:
        return _compiled(name or "compile", bool(full_graph), max_different_graphs, set())
    function: Callable[..., Any] = f
    named = str(name or getattr(f, "__name__", type(f).__name__))
    known: Set[str] = set()

    @functools.wraps(f if not isinstance(f, torch.nn.Module) else type(f).forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _compiled(named, bool(full_graph), max_different_graphs, known):
            return function(*args, **kwargs)

    return call


class _compiled:
    """A region that is one program. A class: lines of the program are those of its callers, not of contextlib."""

    def __init__(self, name: str, full_graph: bool, most: Optional[int], known: Set[str]):
        self._name, self._full_graph, self._most, self._known = name, full_graph, most, known
        self._log: Optional[_logs.Log] = None

    def __enter__(self) -> None:
        # A step that runs nothing is none.
        if _session.current().has_pending(_session.ordinal_of(None)):
            sync()
        if self._full_graph or self._most is not None:
            self._log = _logs.Log(_session.current())

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if error is None:
                sync()
        finally:
            rows = self._rows()
        if error is None:
            self._check(rows)

    def _rows(self) -> List[Dict[str, Any]]:
        """What this thread's device ran in the region."""
        if self._log is None:
            return []
        rows = [row for row in self._log.executions() if row["ordinal"] == _session.ordinal_of(None)]
        self._log.stop()
        return rows

    def _check(self, rows: List[Dict[str, Any]]) -> None:
        extra = [row for row in rows if row["reason"] not in ("step", "loader", "trace")]
        if self._full_graph and extra:
            why = "; ".join(sorted({f"{row['reason']} {row['name']} at {row['location'] or _lines.user_line()}" for row in extra}))
            raise RuntimeError(f"torch_xla.compile(full_graph=True): {self._name} ran {len(rows)} programs, because of {why}")
        if self._most is None:
            return
        self._known.update(row["hash"] for row in rows)
        if len(self._known) > self._most:
            reasons = _trace.explain_recompiles()
            raise RuntimeError(
                f"torch_xla.compile: {self._name} has {len(self._known)} different graphs, more than max_different_graphs={self._most}"
                + (f"; the last one: {reasons[-1]}" if reasons else "")
            )
