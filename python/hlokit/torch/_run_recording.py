# SPDX-License-Identifier: Apache-2.0
"""What a whole program executed: the graphs of all its sessions, their recompilations, and a profile."""

import json
import re
import time
from typing import Any, Dict, List, Optional, Tuple

from hlokit import _hlokit

from . import _session
from ._logs import Log
from ._trace import Graph

_NEAREST = re.compile(r"compiling graph (\w+) .*?: nearest is (\w+), (.*)", re.DOTALL)


class Recording:
    """Records sessions that begin from now on, until stop()."""

    def __init__(self, profile: bool = True) -> None:
        self._logs: List[Tuple[Any, Any]] = []
        self.graphs: List[Graph] = []
        self.reports: List[str] = []
        self.nearest: Dict[str, Tuple[str, str]] = {}  # of a compiled graph: the known one nearest to it, and what the tracer says
        self.metrics: List[Dict[str, Any]] = []
        self.profile: Optional[Any] = None
        self._start = time.monotonic()
        self.seconds = 0.0
        self._profiling = profile
        _session.observe(self._begin)
        if profile:
            _hlokit._profile_start()
        _active.append(self)

    def _begin(self, session: Any) -> None:
        self._logs.append((session, Log(session)))

    def suspend(self) -> None:
        """Ends the profile, for one of the program's own."""
        if self._profiling:
            self._profiling = False
            self.profile = _hlokit._profile_stop()

    def stop(self) -> None:
        """Ends the recording."""
        self.seconds = time.monotonic() - self._start
        self.suspend()
        _active.clear()
        for session, log in self._logs:
            self.graphs += [Graph(session, row) for row in log.executions()]
            if self.graphs and self.graphs[-1]._session is session:
                self.reports.append(str(log.report()))
            for text in session.take_explanations():
                found = _NEAREST.match(text)
                if found:
                    self.nearest.setdefault(found[1], (found[2], found[3]))
            self.metrics.append(json.loads(session.metrics_json()))
            log.stop()


_active: List[Recording] = []


def suspend() -> None:
    """Lets the program record a profile of its own."""
    for recording in _active:
        recording.suspend()
