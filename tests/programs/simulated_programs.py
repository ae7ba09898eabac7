#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real programs on a simulated TPU: each yields a report whose times add up, also if every device is simulated, never
needs more vector memory than there is, and no pipeline makes it slower.

  simulated_programs.py HLO_RUN FILE|DIR... [--device=v5e]

For each program: hlo-run --timing-only exits with 0 and a report; the times of a device add up to the device time; and
a run in which every device is simulated (with a straggler of factor 1) takes as long as one in which one represents
all; and compiled, or after each pipeline of MAX_SLOWDOWN, it takes no more time than as given, one kernel for each
instruction. After `simplify` alone it may take a little more: what stays in vector memory from one kernel to the next
depends on the order of the text, which only the later passes choose. Programs with shardings are partitioned before; compiled
they may take MAX_PARTITIONED_SLOWDOWN as long: layouts of convolutions with few features pad what collectives send, which
`layout-assignment` does not weigh. Prints failures; exit code 1 if there are any.
"""
import argparse
import glob
import json
import math
import os
import subprocess
import sys

PARTS = ("compute_us", "exposed_communication_us", "sync_wait_us", "other_wait_us", "idle_us")
MAX_SLOWDOWN = {"simplify": 1.05, "fuse": 1, "default": 1}
MAX_PARTITIONED_SLOWDOWN = 1.7


def report(binary, path, device, *flags):
    run = subprocess.run([binary, path, f"--device={device}", "--timing-only", "--json", *flags], capture_output=True, text=True,
                         timeout=300, check=False)
    if run.returncode != 0:
        raise ValueError(f"exit code {run.returncode}: {run.stderr.strip()[:300]}")
    return json.loads(run.stdout)


def check(binary, path, device):
    alike = report(binary, path, device)
    total = alike["device_time_us"]
    if not (math.isfinite(total) and total >= 0 and alike["step_time_us"] > 0):
        raise ValueError(f"device time {total}, step time {alike['step_time_us']}")
    vmem = alike["memory"]["vmem"]
    if vmem["peak_bytes"] > vmem["limit_bytes"]:
        raise ValueError(f"{vmem['peak_bytes']} bytes of {vmem['limit_bytes']} in vector memory")
    walked = report(binary, path, device, "--straggler=any:1")
    near = 1e-6 * total + 1e-6
    if abs(walked["device_time_us"] - total) > near:
        raise ValueError(f"{total} us with one device for all, {walked['device_time_us']} with all of them")
    for share in alike["workers"]["devices"] + walked["workers"]["devices"]:
        parts = sum(share[part] for part in PARTS)
        if abs(parts - total) > near:
            raise ValueError(f"the shares of device {share['device']} make {parts} us, not {total}")
    # As given, the work of a whole program would be divided evenly, without communication.
    times = {pipeline: report(binary, path, device, f"--pipeline=spmd,{pipeline}".rstrip(","))["device_time_us"]
             for pipeline in ("", *MAX_SLOWDOWN)}
    given = times.pop("")
    whole = report(binary, path, device, "--pipeline=")
    partitioned = any("work is divided evenly" in str(u) for u in whole["unmodeled"])
    for pipeline, time in (("tpu", total), *times.items()):
        slowdown = MAX_PARTITIONED_SLOWDOWN if pipeline == "tpu" and partitioned else MAX_SLOWDOWN.get(pipeline, 1)
        if time > slowdown * given:
            raise ValueError(f"{time} us after {pipeline}, {given} before")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hlo_run")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--device", default="v5e")
    arguments = parser.parse_args()
    failed = 0
    files = []
    for path in arguments.paths:
        files += sorted(glob.glob(os.path.join(path, "*.hlo"))) if os.path.isdir(path) else [path]
    for path in files:
        try:
            check(arguments.hlo_run, path, arguments.device)
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            failed += 1
            print(f"{os.path.basename(path)}: {error}")
    print(f"{len(files) - failed} of {len(files)} programs on {arguments.device}")
    return 1 if failed or not files else 0


if __name__ == "__main__":
    sys.exit(main())
