#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs under MPI: the values of one process, and a clean end when a process dies.

mpi_programs.py HLO_RUN [--processes=N] [--kills=N] [--seconds=S] [--seed=N] [--devices=N] PATH...

Runs each module of the paths that has a collective, or shardings, on `--devices` devices (those of its header if it says
more than one) in one process and in several, on the same synthetic arguments; the output must be the same, byte by byte.
A module that one process rejects must be rejected with the same message. Then kills a process of a running program with
SIGKILL, at a random time, `--kills` times: all must end within seconds, with an error and an exit code other than 0.

mpirun of Open MPI 4 may hang in its own end (PMIx_server_finalize) if a process dies before MPI has started, when none of
its processes is left. Such runs are counted apart, and fail unless mpirun has printed its error.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

COLLECTIVE = re.compile(r"(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast"
                        r"|collective-reduce"
                        r"|recv-done)(-start)?\(|sharding=\{(devices|\{)")
# Many steps, each with a collective.
LOOP = """HloModule loop
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
condition { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(100000000)
  ROOT less = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  sum = f32[64] all-reduce(x), replica_groups={}, to_apply=add
  ROOT t = (s32[], f32[64]) tuple(next, sum) }
ENTRY main { x = f32[64] parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[64]) tuple(zero, x)
  w = (s32[], f32[64]) while(t), condition=condition, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1 }
"""
LIMIT_SECONDS = 20  # of a run in which a process dies
ALONE_SECONDS = 8  # of mpirun without processes


def mpirun(processes, quiet=True):
    command = ["mpirun", "--oversubscribe", "-n", str(processes)] + (["-q"] if quiet else [])
    return command[:1] + ["--allow-run-as-root"] + command[1:] if os.geteuid() == 0 else command


def run(command, timeout=120):
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        return 124, b"", b"timeout"


def modules(paths):
    for path in paths:
        files = [path] if os.path.isfile(path) else [
            os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
        for file in sorted(files):
            if not file.endswith(".hlo"):
                continue
            with open(file, errors="replace") as stream:
                text = stream.read()
            if "HloModule" in text and "// -----" not in text and COLLECTIVE.search(text):
                yield file, text


def devices_of(file, text, fallback):
    """Returns flags for the devices, and their number; a number of 0 for a module that has no values."""
    facts = os.path.splitext(file)[0] + ".facts"
    if os.path.exists(facts):
        with open(facts) as stream:
            lines = stream.read()
        count = int(re.search(r"^partitions: (\d+)", lines, re.M)[1]) if "values: yes" in lines else 0
        return [f"--partitions={count}"], count
    flags = []
    for flag, key in (("--replicas", "replica_count"), ("--partitions", "num_partitions")):
        found = re.search(key + r"=(\d+)", text.split("\n")[0])
        if found and int(found[1]) > 1:
            flags.append((flag, int(found[1])))
    if not flags:
        whole = re.search(r"sharding=\{(devices|\{)", text)
        tiles = re.search(r"devices=\[([\d,]+)\]", text)
        count = 1
        for size in tiles[1].split(",") if tiles else []:
            count *= int(size)
        flags.append(("--partitions" if whole else "--replicas", count if tiles and count > 1 else fallback))
    count = 1
    for _, number in flags:
        count *= number
    return [f"{flag}={number}" for flag, number in flags], count


def first_error(text):
    for line in text.decode(errors="replace").split("\n"):
        if "error:" in line:
            return line
    return ""


def check_values(options):
    same = rejected = slow = failed = 0
    end = time.time() + options.seconds
    for file, text in modules(options.paths):
        if time.time() > end:
            break
        flags, count = devices_of(file, text, options.devices)
        if count == 0 or count > 64:
            continue
        command = [options.hlo_run, file, "--seed=1", "--no-progress", "--max-seconds=20"] + flags
        code, out, error = run(command)
        processes = min(options.processes, count)
        mpi_code, mpi_out, mpi_error = run(mpirun(processes) + command + ["--mpi"])
        # The machine was busy: no result to compare.
        if b"exceeded the time limit" in error + mpi_error:
            slow += 1
            continue
        # A rejection names an error.
        ended = code != 124 and mpi_code != 124 and (code == 0 or first_error(error))
        if not ended or code != mpi_code or out != mpi_out or first_error(error) != first_error(mpi_error):
            failed += 1
            print(f"FAILED {file} {' '.join(flags)}, {processes} processes: exit codes {code} and {mpi_code}")
            print("  " + first_error(error) + "\n  " + first_error(mpi_error))
        elif code == 0:
            same += 1
        else:
            rejected += 1
    print(f"values: {same} programs have the same, {rejected} the same error, {failed} differ, "
          f"{slow} took too long")
    return same, failed


def children_of(pid):
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as stat:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(name))
    return sorted(found)


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def end_of(running, ranks):
    """Waits for mpirun. Returns its errors, whether it had to be killed when no process was left, and whether some were."""
    end = time.time() + LIMIT_SECONDS
    chunks = []
    drain = threading.Thread(target=lambda: chunks.append(running.communicate()))
    drain.start()
    alone_since = None
    hung = late = False
    while drain.is_alive():
        drain.join(0.1)
        if any(is_running(pid) for pid in ranks):
            alone_since = None
        elif alone_since is None:
            alone_since = time.time()
        hung = hung or (drain.is_alive() and alone_since is not None and time.time() - alone_since > ALONE_SECONDS)
        late = late or (drain.is_alive() and not hung and time.time() > end)
        if drain.is_alive() and (hung or late):
            for pid in children_of(running.pid):
                os.kill(pid, signal.SIGKILL)
            running.kill()
    return chunks[0][1], hung, late


