#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package against its limits: reading against hlo-opt, iteration, arrays against a copy.

  PYTHONPATH=build/release/python bench/python/graph.py [MODULE] [--tools=build/release/bin]

Prints medians of interleaved runs and a ratio for each claim.
"""

import argparse
import resource
import statistics
import subprocess
import tempfile
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


def loading(path: str, tools: str) -> None:
    ours, theirs = [], []
    for _ in range(7):
        ours.append(timed(lambda: hlokit.load(path, verify=False))[0])
        # What the tool takes beyond a module of three lines: its start is not reading.
        with tempfile.NamedTemporaryFile("w", suffix=".hlo") as small:
            small.write("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }\n")
            small.flush()
            command = [f"{tools}/hlo-opt", "--no-verify", "-o", "/dev/null"]
            start = timed(lambda: subprocess.run([*command, small.name], check=True))[0]
            theirs.append(timed(lambda: subprocess.run([*command, path], check=True))[0] - start)
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"load {path}: {a * 1e3:.1f} ms; hlo-opt reads and prints it in {b * 1e3:.1f} ms: {a / b:.2f}")


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
        seconds = statistics.median(timed(work)[0] for _ in range(5))
        print(f"1,000,000 instructions, {name}: {seconds:.3f} s")


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
    copy = statistics.median(timed(lambda: x.copy())[0] for _ in range(3))
    print(f"1 GiB argument: {seconds * 1e3:.3f} ms a run, {grown / 1024:.0f} MiB more; a copy takes {copy * 1e3:.0f} ms")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", nargs="?")
    parser.add_argument("--tools", default="build/release/bin")
    arguments = parser.parse_args()
    if arguments.module:
        loading(arguments.module, arguments.tools)
    iteration()
    arrays()
