# SPDX-License-Identifier: Apache-2.0
"""Traces: the graphs of a block of a program, and their simulation."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
from typing import Any, Dict, Iterator, List, Optional, Sequence, Union

import torch

import hlokit
from hlokit import _hlokit, _simulate

from . import _logs, _session
from ._tensor import is_lazy, lazy_of


class Graph:
    """An executed graph.

    hash names it; equal graphs have equal hashes. step counts the steps of its device from 1. reason is why it ran:
    "step", "value" (a print or copy), "item", ... compiled is False where its program was in the cache. nodes, inputs,
    outputs and donated are numbers.
    """

    def __init__(self, session: Any, row: Dict[str, Any]):
        self._session = session
        self._texts: Optional[Any] = None
        self.hash: str = row["hash"]
        self.step: int = row["step"]
        self.reason: str = row["reason"]
        self.name: str = row["name"]
        self.compiled: bool = row["compiled"]
        self.device: str = row["device"]
        self.ordinal: int = row["ordinal"]
        self.nodes: int = row["nodes"]
        self.inputs: int = row["inputs"]
        self.outputs: int = row["outputs"]
        self.donated: int = row["donated"]
        self.location: str = row["location"]

    def _text(self, which: int) -> str:
        if self._texts is None:
            self._texts = self._session.program(self.ordinal, self.hash)
        return str(self._texts[which])

    @property
    def lazy_ir(self) -> str:
        """The graph as lazy IR."""
        return self._text(0)

    @property
    def hlo(self) -> str:
        """The HLO that it was lowered to, before passes."""
        return self._text(1)

    @property
    def module(self) -> hlokit.Module:
        """The same as a module."""
        return hlokit.parse(self.hlo)

    def __repr__(self) -> str:
        return f"<Graph {self.hash}: step {self.step}, {self.reason}, {self.nodes} nodes, {'compiled' if self.compiled else 'cached'}>"


class Simulation:
    """A traced program on a simulated device. run has the whole program, reports its graphs alone, by hash."""

    def __init__(self, trace: "Trace", device: str, replicas: int):
        _simulate.check_device(device)
        if replicas < 0:
            raise ValueError("replicas: expected at least 0")
        self.device = device
        self._trace = trace
        self.run = trace._profile.simulate(device, replicas) if trace._profile is not None else None
        self.reports: Dict[str, hlokit.Report] = {}
        for graph in trace.graphs:
            if graph.hash not in self.reports and graph.hlo:
                self.reports[graph.hash] = hlokit.simulate(graph.module, device)

    def __getitem__(self, key: str) -> Any:
        """A number or table of the report of the largest graph."""
        return self.reports[self._trace.main_graph().hash][key]

    def document(self, title: str = "") -> Dict[str, Any]:
        """The report of the whole run (docs/report.md)."""
        if self.run is None:
            raise hlokit._errors.RunError("another profile was recorded: there is none of this trace")
        return json.loads(self.run.document(title))  # type: ignore[no-any-return]

    def report(self, directory: Any, title: str = "") -> List[str]:
        """Writes to a directory: report.json of the whole run, the HLO and lazy IR of each graph, and a page of the
        largest graph, index.html, where the tool hlo-run is installed. Returns the names of the files."""
        folder = pathlib.Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        written = []

        def write(name: str, text: str) -> None:
            part = folder / (name + ".part")
            part.write_text(text)
            os.replace(part, folder / name)
            written.append(name)

        main = self._trace.main_graph()
        for graph in {g.hash: g for g in self._trace.graphs}.values():
            write(f"graph-{graph.hash}.hlo", graph.hlo)
            write(f"graph-{graph.hash}.lazy.txt", graph.lazy_ir)
        written.extend(self.write_page(folder, main))
        if self.run is not None:
            write("report.json", self.run.document(title or self._trace.title))
        return sorted(written)

    def write_page(self, folder: pathlib.Path, graph: Graph) -> List[str]:
        """Writes the page of a graph whose HLO is in the folder, where the tool hlo-run is installed. Returns its name."""
        tool = _tool("hlo-run")
        if tool is None:
            return []
        command = [tool, str(folder / f"graph-{graph.hash}.hlo"), f"--device={self.device}", "--timing-only"]
        result = subprocess.run([*command, f"--report={folder}"], capture_output=True, text=True)
        if result.returncode != 0:
            raise hlokit._errors.RunError(result.stderr.strip())
        return [p.name for p in folder.glob("*.html")]


def _tool(name: str) -> Optional[str]:
    """A program of hlokit: of this build or installation, or in PATH."""
    package = pathlib.Path(hlokit.__file__).parent
    for folder in [package.parent.parent / "bin", *(p / "bin" for p in package.parents[2:5])]:
        if (folder / name).is_file() and os.access(folder / name, os.X_OK):
            return str(folder / name)
    return shutil.which(name)


class Trace:
    """What ran in a block: graphs in order of their execution."""

    title = "hlokit.torch"

    def __init__(self, session: Any):
        self._session = session
        self._log: Optional[_logs.Log] = _logs.Log(session, trace=True)
        self._rows: List[Dict[str, Any]] = []
        self._graphs: List[Graph] = []
        self._report = ""
        self._profile: Optional[Any] = None
        self._profiling = not _hlokit._profile_active()
        if self._profiling:
            _hlokit._profile_start()

    def _stop(self) -> None:
        if self._log is not None:
            self._update()
            self._report = self._log.report()
            self._log.stop()
            self._log = None
            if self._profiling:
                self._profile = _hlokit._profile_stop()

    def _update(self) -> None:
        if self._log is not None:
            rows = self._log.executions()
            if len(rows) != len(self._graphs):
                self._graphs = [Graph(self._session, row) for row in rows]

    @property
    def graphs(self) -> List[Graph]:
        """The executed graphs, by device."""
        self._update()
        return self._graphs

    def graph_report(self) -> str:
        """The graphs by step, with reasons and lines; their counts, and what broke them, as of ir-dump --emit=graphs."""
        return str(self._log.report()) if self._log is not None else self._report

    def main_graph(self) -> Graph:
        """The last of the largest graphs."""
        if not self.graphs:
            raise hlokit._errors.RunError("nothing was executed in the trace: mark a step in it")
        return max(reversed(self.graphs), key=lambda g: g.nodes)

    def simulate(self, device: str, replicas: int = 0) -> Simulation:
        """The program on a device such as "v4:2x2x1". replicas: devices that train as this one does.

        Raises ValueError for devices that do not exist, as hlokit.simulate does.
        """
        self._stop()
        return Simulation(self, device, replicas)


@contextlib.contextmanager
def trace(fake: bool = False, **options: Any) -> Iterator[Trace]:
    """Records what runs in the block.

    fake: a session of its own, in which tensors have no values and take no memory: models of any size are traced,
    lowered and simulated. options: as for configure(), for a session of its own.
    """
    with contextlib.ExitStack() as stack:
        if fake or options:
            session = stack.enter_context(_session.temporary(fake=fake, **options))
        else:
            session = _session.current()
        result = Trace(session)
        try:
            yield result
        finally:
            result._stop()


def pending(tensors: Union[torch.Tensor, Sequence[torch.Tensor]]) -> Graph:
    """The graph that computes tensors, which have not been: hash, lazy_ir, hlo. Raises TypeError for those on the host."""
    given = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    for tensor in given:
        if not is_lazy(tensor):
            found = f"a tensor on {tensor.device}" if isinstance(tensor, torch.Tensor) else type(tensor).__name__
            raise TypeError(f"pending: expected tensors on XLA devices, found {found}")
    lazies = [lazy_of(t.resolve_conj().resolve_neg()) for t in given]
    text, hlo, digest = _hlokit._lazy_pending(lazies)
    row = dict.fromkeys(("step", "nodes", "inputs", "outputs", "donated", "ordinal"), 0)
    graph = Graph(None, {**row, "hash": digest, "reason": "pending", "name": "", "compiled": False, "device": "", "location": ""})
    graph._texts = (text, hlo)
    return graph


def explain_recompiles() -> List[str]:
    """Why programs were compiled since the last call: the nearest known graph, and the first difference."""
    return list(_session.current().take_explanations())
