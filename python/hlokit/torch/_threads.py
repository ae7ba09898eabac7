# SPDX-License-Identifier: Apache-2.0
"""The threads of spawn(), which stand for processes, and how they meet on the host."""

import collections
import contextlib
import threading
import time
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from hlokit import _hlokit

_thread = threading.local()  # .member: of a thread of spawn()

_WAIT_SECONDS = 1800.0  # as torch.distributed
_POLL_SECONDS = 0.5  # a thread that waits sees ^C so often


class Run:
    """One call of spawn(): as many threads as devices.

    Threads that use torch.distributed keep step: each waits before it records a collective until all do. So when one reads
    a value, whose program has collectives, the others have recorded the same ones, and all run them, whatever they wait for.
    """

    def __init__(self, session: Any, count: int):
        self.session = session
        self.count = count
        self.shared: Dict[str, Any] = {}  # what the threads have in common, by name
        self._changed = threading.Condition()
        self._left: Dict[int, str] = {}
        self._ended: Set[int] = set()  # those that still run with others what is recorded
        self._canceled = False
        self._payloads: Dict[Any, Dict[int, Any]] = {}
        self._taken: Dict[Any, int] = collections.defaultdict(int)
        self._mail: Dict[Any, Deque[Any]] = collections.defaultdict(collections.deque)
        # What each thread does, and what it is to do.
        self._waits: List[Optional[str]] = [None] * count  # "collective", "sync", "idle"; None: it runs
        self._ready: List[Callable[[], bool]] = [lambda: False] * count
        self._whats: List[str] = [""] * count
        self._orders: List[Optional[str]] = [None] * count  # "record", "sync", "fail"

    def leave(self, index: int, why: str) -> None:
        """A thread has ended: those that wait for it end with this text."""
        with self._changed:
            self._left[index] = why
            self._changed.notify_all()

    def cancel(self) -> None:
        """All threads that wait end."""
        with self._changed:
            self._canceled = True
            self._changed.notify_all()

    def get(self, name: str, make: Any) -> Any:
        """What the threads share under a name, made by the first that asks."""
        with self._changed:
            if name not in self.shared:
                self.shared[name] = make()
            return self.shared[name]

    def _decide(self) -> None:
        """Gives orders once all threads wait."""
        if any(wait is None for wait in self._waits) or any(self._orders):
            return
        if "sync" in self._waits:
            self._orders = ["sync"] * self.count
        elif all(wait == "collective" for wait in self._waits):
            self._orders = ["record"] * self.count
        elif not self._left and not any(ready() for ready in self._ready):
            self._orders = ["fail"] * self.count
        else:
            return
        self._changed.notify_all()

    def wait(
        self, own: "Member", kind: str, ready: Any, needed: Sequence[int], what: str, mark: Optional[Callable[[], None]] = None
    ) -> None:
        """Waits until ready(), or, for "collective" and "sync", until it is ordered, and runs what is recorded when it must.
        Requires: the condition is held."""
        index, end = own.index, time.monotonic() + _WAIT_SECONDS
        self._waits[index], self._ready[index], self._whats[index] = kind, ready, what
        try:
            while True:
                self._decide()
                order, self._orders[index] = self._orders[index], None
                if order == "sync":
                    self._waits[index] = None
                    self._changed.release()
                    try:
                        own.run_recorded(mark)
                    finally:
                        self._changed.acquire()
                    end = time.monotonic() + _WAIT_SECONDS
                    if kind == "sync":
                        return
                    self._waits[index] = kind
                    continue
                if order == "record" or ready():
                    return
                if order == "fail":
                    raise RuntimeError("all devices wait: " + ", ".join(f"xla:{i} for {text}" for i, text in enumerate(self._whats)))
                if self._canceled:
                    raise KeyboardInterrupt
                for rank in needed:
                    if rank in self._left:
                        raise RuntimeError(f"{what}: {self._left[rank]}")
                    if rank in self._ended and kind != "sync":
                        raise RuntimeError(f"{what}: xla:{rank} has ended")
                if time.monotonic() > end:
                    absent = [f"xla:{i}" for i in needed if self._waits[i] is None]
                    raise RuntimeError(f"{what}: waited {_WAIT_SECONDS:g} s for {', '.join(absent) or 'the other devices'}")
                self._changed.wait(_POLL_SECONDS)
        finally:
            self._waits[index] = None

    def exchange(self, own: "Member", key: Any, ranks: Sequence[int], payload: Any) -> List[Any]:
        """The payloads of the threads `ranks`, each of which calls it with the key, a new one each time."""
        with self._changed:
            arrived = self._payloads.setdefault(key, {})
            arrived[own.index] = payload
            self._changed.notify_all()
            absent = [r for r in ranks if r != own.index]
            self.wait(own, "idle", lambda: len(arrived) == len(ranks), absent, "a collective of values on the host")
            self._taken[key] += 1
            if self._taken[key] == len(ranks):
                del self._payloads[key], self._taken[key]
            return [arrived[r] for r in ranks]

    def send(self, key: Any, payload: Any) -> None:
        with self._changed:
            self._mail[key].append(payload)
            self._changed.notify_all()

    def receive(self, own: "Member", keys: Sequence[Tuple[Any, int]]) -> Tuple[Any, Any]:
        """The first key, of pairs of key and sender, for which something was sent, and what was."""
        with self._changed:
            self.wait(own, "idle", lambda: any(self._mail[key] for key, _ in keys), [sender for _, sender in keys], "a receive")
            found = next(key for key, _ in keys if self._mail[key])
            return found, self._mail[found].popleft()


