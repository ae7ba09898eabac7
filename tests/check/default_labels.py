#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no switch over an enumeration has a `default:`, so that the compiler names the case that a new value needs.

  default_labels.py [SOURCE_DIR]

A switch is over an enumeration if one of its labels names a value, such as `Opcode::kAdd`, `kAdd` or `xla::Type::F32`;
labels that are numbers and characters do not. default_labels.tsv lists the switches that may have one, with the reason.
Exits with 1 and the offending lines, also for rows that are not needed.
"""

import pathlib
import re
import sys

import folders

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = (*folders.PROGRAMS, "tests", "bench")
DEFAULT = re.compile(r"( *)default:")
SWITCH = re.compile(r"( *).*\bswitch \((.*)\) \{$")
LABEL = re.compile(r"\bcase ((?:[^:']|::|'[^']*')+):")
NUMBER = re.compile(r"-?(0[xb])?[0-9a-fA-F']+[uUlL]*|'.*'")


def defaults(lines: list[str]):
    """Line number, condition and labels of each switch that has a `default:`. Relies on clang-format's indentation."""
    for number, line in enumerate(lines):
        match = DEFAULT.match(line)
        if match is None:
            continue
        for head in range(number - 1, -1, -1):
            switch = SWITCH.match(lines[head])
            if switch is not None and len(switch[1]) < len(match[1]):
                break
        else:
            continue
        end = next(k for k in range(number, len(lines)) if lines[k].startswith(switch[1] + "}"))
        labels = [label for row in lines[head:end] if len(row) - len(row.lstrip()) == len(match[1])
                  for label in LABEL.findall(row)]
        yield number + 1, switch[2], labels


def problems(source: pathlib.Path, table: pathlib.Path):
    allowed = {}
    for number, line in enumerate(table.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            file, condition, reason = line.split("\t")
            allowed[file, condition] = number
    used = set()
    for folder in FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix not in (".h", ".cc", ".def") or "node_modules" in path.parts:
                continue
            file = str(path.relative_to(source))
            for number, condition, labels in defaults(path.read_text().splitlines()):
                if all(NUMBER.fullmatch(label.strip()) for label in labels):
                    continue
                if (file, condition) in allowed:
                    used.add((file, condition))
                else:
                    yield f"{file}:{number}: `default:` in a switch over an enumeration: list the values, or use a table"
    for row, number in allowed.items():
        if row not in used:
            yield f"{table.name}:{number}: {row[0]} has no such switch: take the row out"


def main() -> int:
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TOP
    found = list(problems(source, source / "tests/check/default_labels.tsv"))
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