def check_kills(options, folder):
    choice = random.Random(options.seed)
    path = os.path.join(folder, "loop.hlo")
    with open(path, "w") as stream:
        stream.write(LOOP)
    processes = min(options.processes, 4)
    good = failed = mpirun_hung = 0
    longest = 0.0
    for number in range(options.kills):
        running = subprocess.Popen(mpirun(processes, quiet=False) + [options.hlo_run, path, "--mpi", "--seed=1", "--no-progress"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        ranks = []
        while len(ranks) < processes and running.poll() is None:
            ranks = children_of(running.pid)
            time.sleep(0.01)
        time.sleep(choice.random() * 1.2)
        victim = choice.randrange(processes)
        began = time.time()
        if victim < len(ranks):
            try:
                os.kill(ranks[victim], signal.SIGKILL)
            except ProcessLookupError:
                pass
        error, hung, late = end_of(running, ranks)
        took = time.time() - began
        longest = max(longest, took)
        text = error.decode(errors="replace")
        left = [pid for pid in ranks if is_running(pid)]
        for _ in range(20):  # a process may still be ending
            if left:
                time.sleep(0.1)
                left = [pid for pid in left if is_running(pid)]
        # What mpirun itself says of a process that died before it met the others, in two forms.
        says = ("has ended unexpectedly" in text or "signal 9" in text or "non-zero exit code" in text)
        if running.returncode != 0 and says and not left and not late:
            good += 1
            mpirun_hung += hung
        else:
            failed += 1
            print(f"FAILED kill {number} of process {victim}: exit code {running.returncode} after {took:.1f} s, "
                  f"{len(left)} processes left: {text}", flush=True)
    print(f"kills: {good} of {options.kills} ended with an error, the longest after {longest:.1f} s; of these mpirun "
          f"hung without a process {mpirun_hung} times")
    return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hlo_run")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--devices", type=int, default=8)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("paths", nargs="*")
    options = parser.parse_intermixed_args()
    if shutil.which("mpirun") is None or not os.path.exists(
            os.path.join(os.path.dirname(os.path.abspath(options.hlo_run)), "../lib/hlokit/libhlokit_mpi.so")):
        print("built without MPI: 0 passed, 0 failed")
        return 0
    same, failed = check_values(options) if options.paths else (1, 0)
    if options.kills:
        with tempfile.TemporaryDirectory() as folder:
            failed += check_kills(options, folder)
    if same == 0:
        print("no program has values")
    return 1 if failed or same == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
