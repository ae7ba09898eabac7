# SPDX-License-Identifier: Apache-2.0
"""Pictures of graphs: the viewer's page where it was built, SVG where Graphviz is installed, and text."""

import base64
import html
import os
import pathlib
import subprocess
import zlib
from typing import Any, Optional, Union

from . import _hlokit
from ._hlokit import Computation, Instruction, Module
from ._pages import page, write_whole

_FRAME_HEIGHT = 480
_GRAPHVIZ_SECONDS = 20
# Larger computations are drawn by the viewer only, which shows them in groups.
_MAX_INSTRUCTIONS = 400


class Graph:
    """A graph to look at: of a module, a computation, what an instruction calls, or its neighborhood.

    In a notebook it is the page of hlo-view, or a picture by Graphviz, or text, whatever there is.
    """

    def __init__(self, module: Module, name: str = "", hops: int = 0, max_instructions: int = _MAX_INSTRUCTIONS):
        self._module = module
        self._name = name
        self._hops = hops
        self._limit = max_instructions

    @property
    def dot(self) -> str:
        """Graphviz's text of it. Raises ValueError if there is no such part, or it has too many instructions."""
        return _hlokit._dot(self._module, self._name, self._hops, self._limit)

    @property
    def svg(self) -> str:
        """A picture by Graphviz's program `dot`. Raises ValueError as `dot`, RuntimeError where it is not installed."""
        text = self.dot
        try:
            run = subprocess.run(
                ["dot", "-Tsvg"], input=text.encode("utf-8", "replace"), capture_output=True, timeout=_GRAPHVIZ_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(f"Graphviz: {error}") from None
        if run.returncode != 0:
            raise RuntimeError(f"Graphviz: {run.stderr.decode(errors='replace').strip()}")
        svg = run.stdout.decode(errors="replace")
        return svg[max(svg.find("<svg"), 0) :]

    @property
    def html(self) -> str:
        """The page of hlo-view with the whole module, which needs no network. Raises RuntimeError in builds without it."""
        template = page("view")
        if template is None:
            raise RuntimeError("hlokit was built without its pages, which need node and npm")
        data = zlib.compress(_hlokit._graph_json(self._module).encode("utf-8", "surrogateescape"))
        return template.replace("@DATA@", base64.b64encode(data).decode("ascii"))

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes .html, .svg or .dot, by the suffix. Raises ValueError for others, and what these raise."""
        target = pathlib.Path(path)
        kinds = {".html": "html", ".svg": "svg", ".dot": "dot"}
        if target.suffix not in kinds:
            raise ValueError(f"path: {str(target)!r} ends in none of {', '.join(kinds)}")
        write_whole(target, getattr(self, kinds[target.suffix]))

    def _picture(self) -> str:
        """HTML that shows it; never fails."""
        reason = ""
        for form in ("html", "svg") if not self._name else ("svg",):
            try:
                shown = getattr(self, form)
            except Exception as error:  # what there is not to show, or to show it with
                reason = str(error)
                continue
            if form == "svg":
                return f"<div style='overflow:auto;max-height:{_FRAME_HEIGHT}px'>{shown}</div>"
            return f"<iframe srcdoc='{html.escape(shown)}' style='width:100%;height:{_FRAME_HEIGHT}px;border:0'></iframe>"
        return f"<p>no picture: {html.escape(reason)}</p>"

    def _repr_html_(self) -> str:
        return self._picture()

    def __repr__(self) -> str:
        return f"<Graph of {self._name or self._module.name}>"


def graph(part: Union[Module, Computation, Instruction], *, hops: int = 0, max_instructions: int = _MAX_INSTRUCTIONS) -> Graph:
    """The graph of a module, of a computation, or of an instruction: what it calls, or with `hops` its neighbors.

    Graph.svg and Graph.dot are of at most max_instructions instructions; a module's are of its entry computation.
    """
    if hops < 0 or max_instructions < 1:
        raise ValueError("graph: expected hops of at least 0, and max_instructions of at least 1")
    if isinstance(part, Module):
        return Graph(part, "", hops, max_instructions)
    if isinstance(part, (Computation, Instruction)):
        return Graph(part.module, part.name, hops, max_instructions)
    raise TypeError(f"graph: expected a Module, Computation or Instruction, not {type(part).__name__}")


def _text(part: Any, lines: int = 40) -> str:
    text = str(part).splitlines()
    shown = "\n".join(text[:lines]) + ("\n..." if len(text) > lines else "")
    return f"<details><summary>text</summary><pre>{html.escape(shown)}</pre></details>"


def module_html(self: Module) -> str:
    """A notebook's view: the graph, how many instructions of which opcodes, and the beginning of the text."""
    counts: Any = {}
    for i in self.instructions():
        counts[i.opcode] = counts.get(i.opcode, 0) + 1
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:8]
    rows = "".join(f"<tr><td>{html.escape(o)}</td><td>{n}</td></tr>" for o, n in largest)
    return (
        f"<b>{html.escape(self.name)}</b>: {len(self.computations)} computations, {self.instruction_count} instructions"
        f"{Graph(self)._picture()}<details><summary>opcodes</summary><table>{rows}</table></details>{_text(self)}"
    )


def computation_html(self: Computation) -> str:
    """A notebook's view: the graph, and the beginning of the text."""
    return f"<b>{html.escape(self.name)}</b>: {len(self)} instructions{graph(self)._picture()}{_text(self)}"
