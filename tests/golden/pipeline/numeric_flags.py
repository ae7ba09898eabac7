#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the numeric flags in the help of the tools, and gives each values that it must reject.

numeric_flags.py TOOL...
"""
import re
import subprocess
import sys

BAD = ["abc", "", "1x", "0x10", "nan", "inf", "1e999", "-99999999999999999999", "99999999999999999999"]


def run(command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


def main():
    flags = 0
    for tool in sys.argv[1:]:
        text = run([tool, "--help"]).stdout
        commands = re.search(r"\nCommands:\n(.*?)\n\n", text, re.S)
        names = re.findall(r"^  (\w\S*)", commands.group(1), re.M) if commands else []
        for command in [[tool]] + [[tool, name] for name in names]:
            for flag, kind in re.findall(r"^ .*(--[a-z-]+)=(INT|NUMBER)\b", run(command + ["--help"]).stdout, re.M):
                flags += 1
                for value in BAD:
                    if kind == "NUMBER" and value.strip("-").isdigit():
                        continue
                    done = run(command + [f"{flag}={value}"])
                    message = done.stderr.split("\n")[0]
                    good = f"{flag}: expected a" in message and f"found `{value}`" in message and len(message) < 200
                    if done.returncode != 2 or not good:
                        sys.exit(f"{' '.join(command)} {flag}={value}: exit code {done.returncode}: {message}")
    if flags < 50:
        sys.exit(f"found only {flags} numeric flags")


if __name__ == "__main__":
    main()
