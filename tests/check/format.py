#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that clang-format changes no C++ source.

  format.py [--all]

A file that was right is not looked at again until it or .clang-format changes (build/check/formatted); --all looks at
every one. Ends with `N passed, N failed`. Exit code 77, with the reason as the last line: clang-format 14, which Debian 12
has, is not installed; other releases format otherwise.
"""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

import folders

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = folders.ALL
RELEASE = "14"
SKIPPED = 77


def program() -> str | None:
    for name in (f"clang-format-{RELEASE}", "clang-format"):
        try:
            version = subprocess.run([name, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        if (found := re.search(r"version (\d+)", version)) and found[1] == RELEASE:
            return name
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="also files that were right the last time")
    options = parser.parse_args()
    clang_format = program()
    if clang_format is None:
        print(f"skipped: clang-format {RELEASE} is not installed (tools/install-deps test)")
        return SKIPPED
    style = (TOP / ".clang-format").read_bytes()
    digests = {}
    for folder in FOLDERS:
        for path in sorted((TOP / folder).rglob("*")):
            if path.suffix in (".cc", ".h") and "node_modules" not in path.parts:
                digests[str(path.relative_to(TOP))] = hashlib.sha256(style + path.read_bytes()).hexdigest()
    memory = TOP / "build/check/formatted"
    known = set(memory.read_text().split()) if memory.exists() and not options.all else set()
    files = [file for file, digest in digests.items() if digest not in known]

    def check(batch: list[str]) -> set[str]:
        command = [clang_format, "--dry-run", "-Werror", *batch]
        found = subprocess.run(command, cwd=TOP, stderr=subprocess.PIPE, text=True, check=False).stderr
        return set(re.findall(r"^([^:\n]+):\d+:\d+: error:", found, re.MULTILINE))

    wrong = set()
    batches = [files[k:k + 50] for k in range(0, len(files), 50)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(check, batches):
            wrong |= found
    for file in sorted(wrong):
        print(f"{file}: run {clang_format} -i {file}")
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text("".join(f"{digest}\n" for file, digest in sorted(digests.items()) if file not in wrong))
    print(f"{len(digests) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
