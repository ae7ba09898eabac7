#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes between rooms follow rooms.tsv, that headers have the include guards of their paths,
and that files include headers before their code.

  rooms.py [SOURCE_DIR]

Each include from one room into another must be in the table. A room includes rooms above it, so there are no cycles of
includes; for sources, not headers, that call back, the third column has the exceptions. Unused entries are errors too.
The guard of ir/core/status.h is HLOKIT_IR_CORE_STATUS_H_. Exits with 1 and the offending lines.
"""

import os
import pathlib
import re
import sys

import folders

TOP = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = folders.PROGRAMS
INCLUDE = re.compile(r'\s*#\s*include "((?:%s)/[^"]+)"' % "|".join(FOLDERS))
GUARDED = FOLDERS + ("tests", "bench")  # whose headers have guards
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1$", re.MULTILINE)
# Included several times in one file, or by the compiler's option.
UNGUARDED = ("interp/compiled/windows/window_kernels_isa.h", "tests/precompiled.h", "tools/precompiled.h")


class Table:
    def __init__(self, path: pathlib.Path):
        self.rooms: dict[str, tuple[set[str], set[str]]] = {}
        self.problems: list[str] = []
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            room, includes, calls = (line.split("\t") + ["-", "-"])[:3]
            names = [set(column.split()) - {"-"} for column in (includes, calls)]
            for name in names[0]:
                if not self.is_above(name, room):
                    self.problems.append(f"{path.name}:{number}: {name} does not stand above {room}")
            self.rooms[room] = (names[0], names[1])

    def is_above(self, name: str, room: str) -> bool:
        if name in FOLDERS and name != "tools":
            return FOLDERS.index(name) < FOLDERS.index(room.split("/")[0])
        return name in self.rooms

    def room_of(self, path: str) -> str | None:
        """The row of the closest directory above a file."""
        folder = os.path.dirname(path)
        while folder and folder not in self.rooms:
            folder = os.path.dirname(folder)
        return folder or None


def includes_of(source: pathlib.Path):
    """File, number and target of each include of one file of a room by another."""
    for folder in FOLDERS:
        for path in sorted((source / folder).rglob("*")):
            if path.suffix in (".h", ".cc", ".def") and "node_modules" not in path.parts:
                file = str(path.relative_to(source))
                for number, line in enumerate(path.read_text().splitlines(), 1):
                    if match := INCLUDE.match(line):
                        yield file, number, match[1]


def problems(source: pathlib.Path, table: Table):
    yield from table.problems
    used = set()
    lost = set()
    for file, number, target in includes_of(source):
        rooms = [table.room_of(path) for path in (file, target)]
        for path, room in zip((file, target), rooms):
            if room is None and path not in lost:
                lost.add(path)
                yield f"{path}: stands in no room; a new one needs a row in tests/check/rooms.tsv"
        here, there = rooms
        if here is None or there is None or here == there:
            continue
        # Rooms of other directories go by the name of the directory.
        name = there if here.split("/")[0] == there.split("/")[0] else there.split("/")[0]
        includes, calls = table.rooms[here]
        if name in includes:
            used.add((here, name, 0))
        elif name in calls and file.endswith(".cc"):
            used.add((here, name, 1))
        else:
            kind = "its headers may not include" if name in calls else "may not include"
            yield f'{file}:{number}: #include "{target}": {here} {kind} {name} (tests/check/rooms.tsv)'
    for room, columns in table.rooms.items():
        for i, names in enumerate(columns):
            for name in sorted(names):
                if (room, name, i) not in used:
                    yield f"rooms.tsv: {room} may include {name}, and does not: take it out"


def guard_problems(source: pathlib.Path):
    for folder in GUARDED:
        for path in sorted((source / folder).rglob("*.h")):
            file = str(path.relative_to(source))
            if "node_modules" in path.parts or file in UNGUARDED:
                continue
            guard = "HLOKIT_" + re.sub(r"[^A-Z0-9]", "_", file.upper()) + "_"
            match = GUARD.search(path.read_text())
            if match is None or match[1] != guard:
                yield f"{file}: the include guard must be {guard}"


def misplaced_includes(source: pathlib.Path):
    """Headers that a file includes within its code: they open their namespace there, and whether that compiles depends
    on what was included before, as by the other files of a group."""
    namespaces = {}
    for file, number, target in includes_of(source):
        if not target.endswith(".h") or target in UNGUARDED:
            continue
        if file not in namespaces:
            lines = (source / file).read_text().splitlines()
            begins = (k for k, line in enumerate(lines, 1) if line.startswith("namespace"))
            namespaces[file] = next(begins, len(lines) + 1)
        if number > namespaces[file]:
            yield f'{file}:{number}: #include "{target}": a header is included before the code'


def unknown_folders(source: pathlib.Path):
    """Folders with sources that the checks do not know: they would pass them over."""
    for path in sorted(source.iterdir()):
        is_source = path.is_dir() and path.name not in (*folders.ALL, "build") and not path.name.startswith(".")
        # Packages of npm and the parser that tree-sitter makes are not ours.
        others = {"node_modules", "tree_sitter"}
        if is_source and any(f.suffix in (".cc", ".h") and not others & set(f.parts) for f in path.rglob("*")):
            yield f"{path.name}: stands in no list of tests/check/folders.py"


def main() -> int:
    source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else TOP
    table = Table(source / "tests/check/rooms.tsv")
    found = [*problems(source, table), *guard_problems(source), *misplaced_includes(source), *unknown_folders(source)]
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(table.rooms)} rooms, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
