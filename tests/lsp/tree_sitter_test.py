#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tree-sitter grammar: tree_sitter_test.py WORK [FILE_OR_FOLDER...]

In WORK, a copy of editors/tree-sitter-hlo: generates the parser, runs the tests of the grammar, checks the queries and
parses the modules (.hlo, and XLA's texts .default, .short and .canonical) of the folders, in which no node may be an error;
folders named `rejected` and files of several modules are left out. The program tree-sitter is in PATH or in the variable
TREE_SITTER, or comes from npm (tree-sitter-cli, whose installation fetches it from GitHub). Exits with 77, and says why,
without it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
SUFFIXES = (".hlo", ".default", ".short", ".canonical")
SKIPPED = 77


def find_program(work):
    """The program; None without one."""
    program = os.environ.get("TREE_SITTER") or shutil.which("tree-sitter")
    if program:
        return program
    local = work / "node_modules/.bin/tree-sitter"
    if not local.exists() and shutil.which("npm"):
        subprocess.run(["npm", "install", "--no-audit", "--no-fund"], cwd=work, capture_output=True, check=False, timeout=120)
    return str(local) if local.exists() and subprocess.run([local, "--version"], capture_output=True, check=False).returncode == 0 \
        else None


def modules(paths):
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in SUFFIXES and "rejected" not in file.parts and "// -----" not in file.read_text(errors="replace"):
                yield file


def main() -> int:
    work = pathlib.Path(sys.argv[1]).resolve()
    paths = [pathlib.Path(a).resolve() for a in sys.argv[2:]]
    work.mkdir(parents=True, exist_ok=True)
    shutil.copytree(TOP / "editors/tree-sitter-hlo", work, dirs_exist_ok=True, ignore=shutil.ignore_patterns("src", "node_modules"))
    program = find_program(work)
    if program is None:
        print("skipped: there is no tree-sitter, and npm cannot install it")
        return SKIPPED
    environment = {**os.environ, "XDG_CACHE_HOME": str(work / "cache"), "XDG_CONFIG_HOME": str(work / "config"), "NO_COLOR": "1"}

    def run(*arguments):
        return subprocess.run([program, *map(str, arguments)], cwd=work, env=environment, capture_output=True, text=True, check=False)

    failed = 0
    for step in (("generate", "--abi", "14"), ("test",)):
        done = run(*step)
        if done.returncode != 0:
            print(done.stdout + done.stderr)
            return 1
    example = TOP / "examples/train_step.hlo"
    for query in sorted((work / "queries").glob("*.scm")):
        done = run("query", query, example)
        captures = set(re.findall(r"capture: (?:\d+ - )?`?([\w.]+)`?", done.stdout))
        wanted = {"highlights": {"function.builtin", "variable", "type", "property"}, "folds": {"fold"},
                  "locals": {"local.scope", "local.definition", "local.reference"}}[query.stem]
        if done.returncode != 0 or not wanted <= captures:
            print(f"{query.name}: {sorted(wanted - captures)} {done.stderr[-500:]}")
            failed += 1
    files = list(modules(paths))
    (work / "paths").write_text("\n".join(map(str, files)) + "\n")
    done = run("parse", "--quiet", "--paths", work / "paths")
    for line in (done.stdout + done.stderr).splitlines():
        if "ERROR" in line or "MISSING" in line:
            print(" ".join(line.split()))
            failed += 1
    if done.returncode != 0 and failed == 0:
        print(done.stderr[-500:])
        failed += 1
    print(f"{len(files) + 3 - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
