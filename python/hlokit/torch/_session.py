# SPDX-License-Identifier: Apache-2.0
"""Sessions of the tracer, and the devices xla:0, xla:1, ... in them."""

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional

import torch

from hlokit._hlokit import TracerSession

from . import _random
from ._device import NATIVE, TYPES

if TYPE_CHECKING:
    from hlokit._hlokit import _Processes

_MOST_DEVICES = 1024
_options: Dict[str, Any] = {
    "devices": None,
    "pipeline": "default",
    "debug": True,
    "fake": False,
    "replicas": 1,
    "engine": "exact",
    "num_threads": 0,
    "spmd": False,
}
_processes: List["_Processes"] = []  # that run programs with this one
_sessions: List[TracerSession] = []  # the last one is current
_thread = threading.local()  # .only: the device of a thread of spawn(), which uses no other
_lock = threading.Lock()
_observers: List[Callable[[TracerSession], None]] = []

XLA_DEVICES = [torch.device("xla", i) for i in range(_MOST_DEVICES)]


def configure(
    devices: Optional[int] = None,
    *,
    pipeline: Optional[str] = None,
    debug: Optional[bool] = None,
    fake: Optional[bool] = None,
    replicas: Optional[int] = None,
    engine: Optional[str] = None,
    num_threads: Optional[int] = None,
    spmd: Optional[bool] = None,
) -> None:
    """Starts a new session with these options; those not given keep their values.

    devices: the number of devices in this process, xla:0 and on; 1 to 1024. pipeline: passes of compilation. debug: scopes of
    modules and lines of the program in graphs and HLO; always with PT_XLA_DEBUG and XLA_SAVE_TENSORS_FILE. fake:
    tensors have no values and take no memory. replicas: of the whole program, of which this process is one. engine:
    "exact", "fast" (docs/engine.md) or "reference". num_threads: of the engine; 0 is one for each processor. spmd: one
    virtual device, xla:0, in place of them all, whose programs are divided among them (hlokit.torch.spmd).
    Environment variables of PyTorch/XLA are read too. Tensors of earlier sessions stay valid, and cannot be mixed with
    those of this one.
    """
    given = {
        "devices": devices,
        "pipeline": pipeline,
        "debug": debug,
        "fake": fake,
        "replicas": replicas,
        "engine": engine,
        "num_threads": num_threads,
        "spmd": spmd,
    }
    options = {**_options, **{name: value for name, value in given.items() if value is not None}}
    with _lock:
        session = _new_session(options, _processes[0] if _processes else None)
        _options.update(options)
        _sessions[-1:] = [session]
        NATIVE.set_device_count(session.device_count)
    _random.seed_session(session)


def use_processes(processes: "_Processes") -> None:
    """From now on programs of sessions run with other processes, each of which has one device."""
    if virtual_devices() != 1 or _options["spmd"]:
        raise RuntimeError("a process that is one of several has one device")
    _processes[:] = [processes]
    configure()


def _new_session(options: Dict[str, Any], processes: Optional["_Processes"] = None) -> TracerSession:
    devices = options["devices"]
    if devices is not None and not 1 <= devices <= _MOST_DEVICES:
        raise ValueError(f"a session has 1 to {_MOST_DEVICES} devices, not {devices}")
    # 0: as many as the environment says.
    given: Dict[str, Any] = {**options, "devices": devices or 0, "debug": options["debug"] or _shows_lines()}
    if processes is not None:
        given["processes"] = processes
    session = TracerSession(**given)
    for observer in _observers:
        observer(session)
    return session


def observe(observer: Callable[[TracerSession], None]) -> None:
    """Calls observer with each session from now on, when it begins."""
    _observers.append(observer)


def has_begun() -> bool:
    """Whether there is a session."""
    return bool(_sessions)


def in_spawn() -> bool:
    """Whether this is a thread of spawn(), which has one device."""
    return getattr(_thread, "only", None) is not None


def _shows_lines() -> bool:
    """Whether a variable of PyTorch/XLA asks for output that names lines of the program."""
    names = ("PT_XLA_DEBUG", "PT_XLA_DEBUG_LEVEL", "XLA_SAVE_TENSORS_FILE")
    return any(os.environ.get(name, "0") not in ("", "0") for name in names)


