# SPDX-License-Identifier: Apache-2.0
"""The threads of spawn(), which stand for processes, and how they meet on the host."""

import collections
import contextlib
import dataclasses
import math
import threading
import time
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from hlokit import _hlokit

_thread = threading.local()  # .member: of a thread of spawn()

WAIT_SECONDS = 1800.0  # as torch.distributed
_POLL_SECONDS = 0.5  # a thread that waits sees ^C so often


@dataclasses.dataclass(frozen=True)
class Call:
    """A collective of device tensors that a rank is about to do."""

    group: str  # the name of the group
    ranks: Tuple[int, ...]
    what: str  # "all_reduce sum of float32[4]", the same on all ranks
    partition: Optional[List[List[int]]]  # groups of all ranks that do it at once: [] is one of all; None: there are none


class Run:
    """One call of spawn(): as many threads as devices; or the processes of torchrun, for each of which a thread of the first
    one stands (_processes.py).

    Threads that use torch.distributed keep step: each waits before it does a collective until all others wait too. If all
    are to do the same one they record it, so that when one of them reads a value, whose program has collectives, all run
    the same ones, whatever they wait for. If it is one of some ranks only, these do it on the host.
    """

    def __init__(self, session: Any, count: int):
        self.session = session
        self.count = count
        self.shared: Dict[str, Any] = {}  # what the threads have in common, by name
        self._changed = threading.Condition()
        self._left: Dict[int, str] = {}
        self._ended: Set[int] = set()  # those that still run with others what is recorded
        self._canceled = False
        self._payloads: Dict[Any, Dict[int, Tuple[str, Any]]] = {}
        self._taken: Dict[Any, int] = collections.defaultdict(int)
        self._exchanges: Dict[Any, int] = collections.defaultdict(int)  # that each thread has completed, by name and ranks
        self._offers: List[Any] = [None] * count  # the key of the exchange that each thread waits for
        self._mail: Dict[Any, Deque[Any]] = collections.defaultdict(collections.deque)
        # What each thread does, and what it is to do.
        self._waits: List[Optional[str]] = [None] * count  # "collective", "sync", "idle"; None: it runs
        self._ready: List[Callable[[], bool]] = [lambda: False] * count
        self._whats: List[str] = [""] * count
        self._calls: List[Optional[Call]] = [None] * count  # of those that wait for a collective
        self._orders: List[Optional[str]] = [None] * count  # "record", "host", "sync", "fail"
        self._errors: List[Optional[str]] = [None] * count

    def leave(self, index: int, why: str) -> None:
        """A thread has ended: those that wait for it end with this text."""
        with self._changed:
            self._left.setdefault(index, why)
            self._decide()
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

    def _retract(self, index: int) -> None:
        """A thread gives up its exchange: what it offered is nobody's, unless all have come already."""
        key, self._offers[index] = self._offers[index], None
        if key is not None:
            arrived = self._payloads[key]
            arrived.pop(index, None)
            if not arrived:
                del self._payloads[key]

    def _complete(self) -> List[int]:
        """The ranks at a collective at which all of its group are."""

        def is_at(rank: int, call: Call) -> bool:
            other = self._calls[rank]
            return other is not None and other.group == call.group

        return [i for i, call in enumerate(self._calls) if call is not None and all(is_at(rank, call) for rank in call.ranks)]

    def _refuse_different(self) -> None:
        """Ranks of a group that are at different collectives end with an error, whatever others do."""
        errors: Dict[int, str] = {}
        for index in self._complete():
            call = self._calls[index]
            assert call is not None
            whats = [(rank, self._whats[rank]) for rank in call.ranks]
            if len({what for _, what in whats}) > 1:
                errors[index] = "the ranks are at different collectives: " + _listed(whats)
        for index, error in errors.items():
            self._errors[index], self._calls[index] = error, None
        if errors:
            self._changed.notify_all()

    def _decide(self) -> None:
        """Gives orders once all threads wait."""
        self._refuse_different()
        waiting = [i for i, wait in enumerate(self._waits) if wait is not None]
        if len(waiting) + len(self._left.keys() - set(waiting)) < self.count or any(self._orders) or any(self._errors):
            return
        order, of, complete = "", waiting, self._complete()
        if "sync" in self._waits:
            order = "sync"
        elif any(self._ready[i]() for i in waiting):
            return
        elif complete:
            calls = [self._calls[i] for i in complete]
            first = calls[0]
            assert first is not None
            one = all(call is not None and (call.what, call.partition) == (first.what, first.partition) for call in calls)
            whole = len(complete) == self.count and first.partition is not None
            order, of = "record" if one and whole else "host", complete
        elif not self._left:
            order, of = "fail", [i for i in waiting if i not in self._ended]
        if order:
            for i in of:
                self._orders[i] = order
                if order == "fail":
                    self._retract(i)
                if order != "sync":
                    self._calls[i] = None  # it is not at the collective any more, though it has yet to wake
            self._changed.notify_all()

    def _wait(
        self, own: "Member", kind: str, ready: Any, needed: Sequence[int], what: str, seconds: float,
        mark: Optional[Callable[[], None]] = None, call: Optional[Call] = None, one_is_enough: bool = False,
    ) -> Optional[str]:
        """Waits until ready(), or, for "collective" and "sync", until it is ordered, and runs what is recorded when it must.
        Fails when one of the needed threads ends or, if one is enough, when all have ended. Returns the order. Requires: the
        condition is held."""
        index, end = own.index, time.monotonic() + seconds
        self._waits[index], self._ready[index], self._whats[index], self._calls[index] = kind, ready, what, call
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
                    end = time.monotonic() + seconds
                    if kind == "sync":
                        return order
                    self._waits[index] = kind
                    continue
                if order in ("record", "host") or order != "fail" and ready():
                    return order
                self._raise_error(own, kind, order, needed, one_is_enough)
                left = end - time.monotonic()
                if left <= 0:
                    absent = [f"xla:{i}" for i in needed if self._waits[i] is None]
                    raise RuntimeError(f"{what}: waited {seconds:g} s for {', '.join(absent) or 'the other devices'}")
                self._changed.wait(min(left, _POLL_SECONDS))
        finally:
            self._waits[index], self._calls[index], self._errors[index] = None, None, None
            self._ready[index] = lambda: False

    def _raise_error(
        self, own: "Member", kind: str, order: Optional[str], needed: Sequence[int], one_is_enough: bool
    ) -> None:
        """Raises what ends the wait of a thread, if something does."""
        what, error = self._whats[own.index], self._errors[own.index]
        if error is not None:
            raise RuntimeError(error)
        if self._canceled:
            raise KeyboardInterrupt
        gone = [rank for rank in needed if rank in self._left or rank in self._ended and kind != "sync"]
        if gone and (not one_is_enough or len(gone) == len(needed)):
            raise RuntimeError(f"{what}: {self._left.get(gone[0], f'xla:{gone[0]} has ended')}")
        if order == "fail":
            raise RuntimeError("all devices wait: " + _listed(enumerate(self._whats), "for "))

    def meet(self, own: "Member", call: Call, seconds: float = WAIT_SECONDS) -> bool:
        """Waits until it is known how the ranks do a collective: whether they record it, as all devices do at once."""
        with self._changed:
            others = [rank for rank in call.ranks if rank != own.index]
            return self._wait(own, "collective", lambda: False, others, call.what, seconds, call=call) == "record"

    def sync(self, own: "Member", mark: Optional[Callable[[], None]] = None, seconds: float = WAIT_SECONDS) -> None:
        """Runs what is recorded, by mark() or without, when all others do."""
        with self._changed:
            others = [rank for rank in range(self.count) if rank != own.index]
            self._wait(own, "sync", lambda: False, others, "a value that collectives compute", seconds, mark)

    def exchange(
        self, own: "Member", name: Any, ranks: Sequence[int], what: str, payload: Any, seconds: float = WAIT_SECONDS
    ) -> List[Any]:
        """The payloads of the threads `ranks`, each of which calls it with the name. What one offers that gives up before all
        have come does not count: the next exchanges are in step."""
        with self._changed:
            of_own = (name, tuple(ranks), own.index)
            key = (name, tuple(ranks), self._exchanges[of_own])
            arrived = self._payloads.setdefault(key, {})
            arrived[own.index] = (what, payload)
            self._offers[own.index] = key
            self._changed.notify_all()
            absent = [r for r in ranks if r != own.index]
            try:
                self._wait(own, "idle", lambda: len(arrived) == len(ranks), absent, f"{what} on the host", seconds)
            finally:
                if len(arrived) == len(ranks):
                    self._offers[own.index] = None
                    self._exchanges[of_own] += 1
                    self._taken[key] += 1
                    if self._taken[key] == len(ranks):
                        del self._payloads[key], self._taken[key]
                else:
                    self._retract(own.index)
            whats = [(rank, arrived[rank][0]) for rank in ranks]
            if len({what for _, what in whats}) > 1:
                raise RuntimeError("the ranks are at different collectives: " + _listed(whats))
            return [arrived[r][1] for r in ranks]

    def send(self, own: "Member", key: Any, payload: Any) -> None:
        with self._changed:
            self._mail[key].append(payload)
            self._changed.notify_all()

    def receive(self, own: "Member", keys: Sequence[Tuple[Any, int]], seconds: float = WAIT_SECONDS) -> Tuple[Any, Any]:
        """The first key, of pairs of key and sender, for which something was sent, and what was."""
        with self._changed:
            senders = [sender for _, sender in keys]
            sent = lambda: any(self._mail[key] for key, _ in keys)  # noqa: E731
            self._wait(own, "idle", sent, senders, "a receive", seconds, one_is_enough=True)
            found = next(key for key, _ in keys if self._mail[key])
            return found, self._mail[found].popleft()

    def end(self, own: "Member") -> None:
        """Takes part in what others run until all have ended, however long they run."""
        with self._changed:
            self._ended.add(own.index)
            self._changed.notify_all()
            self._wait(own, "idle", lambda: len(self._ended.union(self._left)) == self.count, [], "the end", math.inf)


