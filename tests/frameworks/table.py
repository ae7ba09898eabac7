#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of docs/frameworks.md: which versions of which framework ran which program, with which result.

  table.py --write [BUILD_DIR]   writes it from what run.py recorded; rows of programs that were not run stay as they are
  table.py --check               exit code 1 if a program lacks its row or its step in tools/check, a row names other versions
                                 than the lock files, or a page names a release of a framework that no program ran with
"""
import pathlib
import re
import sys

import environment as environments
import run

PAGE = run.TOP / "docs/frameworks.md"
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"
# How pages call the packages whose releases the lock files have.
PACKAGES = {"JAX": "jax", "jaxlib": "jaxlib", "PyTorch": "torch", "torch": "torch", "torch_xla": "torch_xla", "PyTorch/XLA": "torch_xla",
            "NumPy": "numpy", "XProf": "xprof", "xprof": "xprof", "flax": "flax", "optax": "optax", "transformers": "transformers"}
# Releases of Debian 12, with which the tests of the Python package run in every check.
DEBIAN = {"numpy": ["1.24.2"], "torch": ["1.13.1"]}
HEADER = "| program | versions | passed | failed |\n|---|---|---|---|\n"


def page_rows():
    """The rows of the page by program."""
    text = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    rows = {}
    for line in text.splitlines()[2:]:
        program, versions, passed, failed = (cell.strip() for cell in line.strip("|").split("|"))
        rows[program.split(":")[0]] = (program, versions, passed, failed)
    return rows


def write(build):
    rows, lines = page_rows(), []
    known = environments.read_environments()
    for program in run.read_programs().values():
        outcome = run.recorded(program, build)
        versions = run.versions_text(known[program.environment])
        if outcome is not None:
            row = (f"{program.name}: {program.about}", versions, str(outcome.passed), str(outcome.failed))
        else:
            row = rows.get(program.name, (f"{program.name}: {program.about}", versions, "not run", "not run"))
        lines.append("| " + " | ".join(row) + " |\n")
    before, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(before + BEGIN + HEADER + "".join(lines) + END + rest.split(END)[1])


def claims():
    """Releases of frameworks that pages name and no program ran with."""
    known = {package: list(versions) for package, versions in DEBIAN.items()}
    for environment in environments.read_environments().values():
        for package in set(PACKAGES.values()):
            if version := environment.locked_version(package):
                known.setdefault(package, []).append(version)
    pattern = re.compile(r"(?<![\w/])(%s) (\d+(?:\.\d+)+|\d+(?= ))" % "|".join(map(re.escape, PACKAGES)))
    for page in sorted([run.TOP / "README.md", *(run.TOP / "docs").rglob("*.md")]):
        for name, version in pattern.findall(page.read_text()):
            if not any((had + ".").startswith(version + ".") for had in known.get(PACKAGES[name], [])):
                yield f"{page.relative_to(run.TOP)} names {name} {version}, with which no program of tests/frameworks ran"


def problems():
    steps = (run.TOP / "tests/check/steps.tsv").read_text()
    yield from claims()
    rows = page_rows()
    known = environments.read_environments()
    programs = run.read_programs()
    for program in programs.values():
        if not re.search(rf"tests/frameworks/run\.py '?{re.escape(program.name)}'?$", steps, re.MULTILINE):
            yield f"tests/check/steps.tsv has no step for `{program.name}`"
        if program.name not in rows:
            yield f"{PAGE.name} has no row for `{program.name}`"
            continue
        _, versions, passed, failed = rows[program.name]
        expected = run.versions_text(known[program.environment])
        if versions != expected:
            yield f"{PAGE.name} says that `{program.name}` ran with {versions}; the lock file has {expected}"
        if not re.fullmatch(r"\d+", passed) or not re.fullmatch(r"\d+", failed):
            yield f"{PAGE.name} has no result of `{program.name}`"
    for name in rows:
        if name not in programs:
            yield f"{PAGE.name} has a row for `{name}`, which is no program"


def main():
    if sys.argv[1:2] == ["--write"]:
        write(pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else run.DEFAULT_BUILD)
        return 0
    if sys.argv[1:] == ["--check"]:
        found = list(problems())
        for problem in found:
            print(problem)
        return 1 if found else 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
