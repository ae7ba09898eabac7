#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of .clang-tidy on sources, each alone.

  tidy.py [--sample=N] [--seed=K] BUILD_DIR [FILE...]

Reads the include directories from BUILD_DIR/compile_commands.json. Without FILE: N sources of the project (default: all).
Ends with `N passed, N failed`. Exit code 77, with the reason as the last line: clang-tidy 19 is not installed.
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import shutil
import subprocess
import sys

import includes

TOP = pathlib.Path(__file__).resolve().parents[2]
ROOMS = includes.ROOMS
SKIPPED = 77
# Of releases other than Debian 12's: checks differ.
PROGRAM = "clang-tidy-19"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--sample", type=int, default=0, help="how many files; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if shutil.which(PROGRAM) is None:
        print(f"skipped: {PROGRAM} is not installed (tools/install-deps tidy)")
        return SKIPPED
    files = options.files or sorted(str(path.relative_to(TOP)) for room in ROOMS for path in (TOP / room).rglob("*.cc"))
    if options.sample:
        files = sorted(random.Random(options.seed).sample(files, min(options.sample, len(files))))
    _, flags = includes.settings(options.build)
    # Each build target has its own definitions: those of the tools and modules are not for all files.
    flags = [flag for flag in flags if not flag.startswith(("-DHLOKIT_TOOL", "-Dmain"))]

    def check(file: str) -> str:
        command = [PROGRAM, "--quiet", file, "--", "-xc++", *flags]
        done = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return done.stdout if done.returncode else ""

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, found in zip(files, pool.map(check, files)):
            if found:
                failed += 1
                print(f"{file}:\n{found}")
    print(f"{len(files) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
