# SPDX-License-Identifier: Apache-2.0
"""What `python -m hlokit.torch` prints and writes at the end of a program."""

import collections
import json
import os
import pathlib
from typing import Any, Dict, List, Optional, Sequence, Set, TextIO, Tuple

from hlokit import _errors

from . import _fallback, _lines, _modes, _modules, _recompilations, parallel_loader
from ._run_recording import Recording
from ._trace import Graph, Simulation

HOSTS = ("recorded", "torch_xla")
_PERIOD = 8  # steps that repeat together
_LISTED = 20  # lines of a section
_AT_A_PLACE = 3  # recompilations of one place
_STARVED = 0.3  # part of a loop's time
_FEW = 4  # batches
_OFTEN = 0.5  # part of the steps


def _time(us: float) -> str:
    for unit, factor in (("s", 1e6), ("ms", 1e3)):
        if us >= factor:
            return f"{us / factor:.3g} {unit}"
    return f"{us:.3g} us"


def _bytes(count: float) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count:.0f} B"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _reason(graph: Graph) -> str:
    name = f" of {graph.name}" if graph.name and graph.reason in ("item", "value") else ""
    reason = "loader step" if graph.reason == "loader" else graph.reason
    return f"{reason}{name}" + (f", at {graph.location}" if graph.location else "")


# ---- graphs by step ----


def _steps(graphs: Sequence[Graph]) -> List[Tuple[int, List[Graph]]]:
    """The graphs of the first device, by step."""
    steps: "collections.OrderedDict[Tuple[int, int], List[Graph]]" = collections.OrderedDict()
    for graph in graphs:
        if graph.ordinal == 0:
            steps.setdefault((id(graph._session), graph.step), []).append(graph)
    return [(step, found) for (_, step), found in steps.items()]


def _periods(keys: Sequence[Any]) -> List[Tuple[int, int, int]]:
    """Divides a sequence into runs that repeat: (start, period, count)."""
    found = []
    i = 0
    while i < len(keys):
        best = (1, 1)
        for period in range(1, _PERIOD + 1):
            count = 1
            while keys[i + count * period : i + (count + 1) * period] == keys[i : i + period] and i + (count + 1) * period <= len(keys):
                count += 1
            if count > 1 and count * period > best[0] * best[1]:
                best = (period, count)
        found.append((i, *best))
        i += best[0] * best[1]
    return found


def _graph_lines(graphs: Sequence[Graph]) -> List[str]:
    steps = _steps(graphs)
    keys = [tuple((g.hash, g.reason, g.location) for g in found) for _, found in steps]
    new = {g.hash for g in graphs if g.compiled}  # by any device
    known: Set[str] = set()
    lines: List[str] = []
    for start, period, count in _periods(keys):
        if len(lines) >= 3 * _LISTED:
            lines.append(f"  and {len(steps) - start} further steps")
            break
        first, last = steps[start][0], steps[start + period * count - 1][0]
        if count > 1 and period > 1:
            lines.append(f"  steps {first} to {last}: {count} times the following {period}")
        for place in range(period):
            step, found = steps[start + place]
            if count == 1:
                head = f"step {step}"
            else:
                head = f"steps {first} to {last}" if period == 1 else f"  step {step}, and each {period} steps after it"
            for graph in found:
                compiled = graph.hash not in known and graph.hash in new
                known.add(graph.hash)
                sizes = f"{_plural(graph.nodes, 'node')}, {_plural(graph.inputs, 'input')}, {_plural(graph.outputs, 'output')}"
                lines.append(f"  {head}: {graph.hash[:8]} {'compiled' if compiled else 'cached'}, {sizes}; {_reason(graph)}")
    return lines


# ---- recompilations ----


def _recompilations_of(recording: Recording) -> List[Dict[str, Any]]:
    """Each compilation that is not the first of its place: the graph, the known one, and the differences."""
    by_hash = {g.hash: g for g in recording.graphs}
    compiled = {g.hash for g in recording.graphs if g.compiled}
    seen = set()
    places = set()
    found = []
    for graph in sorted((g for g in recording.graphs if g.ordinal == 0), key=lambda g: g.step):
        if graph.hash in seen:
            continue
        seen.add(graph.hash)
        place = (graph.reason, graph.name, graph.location)
        again = place in places
        places.add(place)
        if not again or graph.hash not in compiled:
            continue
        nearest = _nearest(graph, recording, by_hash)
        entry: Dict[str, Any] = {"step": graph.step, "graph": graph.hash, "place": _reason(graph), "differences": []}
        if nearest is not None:
            entry["nearest"] = nearest.hash
            entry["differences"] = _recompilations.differences(graph.lazy_ir, nearest.lazy_ir)
        found.append(entry)
    return found


