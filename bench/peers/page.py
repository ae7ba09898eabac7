# SPDX-License-Identifier: Apache-2.0
"""The table of the comparison, on the terminal and as docs/performance.md."""

from __future__ import annotations

import datetime
import math
import os
import pathlib
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compare import Row

VERSIONS = """
import importlib.metadata as m
print(", ".join(f"{n} {m.version(n)}" for n in ("jaxlib", "torch") if any(d.name == n for d in m.distributions())))
"""


def head(names: list[str], threads: int) -> str:
    cells = "".join(f"{name:>24}" for name in names[1:])
    return f"{'program, ' + str(threads) + ' thread' + 's' * (threads > 1):40}{'hlokit':>12}{cells}{'compilation':>16}"


def line(row: Row, names: list[str]) -> str:
    ours = row.best("hlokit")
    text = f"{row.name:40}" + (f"{milliseconds(ours):>12}" if ours else f"{'failed':>12}")
    for name in names[1:]:
        text += f"{ratio_text(row, name):>24}"
    text += f"{compilation_text(row):>16}"
    for name, error in row.errors.items():
        if error != "NotImplementedError: no program of PyTorch's":
            text += f"\n    {name}: {error}"
    return text


def ratio_text(row: Row, name: str) -> str:
    ratio = row.ratio([name])
    if ratio is None:
        return "-"
    spread = row.spread(name)
    return f"{ratio:.2f}" + (f" ({spread[0]:.2f}-{spread[1]:.2f})" if spread else "")


def compilation_text(row: Row) -> str:
    ours, theirs = row.compilation.get("hlokit"), row.compilation.get("XLA")
    if ours is None or theirs is None:
        return "-"
    return f"{theirs / max(ours, 1e-4):.2f} of {theirs:.2f} s"


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.3f} ms" if seconds < 0.01 else f"{seconds * 1e3:.1f} ms"


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def summaries(rows: list[Row], names: list[str]) -> list[tuple[str, int, int, float]]:
    """By peer, and for the faster of PyTorch's two: rows, rows ahead, geometric mean of the ratios."""
    groups = [(name, [name]) for name in names[1:]]
    both = [name for name in names if name in ("PyTorch", "torch.compile")]
    if len(both) == 2:
        groups.append(("the faster of PyTorch's", both))
    found = []
    for title, peers in groups:
        ratios = [r for r in (row.ratio(peers) for row in rows) if r]
        if ratios:
            found.append((title, len(ratios), sum(r >= 1 for r in ratios), geometric_mean(ratios)))
    return found


def summary(rows: list[Row], names: list[str]) -> str:
    return "\n".join(f"{title}: geometric mean {mean:.2f}, {ahead} of {count} ahead"
                     for title, count, ahead, mean in summaries(rows, names)) + "\n"


def processor() -> str:
    for text in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if text.startswith("model name"):
            return text.partition(":")[2].strip()
    return os.uname().machine


def write(path: pathlib.Path, tables: dict[int, list[Row]], names: list[str], environments: dict[str, str]) -> None:
    versions = [subprocess.run([python, "-c", VERSIONS], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
                for python in environments.values()]
    text = f"""# Performance

Written by `bench/peers/compare.py --write`; change that, not this page. A number is the time of a peer divided by that of
hlokit's fast engine, so that more than 1 is faster here, with the middle half of the ratios of single rounds. The last
column is the same ratio for compilation with an empty cache, and XLA's seconds. `-`: the peer has no program for it.

Measured on {datetime.date.today()}, {processor()}, {os.cpu_count()} processors; {", ".join(versions)}.
"""
    for threads, rows in tables.items():
        clock = "minima of processor time" if threads == 1 else "minima of elapsed time"
        text += f"\n## {threads} thread{'s' * (threads > 1)}, {clock}\n\n"
        text += f"| program | hlokit | {' | '.join(names[1:])} | compilation |\n" + "|---" * (len(names) + 2) + "|\n"
        for row in rows:
            ours = row.best("hlokit")
            cells = [row.name, milliseconds(ours) if ours else "fails", *(ratio_text(row, n) for n in names[1:]),
                     compilation_text(row)]
            text += "| " + " | ".join(cells) + " |\n"
        text += "\n| against | programs | ahead | geometric mean |\n|---|---|---|---|\n"
        for title, count, ahead, mean in summaries(rows, names):
            text += f"| {title} | {count} | {ahead} | {mean:.2f} |\n"
        for row in rows:
            for name, error in row.errors.items():
                if not error.startswith("NotImplementedError"):
                    text += f"\n{row.name}, {name}: {error}\n"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)
