# SPDX-License-Identifier: Apache-2.0
"""What torch.compile(backend="hlokit") compiled: graphs, breaks and recompilations with their lines, programs and times."""

import sys
import threading
from typing import Any, Dict, List, Mapping, NamedTuple, Optional

import torch

import hlokit

from . import _capture


class GraphRow(NamedTuple):
    """A graph that Dynamo captured."""

    number: int
    compilation: str  # Dynamo's: "frame/times the frame was compiled before"
    line: str  # of its first op outside of torch; or the module
    nodes: int
    ended_by: str  # what broke it; "" where it ends with the function


class ProgramRow:
    """A program of a graph: its forward, its backward, a part of these between ops on the CPU, or its inference.

    A graph with dynamic sizes has one for each. seconds: of all calls; run_seconds: of these, in the program itself.
    """

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
        """Microseconds of a call outside of the program: arguments, results and views."""
        return (self.seconds - self.run_seconds) / self.calls * 1e6 if self.calls else 0.0

    def __repr__(self) -> str:
        size = 0 if self.module is None else self.module.instruction_count
        return f"<ProgramRow of graph {self.graph}: {self.kind}, {size} instructions, {self.calls} calls>"


class HostRow(NamedTuple):
    """An op of a graph that runs between programs: on the CPU, or of tensors on the device as PyTorch calls it there."""

    graph: int
    kind: str
    op: str
    line: str
    reason: str
    where: str = "on the CPU"


class BreakRow(NamedTuple):
    """What broke a function into several graphs."""

    line: str
    reason: str


class RecompilationRow(NamedTuple):
    """A function that was compiled again, with the guard that failed."""

    compilation: str
    function: str
    line: str
    reason: str


class CompileReport:
    """What was compiled; str() is a table of it. copies: by graph, arguments that are written after it ran."""

    def __init__(
        self,
        graphs: List[GraphRow],
        programs: List[ProgramRow],
        breaks: List[BreakRow],
        recompilations: List[RecompilationRow],
        on_host: List[HostRow],
        copies: Mapping[int, int],
    ):
        self.graphs = graphs
        self.programs = programs
        self.breaks = breaks
        self.recompilations = recompilations
        self.on_host = on_host
        self.copies = copies

    def simulate(self, device: str) -> List[float]:
        """The microseconds of each program on a device such as "v4:2x2x1"."""
        return [0.0 if p.module is None else float(hlokit.simulate(p.module, device)["step_time_us"]) for p in self.programs]

    def __str__(self) -> str:
        lines = [
            f"{_count(len(self.graphs), 'graph')}, {_count(len(self.programs), 'program')}, {_count(len(self.breaks), 'break')}, "
            f"{_count(len(self.recompilations), 'recompilation')}"
        ]
        for g in self.graphs:
            ended = f", broken by {g.ended_by}" if g.ended_by else ""
            copies = f", {_count(self.copies[g.number], 'copy', 'copies')}" if self.copies.get(g.number) else ""
            lines.append(f"graph {g.number} [{g.compilation}] at {g.line}: {_count(g.nodes, 'node')}{copies}{ended}")
            for p in self.programs:
                if p.graph == g.number:
                    size = 0 if p.module is None else p.module.instruction_count
                    times = f", {p.overhead_us:.0f} us overhead a call, {p.run_seconds / p.calls * 1e6:.0f} us running" if p.calls else ""
                    lines.append(f"  {p.kind}: {_count(size, 'instruction')}, {_count(p.calls, 'call')}{times}")
            for h in self.on_host:
                if h.graph == g.number:
                    lines.append(f"  {h.kind}: {h.op} {h.where} at {h.line}: {h.reason}")
        lines += [f"break at {b.line}: {b.reason}" for b in self.breaks]
        lines += [f"recompilation [{r.compilation}] of {r.function} at {r.line}: {r.reason}" for r in self.recompilations]
        return "\n".join(lines)

    __repr__ = __str__


