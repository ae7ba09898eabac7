# SPDX-License-Identifier: Apache-2.0
"""Data-parallel programs: a thread for each device of the session, under the name of
torch_xla.distributed.xla_multiprocessing, whose devices are processes."""

import contextlib
import copy
import threading
from typing import Any, Callable, List, Optional, Tuple

import torch

from hlokit import _hlokit

from . import _session, _thread_random, _threads, _worlds


def spawn(
    fn: Callable[..., Any],
    args: Tuple[Any, ...] = (),
    nprocs: Optional[int] = None,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> None:
    """Calls fn(index, *args) in a thread for each of nprocs devices, whose device is xla:index, and waits for all.

    Starts a new session unless the current one has this many devices (configure). The first error of a thread is raised;
    devices that wait for it end with it. Each thread has a generator of random numbers on the host, as a process would: torch.manual_seed() is the thread's.
    """
    if _session.is_spmd():
        raise RuntimeError("spawn() has a thread for each device, and this session has one virtual device for all (use_spmd)")
    count = _session.current().device_count if nprocs is None else nprocs
    if count != _session.current().device_count:
        _session.configure(count)
    session = _session.current()
    members = _threads.Run(session, count)
    errors: List[Optional[BaseException]] = [None] * count
    _thread_random.install()
    state = torch.get_rng_state()

    # A thread calls fn when all have started, and none does when one cannot.
    all_started, gave_up = threading.Event(), threading.Event()
    ended = [threading.Event() for _ in range(count)]

    def call(index: int) -> None:
        with _session.only_on_device(index), _thread_random.own_generator(state), _threads.as_member(members, index) as own:
            try:
                fn(index, *args)
                own.end()
                why = f"xla:{index} has ended"
            except BaseException as error:  # noqa: BLE001: raised by spawn
                errors[index] = error
                why = f"xla:{index} failed: {error}"
            members.leave(index, why)
            session.leave(index, why)

    def run(index: int) -> None:
        try:
            _hlokit._profile_thread(f"replica {index}")
            all_started.wait()
            if not gave_up.is_set():
                call(index)
        finally:
            ended[index].set()

    _worlds.isolate(True)
    threads = [threading.Thread(target=run, args=(i,), name=f"xla:{i}") for i in range(count)]
    try:
        for thread in threads:
            thread.start()
    except BaseException:
        gave_up.set()
        _worlds.isolate(False)
        raise
    finally:
        all_started.set()
    try:
        # Not by join(): interrupted, that of Python 3.11 takes a thread that still runs for one that has ended.
        for event in ended:
            event.wait()
    except BaseException:  # ^C: the threads end at their next execution
        _hlokit._cancel_executions(True)
        members.cancel()
        try:
            for event in ended:
                event.wait()
            for ordinal in range(count):
                with contextlib.suppress(RuntimeError):  # the error of what was canceled
                    session.wait(ordinal)
        finally:
            _hlokit._cancel_executions(False)
            session.next_session()
        raise
    finally:
        _worlds.isolate(False)
    session.next_session()
    found = [e for e in errors if e is not None]
    # The first cause: others report that a device has ended.
    for error in sorted(found, key=lambda e: "failed:" in str(e) or "has ended" in str(e)):
        raise error


def launch(fn: Callable[..., Any], args: Tuple[Any, ...] = (), start_method: str = "spawn", debug_single_process: bool = False) -> None:
    """spawn() for all devices of the session, or for one with debug_single_process, as torch_xla.launch."""
    spawn(fn, args, nprocs=1 if debug_single_process else None)


class MpModelWrapper:
    """A model made once, which to(device) brings to the device of each thread of spawn(), one after the other."""

    def __init__(self, model: torch.nn.Module):
        self._model = model
        self._lock = threading.Lock()

    def to(self, device: Any) -> torch.nn.Module:
        """A copy of the model on the device: threads, unlike processes, share the one on the host."""
        with self._lock:
            return copy.deepcopy(self._model).to(device)


class MpSerialExecutor:
    """Runs a function in the threads of spawn() one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def run(self, fn: Callable[[], Any]) -> Any:
        with self._lock:
            return fn()
