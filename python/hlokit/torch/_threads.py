# SPDX-License-Identifier: Apache-2.0
"""The threads of spawn(), which stand for processes, and how they meet on the host."""

import collections
import contextlib
import threading
import time
from typing import Any, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

_thread = threading.local()  # .member: of a thread of spawn()

_WAIT_SECONDS = 60.0  # as long as a device waits for the others at a collective
_POLL_SECONDS = 0.5  # a thread that waits sees ^C so often


class Run:
    """One call of spawn(): as many threads as devices."""

    def __init__(self, session: Any, count: int):
        self.session = session
        self.count = count
        self.shared: Dict[str, Any] = {}  # what the threads have in common, by name
        self._changed = threading.Condition()
        self._left: Dict[int, str] = {}
        self._canceled = False
        self._payloads: Dict[Any, Dict[int, Any]] = {}
        self._taken: Dict[Any, int] = collections.defaultdict(int)
        self._mail: Dict[Any, Deque[Any]] = collections.defaultdict(collections.deque)

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

    def _wait(self, ready: Any, ranks: Sequence[int], what: str) -> None:
        """Requires: the condition is held."""
        end = time.monotonic() + _WAIT_SECONDS
        while not ready():
            if self._canceled:
                raise KeyboardInterrupt
            for rank in ranks:
                if rank in self._left and not ready():
                    raise RuntimeError(f"{what}: {self._left[rank]}")
            if time.monotonic() > end:
                raise RuntimeError(f"{what}: devices did not arrive in {_WAIT_SECONDS:g} s")
            self._changed.wait(_POLL_SECONDS)

    def exchange(self, key: Any, rank: int, ranks: Sequence[int], payload: Any) -> List[Any]:
        """The payloads of the threads `ranks`, each of which calls it with the key, a new one each time."""
        with self._changed:
            arrived = self._payloads.setdefault(key, {})
            arrived[rank] = payload
            self._changed.notify_all()
            absent = [r for r in ranks if r != rank]
            self._wait(lambda: len(arrived) == len(ranks), absent, "a collective of values on the host")
            self._taken[key] += 1
            if self._taken[key] == len(ranks):
                del self._payloads[key], self._taken[key]
            return [arrived[r] for r in ranks]

    def send(self, key: Any, payload: Any) -> None:
        with self._changed:
            self._mail[key].append(payload)
            self._changed.notify_all()

    def receive(self, keys: Sequence[Tuple[Any, int]]) -> Tuple[Any, Any]:
        """The first key, of pairs of key and sender, for which something was sent, and what was."""
        found: List[Any] = []

        def ready() -> bool:
            if not found:
                found.extend(key for key, _ in keys if self._mail[key])
            return bool(found)

        with self._changed:
            self._wait(ready, [sender for _, sender in keys], "a receive")
            return found[0], self._mail[found[0]].popleft()


class Member:
    """A thread of a run."""

    def __init__(self, run: Run, index: int):
        self.run = run
        self.index = index
        self.world: Dict[str, Any] = {}  # of torch.distributed (_worlds.py)
        self.groups: List[Tuple[int, ...]] = []  # of torch.distributed, as they were made


def member() -> Optional[Member]:
    """This thread's place in a run; None outside of spawn()."""
    return getattr(_thread, "member", None)


@contextlib.contextmanager
def as_member(run: Run, index: int) -> Iterator[Member]:
    """Makes this thread one of the run's for the block."""
    _thread.member = Member(run, index)
    try:
        yield _thread.member
    finally:
        _thread.member = None
