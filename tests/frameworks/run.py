#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program of programs.tsv with the framework that it needs.

  run.py PROGRAM [BUILD_DIR]

The program's outcome is kept in BUILD_DIR/frameworks, from which table.py makes the table of docs/frameworks.md. Exit
code 77: it cannot run on this machine, and the last line says why.
"""
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys

import environment as environments

TOP = pathlib.Path(__file__).resolve().parents[2]
DEFAULT_BUILD = TOP / "build/release"
SHOWN_FAILURES = 40


@dataclasses.dataclass
class Program:
    name: str
    environment: str
    needs: str
    about: str
    command: str


@dataclasses.dataclass
class Outcome:
    code: int
    passed: int
    failed: int
    output: str = ""

    def summary(self):
        return f"{self.passed} passed, {self.failed} failed" + ("" if self.code in (0, 1) else f", exit code {self.code}")

    def failures(self):
        """The lines of the output that name what failed, or its end."""
        lines = self.output.splitlines()
        named = [line for line in lines if re.match(r"\s*(FAIL|FAILED|ERROR)\b", line)]
        return (named or lines[-8:] if self.code != 0 else [])[:SHOWN_FAILURES]


def read_programs():
    rows = environments.rows(environments.FOLDER / "programs.tsv", 5)
    return {row[0]: Program(*row) for row in rows}


def versions_text(environment):
    names = [re.split(r"[=<>]", requirement)[0] for requirement in environment.requires]
    return ", ".join(f"{name} {environment.locked_version(name)}" for name in names)


def results_file(program, build):
    return build / "frameworks" / f"{program.name.replace(' ', '-')}.json"


def recorded(program, build=DEFAULT_BUILD):
    """The outcome of the last run, or None."""
    path = results_file(program, build)
    if not path.exists():
        return None
    values = json.loads(path.read_text())
    return Outcome(values["code"], values["passed"], values["failed"])


def execute(program, environment, python, build=DEFAULT_BUILD, keep=True):
    """Runs a program and copies its output; its last line `N passed, N failed` counts."""
    words = {"python": python, "bin": build / "bin", "build": build, "lib": build / "lib/hlokit"}
    command = program.command
    for word, value in words.items():
        command = command.replace("{" + word + "}", str(value))
    variables = dict(os.environ, PYTHONPATH=str(build / "python"), PYTHONDONTWRITEBYTECODE="1")
    process = subprocess.Popen(["sh", "-c", command], cwd=TOP, env=variables, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    lines = []
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        lines.append(line)
    code = process.wait()
    output = "".join(lines)
    counts = re.findall(r"^(\d+) passed, (\d+) failed", output, re.MULTILINE)
    # Without a count the program has not come to its end.
    passed, failed = map(int, counts[-1]) if counts else (0, 1)
    code = code or (1 if failed else 0)
    if keep and code != environments.SKIPPED:
        path = results_file(program, build)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"environment": environment.name, "versions": versions_text(environment),
                                    "code": code, "passed": passed, "failed": failed}, indent=1) + "\n")
    return Outcome(code, passed, failed, output)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    programs = read_programs()
    if sys.argv[1] not in programs:
        print(f"run.py: no program `{sys.argv[1]}`; there are {', '.join(programs)}", file=sys.stderr)
        return 2
    program = programs[sys.argv[1]]
    build = pathlib.Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else DEFAULT_BUILD
    if program.needs != "-" and not (build / program.needs).exists():
        print(f"skipped: no {program.needs} in {build}")
        return environments.SKIPPED
    try:
        environment, python = environments.ensure(program.environment)
    except environments.Unavailable as why:
        print(f"skipped: {why}")
        return environments.SKIPPED
    print(f"{program.about}: {versions_text(environment)}", flush=True)
    return execute(program, environment, python, build).code


if __name__ == "__main__":
    sys.exit(main())
