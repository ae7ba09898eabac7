#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines under the address and undefined-behavior sanitizers: no access out of bounds or after free, no leak, and no
internal error of a pass.

usage: sanitized_pipelines.py HLO_OPT [--passes=PIPELINE]... [--seconds=N] [--seed=N] [--sample=DIR]... FILE|DIR...

HLO_OPT is built with the preset `asan`. Every .hlo file below FILE|DIR goes through each pipeline (default and tpu,
unless given); then files below the directories of --sample, shuffled by the seed, until the time is up. Rejected
modules are fine. Prints each failure with its report and the command to repeat it; exit code 1 if there is any. A
binary without sanitizers is rejected, since it would find nothing.
"""
import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import time

from hlo_files import files_of

FOUND = 86  # exit code of a program that a sanitizer stopped
DEFECT = 3  # of a tool that met a defect of its own
LONGEST = 600  # seconds for one run


def has_sanitizers(binary):
    """The report enabled by the address sanitizer's own option."""
    run = subprocess.run([binary, "--help"], capture_output=True, env=dict(os.environ, ASAN_OPTIONS="help=1"), check=False)
    return b"AddressSanitizer" in run.stdout + run.stderr


def failure(binary, passes, path):
    """None, or the error and its report."""
    command = [binary, "--split-input-file", "--allow-unknown", f"--passes={passes}", "--output=/dev/null", path]
    environment = dict(os.environ, ASAN_OPTIONS=f"exitcode={FOUND}", UBSAN_OPTIONS=f"exitcode={FOUND}:print_stacktrace=1")
    try:
        run = subprocess.run(command, capture_output=True, env=environment, timeout=LONGEST, check=False)
    except subprocess.TimeoutExpired:
        return f"{' '.join(command)}: no end within {LONGEST} s"
    if run.returncode >= 0 and run.returncode not in (FOUND, DEFECT):
        return None
    return f"{' '.join(command)}: exit code {run.returncode}\n{run.stderr.decode(errors='replace')[:8000]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hlo_opt")
    parser.add_argument("--passes", action="append")
    parser.add_argument("--seconds", type=float, default=180, help="for the files of --sample; those named are all run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", action="append", default=[])
    parser.add_argument("paths", nargs="*")
    arguments = parser.parse_intermixed_args()
    pipelines = arguments.passes or ["default", "tpu"]
    if not has_sanitizers(arguments.hlo_opt):
        print(f"{arguments.hlo_opt} is not built with the address sanitizer")
        return 1
    whole = list(files_of(arguments.paths))
    sample = list(files_of(arguments.sample))
    random.Random(arguments.seed).shuffle(sample)

    def check(path):
        return [found for passes in pipelines if (found := failure(arguments.hlo_opt, passes, path))]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        of_whole = list(pool.map(check, whole))
        until = time.monotonic() + arguments.seconds
        of_sample = list(pool.map(lambda path: check(path) if time.monotonic() < until else None, sample))
        of_sample = [found for found in of_sample if found is not None]
    failures = [text for found in of_whole + of_sample for text in found]
    for text in failures:
        print(text)
    count = len(of_whole) + len(of_sample)
    print(f"{len(whole)} files and {len(of_sample)} of {len(sample)} of the sample, {len(failures)} runs of {count * len(pipelines)} failed")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
