# SPDX-License-Identifier: Apache-2.0
"""Runs the commands shown in pages and compares their output with the text.

  readme_tour.py [--update] SOURCE_DIR BIN_DIR PAGE...

A command is a line that is indented by four and begins with `$ `; the indented lines below it are its output on both
streams. No lines: any output, but none if the text goes on with "No output" or "prints nothing". A line `...`: any
number of lines. A command that ends in `\\` continues in the next line. `$ cat FILE` of a file that does not exist
creates it with these lines. A command fails if and only if an error is part of its output, unless it prints
its exit code. The commands of a page run
in one fresh directory in which `examples` is that of the source. `python3` is the Python that runs this, with the package of
the build. From a command that runs a program with it to its end, a page is left out where hlokit.torch cannot be imported,
which is said. --update rewrites the output of commands where a page
shows all of it and it differs.

Other blocks of code, indented or fenced, are rows of blocks.tsv beside this script, which says what becomes of each:

  run   the lines of the block run as a script, in a fresh directory in which the commands of the last column ran before
  read  the commands of the last column, which read the block from the file $BLOCK
  test  another test runs it, which the last column names
  text  it is no command: a format, an output, a part of a program
  skip  it cannot run in a test, for the reason in the last column

A block without a row, and a row without a block, is a failure. Code that is fenced as `cpp` or `cmake` needs none if it
is part of a file in `examples`.
"""

import functools
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

PROGRAM = re.compile(r"\bpython3 \S+\.py\b")
SILENT = re.compile(r"no output|prints nothing if", re.IGNORECASE)


class Command:
    """A command, the lines shown below it, and whether the text says that it prints nothing."""

    def __init__(self, text):
        self.text = text
        self.lines = []
        self.silent = False


def tour(text):
    """Commands of a page."""
    commands = []
    shown = False
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        if fenced:
            continue
        if shown and not commands[-1].lines and commands[-1].text.endswith("\\"):
            commands[-1].text = commands[-1].text[:-1] + line.strip()
        elif line.startswith("    $ "):
            commands.append(Command(line[6:]))
            shown = True
        elif line and not line.startswith("    "):
            if shown:
                commands[-1].silent = SILENT.match(line) is not None
            shown = False
        elif shown:
            commands[-1].lines.append(line[4:])
    for command in commands:
        while command.lines and not command.lines[-1]:
            command.lines.pop()
    return commands


def other_blocks(text):
    """Pairs of the kind and the lines of blocks of code that are not commands with `$ `."""
    blocks = []
    fence = None
    indented_block = None
    blank = True
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            indented_block = None
            if fence is None:
                fence = (line.strip()[3:], [], False)
            else:
                blocks.append(fence)
                fence = None
        elif fence is not None:
            fence[1].append(line)
        elif line.startswith("    ") and (blank or indented_block is not None):
            if indented_block is None:
                indented_block = ("", [], True)
                blocks.append(indented_block)
            indented_block[1].append(line[4:])
        elif line.strip():
            indented_block = None
        elif indented_block is not None:
            indented_block[1].append("")
        blank = not line.strip()
    return [(kind, lines) for kind, lines, tours in blocks if not tours or not any(l.startswith("$ ") for l in lines)]


def matches(printed, wanted):
    """Whether the lines match the expected ones, in which `...` matches any number."""
    parts = [[]]
    for line in wanted:
        if line.strip() == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    if len(parts) == 1:
        return printed == wanted
    first, last = parts[0], parts[-1]
    if len(printed) < len(first) + len(last) or printed[:len(first)] != first:
        return False
    end = len(printed) - len(last)
    if printed[end:] != last:
        return False
    at = len(first)
    for part in parts[1:-1]:
        places = [k for k in range(at, end - len(part) + 1) if printed[k:k + len(part)] == part]
        if not places:
            return False
        at = places[0] + len(part)
    return True


def indented(lines):
    return "".join(f"    {line}\n" for line in lines)


def execute(command, folder, environment):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=False, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")


def problem_of(command, run):
    """Why a command is not what its page shows; empty if it is."""
    fails = any(": error: " in line for line in command.lines) and 'echo "exit code $?"' not in command.text
    if (run.returncode != 0) != fails:
        return f"exit code {run.returncode}"
    if command.silent and run.stdout:
        return "it prints something, which the page denies"
    if command.lines and not matches(run.stdout.rstrip("\n").split("\n"), command.lines):
        return "it prints something else"
    return ""


@functools.cache
def missing_torch(path, python_path):
    """Why programs of hlokit.torch cannot run; empty if they can."""
    environment = dict(os.environ, PATH=path, PYTHONPATH=python_path)
    run = execute('python3 -c "import hlokit.torch"', None, environment)
    return run.stdout.rstrip("\n").split("\n")[-1] if run.returncode != 0 else ""