class Member:
    """A thread of a run."""

    def __init__(self, run: Run, index: int):
        self.run = run
        self.index = index
        self.world: Dict[str, Any] = {}  # of torch.distributed (_worlds.py)
        self.groups: List[Tuple[int, ...]] = []  # of torch.distributed, as they were made
        self._distributed = False  # has a group
        self._pending = False  # has recorded collectives of torch.distributed that have not run

    def _others(self) -> List[int]:
        return [i for i in range(self.run.count) if i != self.index]

    def join(self) -> None:
        """The thread has made a group of all."""
        self._distributed = True

    def run_recorded(self, mark: Optional[Callable[[], None]] = None) -> None:
        """Runs what the thread's device has recorded: by mark(), which marks a step, or without one."""
        self._pending = False
        # It depends on all collectives, also those whose results are not used here but elsewhere.
        token = _hlokit._lazy_collective_token(self.run.session, self.index)
        if mark is None:
            self.run.session.run_recorded(self.index, False)
        else:
            mark()
        del token

    def before_collective(self) -> None:
        """Waits until all threads are to record a collective."""
        with self.run._changed:
            self.run.wait(self, "collective", lambda: False, self._others(), "a collective")
        self._pending = True

    def before_read(self, mark: Optional[Callable[[], None]] = None) -> bool:
        """Before a value is read, or mark() marks a step: what is recorded runs on all devices, if it has collectives.
        Returns whether it had."""
        if not self._pending:
            return False
        with self.run._changed:
            self.run.wait(self, "sync", lambda: False, self._others(), "a value that collectives compute", mark)
        return True

    def end(self) -> None:
        """Takes part in what others run until all have ended."""
        if not self._distributed:
            return
        run = self.run
        with run._changed:
            run._ended.add(self.index)
            run._changed.notify_all()
            run.wait(self, "idle", lambda: len(run._ended.union(run._left)) == run.count, [], "the end")


def member() -> Optional[Member]:
    """This thread's place in a run; None outside of spawn()."""
    return getattr(_thread, "member", None)


def before_read() -> None:
    """Before this thread reads a value: runs what is recorded with collectives of torch.distributed."""
    own = getattr(_thread, "member", None)
    if own is not None:
        own.before_read()


def run_step(mark: Callable[[], None]) -> None:
    """Calls mark(), which marks a step, when all devices run what they recorded with collectives."""
    own = getattr(_thread, "member", None)
    if own is None or not own.before_read(mark):
        mark()


@contextlib.contextmanager
def as_member(run: Run, index: int) -> Iterator[Member]:
    """Makes this thread one of the run's for the block."""
    _thread.member = Member(run, index)
    try:
        yield _thread.member
    finally:
        _thread.member = None
