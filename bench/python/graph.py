#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package against its limits: parsing against C++, iteration, arrays against a copy.

  PYTHONPATH=build/release/python bench/python/graph.py [MODULE] [--bench=build/release/bench/hlokit_bench_core]

Prints medians of interleaved runs and a ratio for each claim.
"""

import argparse
import resource
import statistics
import subprocess
import time

import numpy as np

import hlokit


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def chain(count: int) -> str:
    lines = ["HloModule chain", "ENTRY e {", "  x0 = f32[8] parameter(0)"]
    lines += [f"  x{i} = f32[8] add(x{i - 1}, x{i // 2})" for i in range(1, count - 1)]
    return "\n".join([*lines, f"  ROOT r = f32[8] negate(x{count - 2})", "}", ""])


def parsing(path: str, bench: str) -> None:
    """Processor times of parsing a text that is in memory, as hlokit_bench_core measures them."""
    with open(path, "rb") as file:
        text = file.read()
    ours, theirs = [], []
    for _ in range(9):
        start = time.process_time()
        module = hlokit.parse(text, verify=False)
        ours.append(time.process_time() - start)
        del module
        rows = subprocess.run([bench, path, "--rounds=1"], check=True, capture_output=True, text=True).stdout
        theirs.append(float(next(row.split()[1] for row in rows.splitlines() if row.startswith("parse "))) / 1e3)
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"parse {path}: {a * 1e3:.2f} ms; in C++ {b * 1e3:.2f} ms: {a / b:.2f}")


def iteration() -> None:
    module = hlokit.parse(chain(1_000_000), verify=False)

    def walk() -> int:
        count = 0
        for _ in module.instructions():
            count += 1
        return count

    def read() -> int:
        return sum(len(i.operands) for i in module.instructions() if i.opcode == "add")

    for name, work in (("handles", walk), ("opcode and operands", read)):
        seconds = []
        for _ in range(5):
            start = time.process_time()
            work()
            seconds.append(time.process_time() - start)
        print(f"1,000,000 instructions, {name}: {statistics.median(seconds):.3f} s")


def arrays() -> None:
    elements = 1 << 28  # 1 GiB of f32
    module = hlokit.parse(
        f"HloModule a\nENTRY e {{ p = f32[{elements}] parameter(0) ROOT s = f32[8] slice(p), slice={{[0:8]}} }}"
    )
    program = hlokit.Executable(module)
    x = np.ones(elements, np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds = statistics.median(timed(lambda: program(x))[0] for _ in range(5))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    trip = statistics.median(timed(lambda: np.from_dlpack(hlokit.Array(x)))[0] for _ in range(5))
    assert np.shares_memory(np.from_dlpack(hlokit.Array(x)), x)
    copy = statistics.median(timed(lambda: x.copy())[0] for _ in range(3))
    print(f"1 GiB argument: {seconds * 1e3:.3f} ms a run, {grown / 1024:.0f} MiB more; through DLPack and back "
          f"{trip * 1e3:.3f} ms; a copy takes {copy * 1e3:.0f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", nargs="?")
    parser.add_argument("--bench", default="build/release/bench/hlokit_bench_core")
    arguments = parser.parse_args()
    if arguments.module:
        parsing(arguments.module, arguments.bench)
    iteration()
    arrays()
