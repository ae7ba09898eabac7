# SPDX-License-Identifier: Apache-2.0
"""Logs of what a session executes. A session has one; parts of a program share it."""

import threading
from typing import Any, Dict, List

from hlokit import _hlokit

_lock = threading.Lock()
_shared: Dict[int, "_Shared"] = {}  # by the identity of the session, which the entry keeps


class _Shared:
    def __init__(self, session: Any):
        self.session = session
        self.log = _hlokit.TraceLog(session)
        self.users = 0


class Log:
    """What a session executes from now on, until stop()."""

    def __init__(self, session: Any):
        self._key = id(session)
        with _lock:
            if self._key not in _shared:
                _shared[self._key] = _Shared(session)
            self._shared = _shared[self._key]
            self._shared.users += 1
        self._stopped = False
        self._before = self._counts()

    def _counts(self) -> Dict[int, int]:
        counts: Dict[int, int] = {}
        for row in self._shared.log.executions():
            counts[row["ordinal"]] = counts.get(row["ordinal"], 0) + 1
        return counts

    def executions(self) -> List[Dict[str, Any]]:
        """The executed graphs, by device."""
        seen: Dict[int, int] = {}
        found = []
        for row in self._shared.log.executions():
            ordinal = row["ordinal"]
            seen[ordinal] = seen.get(ordinal, 0) + 1
            if seen[ordinal] > self._before.get(ordinal, 0):
                found.append(row)
        return found

    def report(self) -> str:
        """The graphs by step, and what broke steps into several; with those before where another log had begun earlier."""
        return str(self._shared.log.report())

    def stop(self) -> None:
        """Ends this log, and the session's with the last."""
        with _lock:
            if self._stopped:
                return
            self._stopped = True
            self._shared.users -= 1
            if self._shared.users == 0:
                self._shared.log.stop()
                del _shared[self._key]
