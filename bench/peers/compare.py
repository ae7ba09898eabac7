# SPDX-License-Identifier: Apache-2.0
"""hlokit's fast engine beside XLA's CPU backend and PyTorch on the same programs, in turns, on this machine.

    /usr/bin/python3 bench/peers/compare.py [--threads=1,2] [--only=TEXT] [--quick] [--write] [--check]

A server of each peer (jaxlib, PyTorch eager and by torch.compile, hlokit by its PJRT plugin) holds one program at a
time; they run in turns, and the minimum of the rounds counts: processor time with one thread, elapsed time with several. A
ratio is a peer's time divided by hlokit's, so that more than 1 is faster here; behind it stands the middle half of the
ratios of single rounds. Results of all peers are compared. The frameworks come from tests/frameworks/environment.py.
--write puts the table into docs/performance.md; --quick takes fewer rounds and leaves torch.compile out; --check exits
with 1 if a ratio is below 1 or results differ.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import page
from programs import PROGRAMS
from programs.program import Program

TOP = pathlib.Path(__file__).resolve().parents[2]
PEERS = {"hlokit": "jax", "XLA": "jax", "PyTorch": "torch", "torch.compile": "torch"}  # and their environments
SECONDS_OF_A_ROUND = 0.05  # at least, by repeating short programs
SECONDS_OF_A_ROW = 20.0  # of one peer at most, after the second round


class Peer:
    """A server process with its processors."""

    def __init__(self, name: str, threads: int, build: pathlib.Path):
        self.name = name
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": str(threads)}
        mode = {"PyTorch": "eager", "torch.compile": "compile"}.get(name, "jax")
        if name == "hlokit":
            environment |= {"JAX_PLATFORMS": "hlokit", "HLOKIT_ENGINE": "fast", "HLOKIT_NUM_THREADS": str(threads),
                            "HLOKIT_CODE_CACHE": "off", "PYTHONPATH": str(build / "python")}
        elif name == "XLA":
            environment["JAX_PLATFORMS"] = "cpu"
        processors = sorted(os.sched_getaffinity(0))[:threads]
        self._process = subprocess.Popen(
            [interpreter(PEERS[name]), str(pathlib.Path(__file__).with_name("server.py")), mode], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, processors))
        self._answer()

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the server of {self.name} ended with {self._process.wait()}")
        return json.loads(line)

    def close(self) -> None:
        self._process.communicate()


def interpreter(environment: str) -> str:
    script = TOP / "tests/frameworks/environment.py"
    made = subprocess.run([sys.executable, script, environment], check=True, stdout=subprocess.PIPE, text=True)
    return made.stdout.split()[-1]


@dataclasses.dataclass
class Row:
    """What was measured of a program: seconds of each round and of the compilation, and errors, by peer."""

    name: str
    rounds: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    compilation: dict[str, float | None] = dataclasses.field(default_factory=dict)
    errors: dict[str, str] = dataclasses.field(default_factory=dict)

    def best(self, peer: str) -> float | None:
        return min(self.rounds[peer]) if self.rounds.get(peer) else None

    def ratio(self, peers: list[str]) -> float | None:
        """Of the fastest of these peers."""
        times = [t for t in map(self.best, peers) if t]
        ours = self.best("hlokit")
        return min(times) / ours if times and ours else None

    def spread(self, peer: str) -> tuple[float, float] | None:
        """The quartiles of the ratios of the rounds."""
        ratios = [t / o for t, o in zip(self.rounds.get(peer, []), self.rounds.get("hlokit", []))]
        if len(ratios) < 2:
            return None
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, high


def differing(program: Program, paths: dict[str, str]) -> dict[str, str]:
    """What is wrong with results, against those of XLA, or of PyTorch where there are none."""
    if program.incomparable:
        return {}
    reference = next((name for name in ("XLA", "PyTorch", "torch.compile") if name in paths), None)
    if reference is None:
        return {"hlokit": "no peer has results to compare with"}
    found = {}
    expected = list(np.load(paths[reference]).values())
    for peer, path in paths.items():
        actual = list(np.load(path).values())
        if len(actual) != len(expected):
            found[peer] = f"{len(actual)} results, {reference} has {len(expected)}"
            continue
        for k, (a, e) in enumerate(zip(actual, expected)):
            if e.dtype.kind in "iub":
                if a.shape != e.shape or (a != e).any():
                    found[peer] = f"result {k} differs"
                continue
            scale = max(float(np.abs(e).max(initial=0)), 1e-30)
            error = float(np.abs(a.astype(e.dtype) - e).max(initial=0)) / scale if a.shape == e.shape else math.inf
            if not error <= program.tolerance:
                found[peer] = f"result {k} differs by {error:.2g} of its largest magnitude"
    return found


def measure(program: Program, peers: list[Peer], rounds: int, threads: int, folder: str) -> Row:
    row = Row(program.name)
    paths, times = {}, {}
    clock = "process" if threads == 1 else "elapsed"
    for peer in peers:
        path = f"{folder}/{len(paths)}.npz"
        answer = peer.ask(do="prepare", program=program.name, results=path)
        if "error" not in answer:
            once = peer.ask(do="run", times=1)
            answer |= {"error": once["error"]} if "error" in once else {"once": max(once[clock], 1e-6)}
        if "error" in answer:
            row.errors[peer.name] = answer["error"]
            continue
        paths[peer.name], row.compilation[peer.name] = path, answer["compile"]
        times[peer.name] = max(1, min(1000, round(SECONDS_OF_A_ROUND / answer["once"])))
        row.rounds[peer.name] = []
    row.errors |= differing(program, paths)
    for k in range(rounds):
        for peer in peers[k % len(peers):] + peers[:k % len(peers)]:
            measured = row.rounds.get(peer.name)
            if measured is None or (k > 2 and sum(measured) * times[peer.name] > SECONDS_OF_A_ROW):
                continue
            measured.append(peer.ask(do="run", times=times[peer.name])[clock] / times[peer.name])
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, nargs="?", default=TOP / "build/release")
    parser.add_argument("--threads", default="1", help="numbers of threads, with commas")
    parser.add_argument("--only", default="", help="programs with this in their names")
    parser.add_argument("--peers", default="XLA,PyTorch,torch.compile", help="peers, with commas")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    names = ["hlokit", *options.peers.split(",")]
    if options.quick:
        names = [n for n in names if n != "torch.compile"]
        options.rounds = 3
    chosen = [p for p in PROGRAMS if options.only.lower() in p.name.lower()]
    tables = {}
    for threads in map(int, options.threads.split(",")):
        peers = [Peer(name, threads, options.build.resolve()) for name in names]
        print(page.head(names, threads), flush=True)
        rows = []
        with tempfile.TemporaryDirectory() as folder:
            for program in chosen:
                rows.append(measure(program, peers, options.rounds, threads, folder))
                print(page.line(rows[-1], names), flush=True)
        print(page.summary(rows, names), flush=True)
        for peer in peers:
            peer.close()
        tables[threads] = rows
    if options.write:
        versions = {e: interpreter(e) for e in sorted(set(PEERS[n] for n in names))}
        page.write(TOP / "docs/performance.md", tables, names, versions)
    behind = any((row.ratio(names[1:]) or 1) < 1 or row.errors.get("hlokit") for t in tables.values() for row in t)
    return 1 if options.check and behind else 0


if __name__ == "__main__":
    sys.exit(main())
