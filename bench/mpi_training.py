#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Throughput of data-parallel training on two processes, each with a core, against one.

mpi_training.py IR_DUMP [--model=resnet18] [--batch=16] [--image=224] [--steps=3] [--rounds=5]

Runs `ir-dump --model --batch=B` and `mpirun -n 2 ir-dump --model --batch=2B --mpi` in turn, each with one step and with
`--steps` more, and takes the difference, which has neither the start nor the compilation. Prints medians of elapsed and
of processor time a step, and the ratio of throughputs, whose target is 1.8. Other programs on the machine disturb the
elapsed times; processor time counts what the processes themselves do, waiting for each other included. Exits with 1 if
both ratios are below the target.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time

TARGET = 1.8


def measure(command):
    """Returns elapsed and processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    elapsed = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ir_dump")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch", type=int, default=16, help="of each process")
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("needs two cores")
        return 2

    def program(batch, steps):
        return [options.ir_dump, f"--model={options.model}", f"--batch={batch}", f"--image={options.image}",
                f"--steps={steps}", "--emit=values"]

    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    # Each process stays on one core.
    on_core = ["bash", "-c", f'cores=({cores[0]} {cores[1]}); exec taskset -c '
               '"${cores[${OMPI_COMM_WORLD_RANK:-0}]}" "$@"', "bash"]

    def one(steps):
        return measure(on_core + program(options.batch, steps))

    def two(steps):
        return measure(["mpirun"] + root + ["--oversubscribe", "--bind-to", "none", "-n", "2"] + on_core +
                       program(2 * options.batch, steps) + ["--mpi"])

    times = {"one": [], "two": []}
    for _ in range(options.rounds):
        for name, run in (("one", one), ("two", two)):
            start, whole = run(1), run(1 + options.steps)
            times[name].append([(whole[k] - start[k]) / options.steps for k in range(2)])
    ratios = []
    print(f"{options.model}, batch {options.batch} a process, {options.rounds} rounds of {options.steps} steps; "
          "seconds a step, medians")
    for k, what in enumerate(("elapsed", "processor")):
        single, double = (statistics.median(round[k] for round in times[name]) for name in ("one", "two"))
        # Two processes have twice the batch; their processor time is that of both.
        ratios.append(2 * single / double * (2 if what == "processor" else 1))
        print(f"  {what:9} one process {single:.3f}, two {double:.3f}: throughput {ratios[-1]:.2f} (target {TARGET})")
    return 0 if max(ratios) >= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
