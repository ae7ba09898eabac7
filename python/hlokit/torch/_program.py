# SPDX-License-Identifier: Apache-2.0
"""The functions of torch_xla itself: devices, steps, regions that are one program, launches."""

import contextlib
import functools
import threading
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

import torch

from . import _lines, _logs, _session, _trace, xla_model, xla_multiprocessing

_region = threading.local()  # .full_graph: the name of a region of one program; .graphs: programs before it


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


@contextlib.contextmanager
def _compiled(name: str, full_graph: bool, most: Optional[int], known: Set[str]) -> Iterator[None]:
    sync()
    ordinal = _session.ordinal_of(None)
    watches = full_graph or most is not None
    log: Optional[Any] = _logs.Log(_session.current()) if watches else None
    try:
        yield
        sync()
    finally:
        rows: List[Dict[str, Any]] = []
        if log is not None:
            rows = [row for row in log.executions() if row["ordinal"] == ordinal]
            log.stop()
    extra = [row for row in rows if row["reason"] not in ("step", "loader", "trace")]
    if full_graph and extra:
        why = "; ".join(sorted({f"{row['reason']} {row['name']} at {row['location'] or _lines.user_line()}" for row in extra}))
        raise RuntimeError(f"torch_xla.compile(full_graph=True): {name} ran {len(rows)} programs, because of {why}")
    if most is not None:
        known.update(row["hash"] for row in rows)
        if len(known) > most:
            reasons = _trace.explain_recompiles()
            raise RuntimeError(
                f"torch_xla.compile: {name} has {len(known)} different graphs, more than max_different_graphs={most}"
                + (f"; the last one: {reasons[-1]}" if reasons else "")
            )
