# SPDX-License-Identifier: Apache-2.0
"""What torch.compile(backend="hlokit") compiled: graphs, breaks and recompilations with their lines, programs and times."""

import contextlib
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import torch

import hlokit

from . import _capture

_programs: List["ProgramRow"] = []
_graphs: List["GraphRow"] = []
_hosts: List["HostRow"] = []
_marks = {"breaks": 0, "metrics": 0}


class GraphRow(NamedTuple):
    """A graph that Dynamo captured."""

    number: int
    line: str  # of its first op
    nodes: int
    ended_by: str  # what ended it, "" at the end of a function
    ended_at: str


class HostRow(NamedTuple):
    """An op of a graph that runs on the CPU."""

    graph: int
    kind: str
    op: str
    line: str
    reason: str


class BreakRow(NamedTuple):
    """A break of a graph."""

    line: str
    reason: str


class RecompilationRow(NamedTuple):
    """A further compilation of a function."""

    function: str
    line: str
    reason: str


class ProgramRow:
    """A program of a graph. seconds: of all calls; run_seconds: of these, in the program itself."""

    def __init__(self, graph: int, kind: str, line: str, module: Optional[hlokit.Module], compile_seconds: float):
        self.graph = graph
        self.kind = kind
        self.line = line
        self.module = module
        self.compile_seconds = compile_seconds
        self.calls = 0
        self.seconds = 0.0
        self.run_seconds = 0.0

    @property
    def overhead_us(self) -> float:
        """Microseconds of a call outside of the program."""
        return (self.seconds - self.run_seconds) / self.calls * 1e6 if self.calls else 0.0


_current: List[int] = []


@contextlib.contextmanager
def dynamo_graph(graph: torch.fx.GraphModule) -> Iterator[None]:
    """The graph that is compiled in the block."""
    reason = getattr(graph, "compile_subgraph_reason", None)
    broken = reason is not None and reason.graph_break
    places = [p for p in (_capture.line_of(n) for n in graph.graph.nodes if n.op not in ("placeholder", "output")) if p]
    line = f"{places[0][0]}:{places[0][1]}" if places else ""
    number = len(_graphs) + 1
    ended_by = _first_line(reason.reason) if broken and reason is not None else ""
    _graphs.append(GraphRow(number, line, len(graph.graph.nodes), ended_by, _place(reason.user_stack) if broken and reason is not None else ""))
    _current.append(number)
    try:
        yield
    finally:
        _current.pop()


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def _place(stack: Any) -> str:
    frames = [f for f in stack if not f.filename.startswith("<")]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""


_last_graph: Dict[int, int] = {}


def record_program(kind: str, graph: torch.fx.GraphModule, module: Optional[hlokit.Module], seconds: float) -> ProgramRow:
    places = [p for p in (_capture.line_of(n) for n in graph.graph.nodes if n.op == "call_function") if p]
    line = f"{places[0][0]}:{places[0][1]}" if places else ""
    row = ProgramRow(_current[-1] if _current else len(_graphs), kind, line, module, seconds)
    _programs.append(row)
    return row


def record_host(kind: str, nodes: Dict[Any, str]) -> None:
    for node, reason in nodes.items():
        place = _capture.line_of(node)
        number = _current[-1] if _current else len(_graphs)
        _hosts.append(HostRow(number, kind, _capture.name_of(node.target), f"{place[0]}:{place[1]}" if place else "", reason))
