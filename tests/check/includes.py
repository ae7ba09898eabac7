#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles files individually, without the precompiled header that hides missing includes.

  includes.py [--sample=N] [--seed=K] BUILD_DIR

Reads the include directories from BUILD_DIR/compile_commands.json, and checks the syntax of N files of the project
(default: all), each alone, with the same compiler. Exits with 1 if a file does not compile.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import shlex
import subprocess
import sys

import folders

ROOMS = (*folders.ROOMS, "tools")


def settings(build: pathlib.Path) -> tuple[str, list[str]]:
    """The compiler and every include directory and definition that the build uses."""
    compiler, flags = "", {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        words = shlex.split(command["command"])
        compiler = next(word for word in words if "++" in os.path.basename(word))
        for i, word in enumerate(words):
            # The compiler's own headers find those of the C library behind them.
            if word == "-isystem" and words[i + 1] != "/usr/include":
                flags[f"-isystem{words[i + 1]}"] = None
            elif word.startswith(("-I", "-D", "-std=")):
                flags[word] = None
    return compiler, list(flags)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--sample", type=int, default=0, help="how many files; 0: all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    source = pathlib.Path(__file__).resolve().parents[2]
    files = sorted(str(path.relative_to(source)) for room in ROOMS for path in (source / room).rglob("*.cc"))
    if options.sample:
        files = sorted(random.Random(options.seed).sample(files, min(options.sample, len(files))))
    compiler, flags = settings(options.build)

    def check(file: str) -> str:
        run = subprocess.run([compiler, *flags, "-fsyntax-only", file], cwd=source, capture_output=True, text=True)
        return run.stderr if run.returncode else ""

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, errors in zip(files, pool.map(check, files)):
            if errors:
                failed += 1
                print(f"{file}:\n{errors}", file=sys.stderr)
    print(f"{len(files) - failed} of {len(files)} files compile by themselves")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