def _count(number: int, name: str, plural: str = "") -> str:
    return f"{number} {name if number == 1 else plural or name + 's'}"


# ---- what the backend records ----

_lock = threading.Lock()
_graphs: List[GraphRow] = []
_programs: List[ProgramRow] = []
_hosts: List[HostRow] = []
_copies: Dict[int, int] = {}
_recompilations: Dict[str, RecompilationRow] = {}
_breaks_before = 0  # of Dynamo's list, those before the last reset


def _text_of(place: Any) -> str:
    return f"{place[0]}:{place[1]}" if place else ""


def _first_place(graph: torch.fx.GraphModule) -> str:
    nodes = [node for node in graph.graph.nodes if node.op not in ("placeholder", "output", "get_attr")]
    places = [place for place in map(_capture.line_of, nodes) if place is not None]
    if places:
        return _text_of(places[0])
    scopes = [scope for scope in map(_capture.scopes_of, nodes) if scope]
    return "/".join(scopes[0]) if scopes else "?"


def record_graph(graph: torch.fx.GraphModule) -> int:
    """Adds a graph of Dynamo, and returns its number."""
    reason = getattr(graph, "compile_subgraph_reason", None)
    ended_by = _first_line(reason.reason) if reason is not None and reason.graph_break else ""
    compilation = str(torch._guards.CompileContext.current_compile_id() or "?")
    line = _first_place(graph)
    _collect()
    with _lock:
        number = len(_graphs) + 1
        _graphs.append(GraphRow(number, compilation, line, len(graph.graph.nodes), ended_by))
    return number


def record_copies(graph: int, count: int) -> None:
    _copies[graph] = count


def record_program(number: int, kind: str, graph: torch.fx.GraphModule, module: Optional[hlokit.Module], seconds: float) -> ProgramRow:
    row = ProgramRow(number, kind, _first_place(graph), module, seconds)
    with _lock:
        _programs.append(row)
    return row


def record_host(number: int, kind: str, nodes: Dict[Any, str], on_device: bool = False) -> None:
    where = "by itself" if on_device else "on the CPU"
    for node, reason in nodes.items():
        place = _text_of(_capture.line_of(node)) or "/".join(_capture.scopes_of(node)) or "?"
        _hosts.append(HostRow(number, kind, _capture.name_of(node.target), place, _first_line(reason), where))


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else ""


def _breaks() -> List[Any]:
    module = sys.modules.get("torch._dynamo.output_graph")
    return list(getattr(module, "graph_break_reasons", ()))


def _collect() -> None:
    """Takes the reasons of recompilations from Dynamo, which keeps the last ones."""
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return
    for metrics in utils.get_compilation_metrics():
        reason = getattr(metrics, "recompile_reason", None)
        if not reason or metrics.compile_id in _recompilations:
            continue
        line = f"{metrics.co_filename}:{metrics.co_firstlineno}"
        reason = " ".join(reason.partition("  # ")[0].split())
        _recompilations[metrics.compile_id] = RecompilationRow(metrics.compile_id, metrics.co_name, line, reason)


def compile_report(reset: bool = False) -> CompileReport:
    """What torch.compile(backend="hlokit") compiled so far, or since the last reset. reset: the next report begins here."""
    global _breaks_before
    _collect()
    known = _breaks()
    breaks = []
    for reason in known[_breaks_before:]:
        frames = [frame for frame in reason.user_stack if not frame.filename.startswith("<")]
        place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "?"
        breaks.append(BreakRow(place, _first_line(reason.reason)))
    ours = {g.compilation for g in _graphs}
    recompilations = [row for row in _recompilations.values() if row.compilation in ours]
    report = CompileReport(list(_graphs), list(_programs), breaks, recompilations, list(_hosts), dict(_copies))
    if reset:
        with _lock:
            for rows in (_graphs, _programs, _hosts):
                rows.clear()  # type: ignore[attr-defined]
            _copies.clear()
        _breaks_before = len(known)
    return report
