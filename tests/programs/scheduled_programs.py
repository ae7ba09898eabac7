#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs on a simulated TPU: a schedule, and memory spaces assigned after it, never make a program slower.

  scheduled_programs.py HLO_RUN FILE|DIR... [--device=v5e] [--tolerance=0.04]

For each program: the device time with pipeline `tpu` is at most that with the same passes up to the latency-hiding
schedule, plus the tolerance. Without a schedule instructions run in text order, with all arrays in HBM. The device has
more HBM than any program needs: if memory is short, rematerialized values and collectives that are not pipelined cost
time on purpose. Prints failures and the mean speed-up of the programs; exit code 1 if anything fails.
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys

# Pipeline `tpu` up to the schedule, without the passes that only a schedule profits from. The copies that a loop's
# state needs of constants and parameters belong to the program, scheduled or not.
UNSCHEDULED = ("spmd,tpu-simplify,layout-assignment{target=tpu},tuple-simplifier,dce,fusion{reduction-epilogues},tuple-simplifier,dce,"
               "copy-insertion{arguments-only},all-reduce-combiner,all-gather-combiner,reduce-scatter-combiner,async-collective-creator{reduce-scatters=false}")


def device_time(binary, path, device, pipeline):
    run = subprocess.run([binary, path, f"--device={device}", "--timing-only", "--json", f"--pipeline={pipeline}",
                          "--scale=hbm_size=1000"], capture_output=True, text=True, timeout=300, check=False)
    if run.returncode != 0:
        raise ValueError(f"exit code {run.returncode}: {run.stderr.strip()[:300]}")
    return json.loads(run.stdout)["device_time_us"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hlo_run")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--device", default="v5e")
    parser.add_argument("--tolerance", type=float, default=0.04)
    parser.add_argument("--verbose", action="store_true", help="a line for each program")
    arguments = parser.parse_args()
    files = []
    for path in arguments.paths:
        files += sorted(glob.glob(os.path.join(path, "**/*.hlo"), recursive=True)) if os.path.isdir(path) else [path]
    failed = 0
    logs = []
    for path in files:
        name = os.path.basename(path)
        try:
            plain = device_time(arguments.hlo_run, path, arguments.device, UNSCHEDULED)
            scheduled = device_time(arguments.hlo_run, path, arguments.device, "tpu")
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"{name}: {error}")
            continue
        logs.append(math.log(max(plain, 1e-9) / max(scheduled, 1e-9)))
        slower = scheduled > plain * (1 + arguments.tolerance) + 0.01
        failed += slower
        if slower or arguments.verbose:
            print(f"{name}: {scheduled:.2f} us scheduled, {plain:.2f} us without: {100 * (scheduled / max(plain, 1e-9) - 1):+.2f} %")
    mean = math.exp(sum(logs) / len(logs)) if logs else 0
    print(f"{len(files) - failed} of {len(files)} programs on {arguments.device} are no slower; {mean:.3f} times as fast in the mean")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
