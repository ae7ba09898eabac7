#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the shared libraries that programs load at their start: libraries.py PROGRAM...

A tool loads at most 20, none of Abseil or gRPC: those, some seventy, cost a start 10 ms, and a program that has their
archives too would have two copies of one state.
"""

import pathlib
import re
import subprocess
import sys

LIMIT = 20


def main() -> int:
    failures = 0
    for name in sys.argv[1:]:
        listing = subprocess.run(["ldd", name], check=True, capture_output=True, text=True).stdout
        # Libraries that are found by name: neither the kernel's page nor the loader.
        libraries = re.findall(r"^\s*(\S+) =>", listing, re.MULTILINE)
        foreign = [library for library in libraries if re.match(r"lib(absl_|grpc|gpr)", library)]
        if foreign:
            print(f"{pathlib.Path(name).name} loads {', '.join(foreign)}")
        if len(libraries) > LIMIT:
            print(f"{pathlib.Path(name).name} loads {len(libraries)} shared libraries; {LIMIT} are allowed")
        failures += bool(foreign) or len(libraries) > LIMIT
    print(f"{len(sys.argv) - 1} programs, {failures} with too many libraries")
    return failures != 0 or len(sys.argv) < 2


if __name__ == "__main__":
    sys.exit(main())