def _nearest(graph: Graph, recording: Recording, by_hash: Dict[str, Graph]) -> Optional[Graph]:
    """The last earlier graph of the same place; else the one that the tracer names."""
    same = [
        g
        for g in recording.graphs
        if g.ordinal == graph.ordinal and g.hash != graph.hash and g.step <= graph.step and (g.reason, g.location) == (graph.reason, graph.location)
    ]
    named = recording.nearest.get(graph.hash)
    if named is not None and any(g.hash == named[0] for g in same):
        return by_hash.get(named[0])
    return same[-1] if same else by_hash.get(named[0]) if named is not None else None


def _recompilation_lines(entries: Sequence[Dict[str, Any]]) -> List[str]:
    lines: List[str] = []
    places: "collections.Counter[str]" = collections.Counter()
    left_out: "collections.Counter[str]" = collections.Counter()
    for entry in entries:
        places[entry["place"]] += 1
        if places[entry["place"]] > _AT_A_PLACE or len(lines) > 4 * _LISTED:
            left_out[entry["place"]] += 1
            continue
        lines.append(f"  step {entry['step']}: {entry['graph'][:8]}, {entry['place']}")
        lines += [f"    {text}" for text in entry["differences"]]
    for place, count in left_out.most_common(_LISTED):
        lines.append(f"  and {count} more: {place}")
    return lines


# ---- traps ----


def _step_traps(recording: Recording, entries: Sequence[Dict[str, Any]]) -> List[str]:
    """What the graphs show."""
    graphs = [g for g in recording.graphs if g.ordinal == 0]
    steps = [g for g in graphs if g.reason in ("step", "loader", "trace")]
    traps = []
    reads = collections.Counter((g.reason, g.name, g.location) for g in graphs if g.reason in ("item", "value"))
    for (reason, name, location), count in reads.most_common():
        if count >= 3 and count >= _OFTEN * max(len({g.step for g in graphs}) / 3, 1):
            what = f"{reason} of {name}" if name else reason
            traps.append(
                f"{location}: a value is read in the loop ({what}), {count} times: each ends the graph, and the host waits for the "
                "device. Read it every N steps, or in a step closure."
            )
    changing = collections.Counter(entry["place"] for entry in entries)
    for place, count in changing.items():
        total = sum(1 for g in graphs if _reason(g) == place)
        if count >= 2 and count >= _OFTEN * (total - 1):
            shapes = [d for entry in entries if entry["place"] == place for d in entry["differences"] if " was " in d]
            example = f", such as {shapes[0]}" if shapes else ""
            traps.append(f"{place}: a new graph nearly each time, {count} of {total}{example}. Pad to few sizes.")
    marks = sum(metrics["counters"].get("MarkStep", 0) for metrics in recording.metrics)
    if graphs and not steps and not marks and not _modes.used:
        traps.append("no step was marked: all that was recorded before a value is read is one graph. Call torch_xla.sync() after each step.")
    return traps


def _loader_traps() -> List[str]:
    traps = {}
    for loop in parallel_loader.loops:
        if loop.batches >= _FEW and loop.waited > _STARVED * loop.seconds and loop.line not in traps:
            traps[loop.line] = (
                f"{loop.line}: the loader is too slow: of {loop.seconds:.3g} s the loop waited {loop.waited:.3g} s for its "
                f"{loop.batches} batches. More workers, or less work for a batch."
            )
    return list(traps.values())


def _traps(recording: Recording, entries: Sequence[Dict[str, Any]]) -> List[str]:
    _modules.check_ties()
    named = [f"{os.path.basename(path)}:{line}: {text}" for text, path, line in _lines.traps]
    return named + _step_traps(recording, entries) + _loader_traps()


# ---- the estimate ----


class _Run(Simulation):
    """The recorded program on a device."""

    def __init__(self, recording: Recording, device: str, host: str):
        self.device = device
        self._recording = recording
        self.run = None
        self.reports = {}
        if recording.profile is not None:
            self.run = recording.profile.simulate(device, 0, **({"host": host} if host != "recorded" else {}))


def _estimate_lines(document: Dict[str, Any], recording: Recording) -> List[str]:
    lines = []
    used, chips = document["used_chips"], document["chips"]
    memory = document["memory"]
    fits = "fits" if memory["fits"] else "does not fit"
    lines.append(
        f"  step {_time(document['step_time_us'])}, device {_time(document['device_time_us'])}, bound by {document['bound_by']}; "
        f"memory {_bytes(memory['peak_bytes'])} of {_bytes(memory['limit_bytes'])}, {fits}"
    )
    if used < chips:
        lines.append(f"  {used} of {chips} chips are used: the program runs on {_plural(document['used_devices'], 'device')} (--devices=N)")
    graphs = sorted(document.get("graphs", []), key=lambda g: -g["time_per_step_us"])
    for graph in graphs[:5]:
        compile_us = graph.get("compile", {}).get("modeled_us", 0)
        lines.append(
            f"  {graph['module']}: {_time(graph['device_time_us'])} on the device, {graph['runs_per_step']:.3g} a step, "
            f"{_bytes(graph['peak_bytes'])}; compiles in about {_time(compile_us)} on a TPU"
        )
    phases = [p for p in document.get("host", {}).get("phases", []) if p["device_idle_per_step_us"] > 0.02 * document["step_time_us"]]
    for phase in phases:
        lines.append(f"  the device is idle {_time(phase['device_idle_per_step_us'])} a step for the host's {phase['phase']}")
    for advice in document.get("recommendations", [])[:3]:
        lines.append(f"  {advice['title']}: {_time(advice['before_us'])} a step would be {_time(advice['after_us'])}")
    return lines