def _listed(whats: Iterable[Tuple[int, str]], before: str = "") -> str:
    return ", ".join(f"xla:{rank} {before}{what}" for rank, what in whats)


class Member:
    """A thread of a run, or a process that is one of several."""

    def __init__(self, run: Any, index: int):
        self.run = run
        self.index = index
        self.world: Dict[str, Any] = {}  # of torch.distributed (_worlds.py)
        self.groups: List[Tuple[int, ...]] = []  # of torch.distributed, as they were made
        self.seconds = WAIT_SECONDS  # that it waits for others: the timeout of the group of all
        self._distributed = False  # has a group
        self._pending = False  # has recorded collectives of torch.distributed that have not run

    def place(self) -> Tuple[Any, int]:
        """The session, and the number of the device in it."""
        return self.run.session, self.index

    def join(self) -> None:
        """The thread has made a group of all."""
        self._distributed = True

    def run_recorded(self, mark: Optional[Callable[[], None]] = None) -> None:
        """Runs what the thread's device has recorded: by mark(), which marks a step, or without one."""
        self._pending = False
        session, ordinal = self.place()
        # It depends on all collectives, also those whose results are not used here but elsewhere.
        token = _hlokit._lazy_collective_token(session, ordinal)
        if mark is None:
            session.run_recorded(ordinal, False)
        else:
            mark()
        del token

    def before_collective(self, call: Call, seconds: Optional[float] = None) -> bool:
        """Waits until it is known how the ranks do it. Returns whether they record it."""
        recorded: bool = self.run.meet(self, call, self.seconds if seconds is None else seconds)
        self._pending |= recorded
        return recorded

    def before_read(self, mark: Optional[Callable[[], None]] = None) -> bool:
        """Before a value is read, or mark() marks a step: what is recorded runs on all devices, if it has collectives.
        Returns whether it had."""
        if not self._pending:
            return False
        self.run.sync(self, mark, self.seconds)
        return True

    def end(self) -> None:
        """Takes part in what others run until all have ended."""
        if self._distributed:
            self.run.end(self)


_process: List[Member] = []  # of a process that is one of several


def of_thread() -> Optional[Member]:
    """This thread's place in a run; None outside of spawn()."""
    return getattr(_thread, "member", None)


def of_process() -> Optional[Member]:
    """The place of this process among several; None if it is one for itself, and in threads of spawn()."""
    return _process[0] if _process and of_thread() is None else None


def set_process(own: Member) -> None:
    _process[:] = [own]


def member() -> Optional[Member]:
    """The place of what this thread is part of."""
    return of_thread() or of_process()


def before_read() -> None:
    """Before this thread reads a value: runs what is recorded with collectives of torch.distributed."""
    own = member()
    if own is not None:
        own.before_read()


def run_step(mark: Callable[[], None]) -> None:
    """Calls mark(), which marks a step, when all devices run what they recorded with collectives."""
    own = member()
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
