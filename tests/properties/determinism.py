#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The output of hlo-opt depends only on its input: not on addresses, uninitialized memory or the seeds of hash tables.

usage: determinism.py HLO_OPT [--runs=N] [--passes=PIPELINE]... FILE|DIR...

Runs each pipeline (default, unless given) over each .hlo file N times, each time in a new process with another
environment, so that addresses, the seeds derived from them and fresh memory differ. Exit code 1 if any two runs differ.
"""
import argparse
import hashlib
import os
import subprocess
import sys

from hlo_files import files_of


def digest(binary, passes, path, run):
    environment = dict(os.environ, MALLOC_PERTURB_=str(run * 37 % 256), HLOKIT_PADDING="x" * (run * 1000))
    done = subprocess.run([binary, "--split-input-file", f"--passes={passes}", path], capture_output=True,
                          env=environment, check=False)
    return hashlib.sha256(b"%d\n" % done.returncode + done.stdout + b"\n" + done.stderr).hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hlo_opt")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--passes", action="append")
    parser.add_argument("paths", nargs="+")
    arguments = parser.parse_args()
    files = failed = 0
    for path in files_of(arguments.paths):
        files += 1
        for passes in arguments.passes or ["default"]:
            digests = {digest(arguments.hlo_opt, passes, path, run) for run in range(arguments.runs)}
            if len(digests) != 1:
                failed += 1
                print(f"{path}: --passes={passes} prints {len(digests)} different texts")
    print(f"{files} files, {failed} differ")
    return 0 if failed == 0 and files > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