# ---- writing ----


def _write_files(folder: pathlib.Path, recording: Recording, run: Optional[_Run], summary: Dict[str, Any], title: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for graph in {g.hash: g for g in recording.graphs}.values():
        (folder / f"graph-{graph.hash}.hlo").write_text(graph.hlo)
        (folder / f"graph-{graph.hash}.lazy.txt").write_text(graph.lazy_ir)
    (folder / "program.json").write_text(json.dumps(summary, indent=1) + "\n")
    if run is not None and run.run is not None:
        run.write_page(folder, max(reversed(recording.graphs), key=lambda g: g.nodes))
        (folder / "report.json").write_text(run.run.document(title))


def _fallback_lines(recording: Recording) -> List[str]:
    lines = []
    for (name, reason), count in sorted(_fallback.fallbacks.items(), key=lambda item: -item[1]):
        lines.append(f"  {name}: {_times(count)}, {reason}")
    # Ops that the tracer itself runs on the host.
    known = {name for name, _ in _fallback.fallbacks}
    for metrics in recording.metrics:
        for name, count in metrics["counters"].items():
            if name.startswith("aten::") and name != "aten::_local_scalar_dense" and name not in known:
                lines.append(f"  {name}: {_times(count)}, it runs on the host: the size of its result depends on values")
    return lines


def _nothing(recording: Recording) -> str:
    """Why there is no graph."""
    if any(metrics["counters"].get("CreateXlaTensor", 0) for metrics in recording.metrics):
        return "made tensors on the device, and ran nothing there: it marked no step (torch_xla.sync()) and read no value"
    return "made no tensors on the device, xla or tpu"


def write(recording: Recording, options: Any, program: str, out: TextIO) -> None:
    """Prints the report, and writes it to --report."""
    graphs = recording.graphs
    name = os.path.basename(program)
    if not graphs:
        print(f"hlokit.torch: {name} {_nothing(recording)}", file=out)
        return
    first = [g for g in graphs if g.ordinal == 0]
    devices = len({g.ordinal for g in graphs})
    entries = _recompilations_of(recording)
    fallbacks = _fallback_lines(recording)
    traps = _traps(recording, entries)
    compiled = len({g.hash for g in graphs if g.compiled})
    print(
        f"\nhlokit.torch: {name} on {_plural(devices, 'device')}: {_plural(len(_steps(graphs)), 'step')}, {_plural(len(first), 'graph')} run, "
        f"{len({g.hash for g in first})} different, {compiled} compiled, {recording.seconds:.3g} s",
        file=out,
    )

    def section(title: str, lines: Sequence[str]) -> None:
        if lines:
            print(title, *lines, sep="\n", file=out)

    section("graphs by step:", _graph_lines(graphs))
    section(f"recompilations: {len(entries)}" if entries else "", _recompilation_lines(entries))
    section("ops that ran on the CPU:", fallbacks)
    section("warnings:", [f"  {text}" for text in traps])
    run: Optional[_Run] = None
    document: Dict[str, Any] = {}
    if not options.no_estimate:
        try:
            run = _Run(recording, options.device, options.host)
            document = run.document(name)
            host = "" if options.host == "recorded" else f", host of {options.host}"
            section(f"estimate for {options.device}{host}:", _estimate_lines(document, recording))
        except (_errors.RunError, ValueError, RuntimeError) as error:
            print(f"no estimate for {options.device}: {error}", file=out)
            run = None
    if options.report:
        summary = {
            "program": program,
            "devices": devices,
            "seconds": recording.seconds,
            "graphs": [
                {k: getattr(g, k) for k in ("hash", "step", "ordinal", "reason", "name", "compiled", "nodes", "inputs", "outputs", "donated", "location")}
                for g in graphs
            ],
            "recompilations": entries,
            "fallbacks": [{"op": n, "reason": r, "calls": c} for (n, r), c in _fallback.fallbacks.items()],
            "warnings": traps,
        }
        _write_files(pathlib.Path(options.report), recording, run, summary, name)
        print(f"written to {options.report}", file=out)