def run_page(page, source, environment, update):
    """Number of commands of the page, and number of failures."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    commands = tour(text)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(source, "examples"), os.path.join(folder, "examples"))
        for command in commands:
            made = re.fullmatch(r"cat (\S+)", command.text)
            if made and not os.path.exists(os.path.join(folder, made[1])):
                with open(os.path.join(folder, made[1]), "w", encoding="utf-8") as file:
                    file.write("\n".join(command.lines) + "\n")
                continue
            if PROGRAM.search(command.text):
                if missing := missing_torch(environment["PATH"], environment["PYTHONPATH"]):
                    print(f"SKIPPED: {os.path.relpath(page, source)} from $ {command.text}: {missing}")
                    break
            run = execute(command.text, folder, environment)
            problem = problem_of(command, run)
            shown = indented(command.lines)
            whole = "..." not in [line.strip() for line in command.lines]
            if update and problem == "it prints something else" and whole and text.count(shown) == 1:
                text = text.replace(shown, indented(run.stdout.rstrip("\n").split("\n")))
                problem = ""
            if problem:
                failed += 1
                print(f"FAILED: {os.path.relpath(page, source)}: $ {command.text}\n{problem}:\n{run.stdout[:6000]}")
    if update:
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)
    return len(commands), failed


class BlockTable:
    """The rows of blocks.tsv, by page and first line of the block."""

    def __init__(self, source):
        self.rows = {}
        self.used = set()
        self.errors = []
        with open(os.path.join(source, "tests", "readme", "blocks.tsv"), encoding="utf-8") as file:
            for line in file:
                if line.startswith("#") or not line.strip():
                    continue
                cells = line.rstrip("\n").split("\t")
                if len(cells) != 4 or cells[2] not in ("run", "read", "test", "text", "skip") or not cells[3].strip():
                    self.errors.append(f"blocks.tsv: expected PAGE, FIRST LINE, HOW, WHY, found: {line.rstrip()}")
                    continue
                self.rows[cells[0], cells[1]] = (cells[2], cells[3])
        known = ""
        lists = (("tests", "CMakeLists.txt"), ("tests", "package", "CMakeLists.txt"), ("tests", "check", "steps.tsv"))
        for path in lists:
            with open(os.path.join(source, *path), encoding="utf-8") as file:
                known += file.read()
        for (page, _), (how, why) in self.rows.items():
            if how == "test" and not re.search(rf"(NAME |^){re.escape(why)}\b", known, re.MULTILINE):
                self.errors.append(f"blocks.tsv: {page}: there is no test `{why}`")

    def unused(self, pages):
        return [f"blocks.tsv: {page} has no block that begins with: {first}" for page, first in self.rows
                if page in pages and (page, first) not in self.used]


def run_blocks(page, source, table, environment, sources):
    """Number of blocks of the page that ran, and number of failures."""
    name = os.path.relpath(page, source)
    with open(page, encoding="utf-8") as file:
        blocks = other_blocks(file.read())
    ran = failed = 0
    for kind, lines in blocks:
        code = "\n".join(lines).rstrip("\n") + "\n"
        if kind in ("cpp", "cmake") and any(code in text for text in sources):
            continue
        first = next((line for line in lines if line.strip()), "")
        row = table.rows.get((name, first))
        if row is None:
            failed += 1
            print(f"FAILED: {name}: this block is no command with `$ `, in no file of the examples, and has no row in "
                  f"tests/readme/blocks.tsv:\n{code}")
            continue
        table.used.add((name, first))
        if row[0] not in ("run", "read"):
            continue
        ran += 1
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(source, "examples"), os.path.join(folder, "examples"))
            script = f"set -e -o pipefail\n{row[1]}\n"
            if row[0] == "run":
                script += code
            else:
                with open(os.path.join(folder, "block"), "w", encoding="utf-8") as file:
                    file.write(code)
            run = execute(script, folder, dict(environment, BLOCK=os.path.join(folder, "block")))
        if run.returncode != 0:
            failed += 1
            print(f"FAILED: {name}: exit code {run.returncode} of:\n{code}{run.stdout[:6000]}")
    return ran, failed


def main():
    update = "--update" in sys.argv[1:]
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    source, bin_folder = os.path.abspath(arguments[0]), os.path.abspath(arguments[1])
    sources = []
    for path in glob.glob(os.path.join(source, "examples", "*", "*")):
        with open(path, encoding="utf-8") as file:
            sources.append(file.read())
    programs = tempfile.TemporaryDirectory()
    python = os.path.join(programs.name, "python3")
    with open(python, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
    os.chmod(python, 0o755)
    environment = dict(os.environ, PATH=os.pathsep.join([programs.name, bin_folder, os.environ["PATH"]]),
                       PYTHONPATH=os.path.join(os.path.dirname(bin_folder), "python"))
    table = BlockTable(source)
    pages = list(map(os.path.abspath, arguments[2:]))
    commands = blocks = bad = 0
    for page in pages:
        counts = [run_page(page, source, environment, update), run_blocks(page, source, table, environment, sources)]
        commands += counts[0][0]
        blocks += counts[1][0]
        bad += sum(failed for _, failed in counts)
    for error in table.errors + table.unused({os.path.relpath(page, source) for page in pages}):
        print(f"FAILED: {error}")
        bad += 1
    print(f"{commands} commands and {blocks} blocks of {len(pages)} pages, {bad} failed")
    return 1 if bad or commands == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
