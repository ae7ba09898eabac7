#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/promises.md: each promise has tests, and these exist. Also what the pages that promise say of the tree.

  promises.py BUILD_DIR

A test is `ctest NAME`, `step NAME`, `Suite.Test` of GoogleTest, or a file. Paths in README, SECURITY, CONTRIBUTING and
architecture.md exist; README names the presets, architecture.md the libraries whose packages the build group of
tools/install-deps installs. Exits with 1 and what is wrong.
"""

import json
import pathlib
import re
import sys

import folders

TOP = pathlib.Path(__file__).resolve().parents[2]
PAGES = ("README.md", "SECURITY.md", "CONTRIBUTING.md", "docs/architecture.md")
ROOTS = (*folders.ALL, "docs")
# Made by a build, or where a reader puts something.
NOT_THERE = ("tools/web/report/src", "examples/embed/build")
# Packages of the build group by the name of the library in architecture.md; None: programs, not libraries.
PACKAGES = {
    "g++": None, "cmake": None, "ninja-build": None, "protobuf-compiler": None, "protobuf-compiler-grpc": None,
    "libabsl-dev": "Abseil", "libre2-dev": "RE2", "libcli11-dev": "CLI11", "libxxhash-dev": "xxHash",
    "nlohmann-json3-dev": "nlohmann-json", "zlib1g-dev": "zlib", "libprotobuf-dev": "protobuf", "libgrpc++-dev": "gRPC",
    "libcurl4-openssl-dev": "libcurl", "libssl-dev": "OpenSSL", "libhiredis-dev": "hiredis",
    "libpugixml-dev": "pugixml",
    "libopenmpi-dev": "Open MPI", "openmpi-bin": None, "libdnnl-dev": "oneDNN", "llvm-19-dev": "LLVM",
}


def ctests(build: pathlib.Path) -> set[str]:
    # Also those that this machine lacks a program for.
    names = set(re.findall(r"add_test\(NAME (\w+)", (TOP / "tests/CMakeLists.txt").read_text()))
    for path in [build / "CTestTestfile.cmake", *build.glob("*/CTestTestfile.cmake")]:
        if path.exists():
            names.update(re.findall(r"^add_test\((?:\[=\[)?([^\]\s\"]+)", path.read_text(), re.MULTILINE))
    return names


def unit_tests() -> set[str]:
    names = set()
    for path in (TOP / "tests").rglob("*_test.cc"):
        names.update(".".join(test) for test in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", path.read_text(), re.MULTILINE))
    return names


def promises(build: pathlib.Path):
    """What is wrong in docs/promises.md."""
    steps = {line.split("\t")[0] for line in (TOP / "tests/check/steps.tsv").read_text().splitlines()
             if line and not line.startswith("#")}
    known = {"ctest": ctests(build), "step": steps}
    unit = unit_tests()
    for number, line in enumerate((TOP / "docs/promises.md").read_text().splitlines(), 1):
        columns = [column.strip() for column in line.strip("|").split(" | ")]
        if not line.startswith("|") or columns[0] == "promise" or set(line) <= set("|-"):
            continue
        tests = re.findall(r"`([^`]+)`", columns[-1])
        if len(columns) != 2 or not tests:
            yield f"docs/promises.md:{number}: a promise without a test"
        for test in tests:
            kind, _, name = test.partition(" ")
            if kind in known and name:
                exists = name in known[kind]
            else:
                exists = test in unit or (TOP / test).exists()
            if not exists:
                yield f"docs/promises.md:{number}: there is no test `{test}`"


def paths():
    """Paths of the tree that the pages name and that are not there."""
    for page in PAGES:
        for number, line in enumerate((TOP / page).read_text().splitlines(), 1):
            for span in re.findall(r"`([^`]+)`", line):
                path = span.rstrip("/")
                # Patterns and examples, such as ROOM/**/foo.cc.
                if (path.split("/")[0] not in ROOTS or "/" not in path or re.search(r"foo|[A-Z]{3}|[ …<>$]", path)
                        or path in NOT_THERE):
                    continue
                if not any(TOP.glob(path)):
                    yield f"{page}:{number}: there is no `{span}`"


def lists():
    """Lists that must be complete."""
    readme, architecture = (TOP / "README.md").read_text(), (TOP / "docs/architecture.md").read_text()
    for preset in json.loads((TOP / "CMakePresets.json").read_text())["configurePresets"]:
        if not preset.get("hidden") and f"`{preset['name']}`" not in readme:
            yield f"README.md: the preset {preset['name']} is not named"
    table = architecture[architecture.index("## Dependencies"):architecture.index("## Where a new file goes")]
    groups = dict(re.findall(r"^  \[(\w+)\]=\"([^\"]*)\"", (TOP / "tools/install-deps").read_text().split("packages=(")[1],
                             re.MULTILINE))
    for group in ("build", "mpi", "engine"):
        for package in groups[group].split():
            if package not in PACKAGES:
                yield f"tests/check/promises.py: PACKAGES has no row for {package}"
            elif PACKAGES[package] is not None and not re.search(rf"^\|[^|]*{re.escape(PACKAGES[package])}\b", table, re.MULTILINE):
                yield f"docs/architecture.md: the table of dependencies lacks {PACKAGES[package]} ({package})"


def main() -> int:
    found = [*promises(pathlib.Path(sys.argv[1])), *paths(), *lists()]
    for line in found:
        print(line, file=sys.stderr)
    print(f"{len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
