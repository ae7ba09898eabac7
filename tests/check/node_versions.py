#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that Debian 12's Node.js runs all that the pages are built and tested with, by the locked packages' own words."""
import json
import pathlib
import re
import sys

NODE = 18
LOCK = pathlib.Path(__file__).resolve().parents[2] / "tools/web/package-lock.json"


def main():
    packages = json.loads(LOCK.read_text())["packages"]
    asked = {name: entry["engines"]["node"] for name, entry in packages.items() if "node" in entry.get("engines", {})}
    too_new = {name: range_ for name, range_ in asked.items()
               if not any(int(number) <= NODE for number in re.findall(r"(?:^|\|\|)\s*[>^~=]*\s*(\d+)", range_))}
    for name, range_ in sorted(too_new.items()):
        print(f"{name} {packages[name]['version']} needs Node.js {range_}, Debian 12 has {NODE}")
    print(f"{len(asked)} packages")
    return 1 if too_new or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