def current() -> TracerSession:
    """The current session."""
    own = getattr(_thread, "capture", None)
    if own is not None:
        return own  # type: ignore[no-any-return]
    if not _sessions:
        configure()
    return _sessions[-1]


def is_spmd() -> bool:
    """Whether the session has one virtual device in place of all."""
    current()
    return bool(_options["spmd"])


def virtual_devices() -> int:
    """The number of devices, be they one virtual device."""
    count = current().device_count
    return int(_options["devices"] or 1) if _options["spmd"] else int(count)


_forked = False


def _after_fork() -> None:
    global _forked
    _forked = True


os.register_at_fork(after_in_child=_after_fork)


def is_forked() -> bool:
    """Whether this process was forked from one with a device, whose threads it lacks."""
    return _forked and bool(_sessions)


def check_process() -> None:
    if is_forked():
        raise RuntimeError("the device cannot be used in a forked process; use the start method 'spawn' of multiprocessing")


def started() -> Optional[TracerSession]:
    """The current session, if there is one."""
    own = getattr(_thread, "capture", None)
    return own or (_sessions[-1] if _sessions else None)


def is_capture(session: TracerSession) -> bool:
    """Whether this is the session in which this thread captures a graph, whose values are those of its inputs."""
    return session is getattr(_thread, "capture", None)


@contextlib.contextmanager
def capture(**options: Any) -> Iterator[TracerSession]:
    """A session of its own for what this thread does in the block; others go on in theirs."""
    before = getattr(_thread, "capture", None)
    session = _thread.capture = _new_session({**_options, **options})
    try:
        yield session
    finally:
        _thread.capture = before


def set_device(ordinal: int) -> None:
    """Makes xla:ordinal the device of this thread."""
    NATIVE.set_current_device(ordinal)


@contextlib.contextmanager
def temporary(**options: Any) -> Iterator[TracerSession]:
    """A session of its own for the block."""
    given = {**_options, **options}
    session = _new_session(given)
    current()
    _sessions.append(session)
    try:
        yield session
    finally:
        if session in _sessions:  # configure() in the block replaces it
            _sessions.remove(session)


def ordinal_of(device: Any) -> int:
    """The number of a device given as torch.device, text or number; None: of this thread's."""
    if device is None:
        return int(NATIVE.current_device())
    if isinstance(device, int):
        return device
    device = torch.device(device)
    if device.type not in TYPES:
        raise ValueError(f"{device} is not an XLA device")
    return int(NATIVE.current_device()) if device.index is None else int(device.index)


def target_of(device: Any) -> int:
    """The number of a device on which this thread makes tensors. Threads of spawn() stand for processes, which have one
    device: with tensors of another thread's, its collectives would wait for ever."""
    ordinal = ordinal_of(device)
    only = getattr(_thread, "only", None)
    if only is not None and ordinal != only:
        kind = "xla" if device is None or isinstance(device, int) else torch.device(device).type
        raise RuntimeError(
            f"{kind}:{ordinal} is the device of another thread of spawn(); that of this one is {kind}:{only}: use xm.xla_device() "
            f'or "{kind}", without a number'
        )
    return ordinal


@contextlib.contextmanager
def only_on_device(ordinal: int) -> Iterator[None]:
    """Makes xla:ordinal the only device of this thread."""
    with on_device(ordinal):
        _thread.only = ordinal
        try:
            yield
        finally:
            _thread.only = None


def device(n: Optional[int] = None) -> torch.device:
    """The device of this thread, xla:0 outside of spawn(), or xla:n."""
    ordinal = ordinal_of(n)
    count = current().device_count
    if not 0 <= ordinal < count:
        raise RuntimeError(f"there is no device xla:{ordinal}: this session has {count} (hlokit.torch.configure)")
    return XLA_DEVICES[ordinal]


@contextlib.contextmanager
def as_in(ordinal: int, spawned: bool) -> Iterator[None]:
    """Makes this thread one of the process that another stands for: its device, and whether it has others."""
    with only_on_device(ordinal) if spawned else on_device(ordinal):
        yield


@contextlib.contextmanager
def on_device(ordinal: int) -> Iterator[None]:
    """Makes xla:ordinal the device of this thread."""
    before = NATIVE.current_device()
    set_device(ordinal)
    try:
        yield
    finally:
        set_device(before)
