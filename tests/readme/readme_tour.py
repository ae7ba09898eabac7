# SPDX-License-Identifier: Apache-2.0
"""Runs the commands shown in pages and compares their output with the text.

  readme_tour.py [--update] SOURCE_DIR BIN_DIR PAGE...

A command is a line that is indented by four and begins with `$ `; the indented lines below it are its output on both
streams. No lines: any output. A line `...`: any number of lines. A command that ends in `\\` continues in the next
line. `$ cat FILE` of a file that does not exist creates it with these lines. A command fails if and only if an error is
part of its output. The commands of a page run in one fresh directory in which `examples` is that of the source.
--update rewrites the output of commands where a page shows all of it and it differs.

Code in a block that is fenced as `cpp` or `cmake` must be part of a file in `examples`.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile


def tour(text):
    """Pairs of a command and the lines below it."""
    commands = []
    shown = False
    for line in text.split("\n"):
        if shown and not commands[-1][1] and commands[-1][0].endswith("\\"):
            commands[-1][0] = commands[-1][0][:-1] + line.strip()
        elif line.startswith("    $ "):
            commands.append([line[6:], []])
            shown = True
        elif line and not line.startswith("    "):
            shown = False
        elif shown:
            commands[-1][1].append(line[4:])
    for _, lines in commands:
        while lines and not lines[-1]:
            lines.pop()
    return commands


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


def run_page(page, source, environment, update):
    """Number of commands of the page, and number of failures."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    commands = tour(text)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(source, "examples"), os.path.join(folder, "examples"))
        for command, wanted in commands:
            made = re.fullmatch(r"cat (\S+)", command)
            if made and not os.path.exists(os.path.join(folder, made[1])):
                with open(os.path.join(folder, made[1]), "w", encoding="utf-8") as file:
                    file.write("\n".join(wanted) + "\n")
                continue
            run = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=False, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
            problem = ""
            if (run.returncode != 0) != any(": error: " in line for line in wanted):
                problem = f"exit code {run.returncode}"
            elif wanted and not matches(run.stdout.rstrip("\n").split("\n"), wanted):
                problem = "it prints something else"
                if update and "..." not in [line.strip() for line in wanted] and text.count(indented(wanted)) == 1:
                    text = text.replace(indented(wanted), indented(run.stdout.rstrip("\n").split("\n")))
                    problem = ""
            if problem:
                failed += 1
                print(f"FAILED: {os.path.relpath(page, source)}: $ {command}\n{problem}:\n{run.stdout[:6000]}")
    if update:
        with open(page, "w", encoding="utf-8") as file:
            file.write(text)
    return len(commands), failed


def unknown_code(page, sources):
    """Code of the page that no example file contains."""
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"^```(?:cpp|cmake)\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)
    return [block for block in blocks if not any(block in text for text in sources)]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--update"]
    source, bin_folder = os.path.abspath(arguments[0]), os.path.abspath(arguments[1])
    sources = []
    for path in glob.glob(os.path.join(source, "examples", "*", "*")):
        with open(path, encoding="utf-8") as file:
            sources.append(file.read())
    environment = dict(os.environ, PATH=bin_folder + os.pathsep + os.environ["PATH"])
    total = bad = 0
    for page in map(os.path.abspath, arguments[2:]):
        commands, failed = run_page(page, source, environment, len(arguments) + 1 < len(sys.argv))
        if commands < 3:
            print(f"FAILED: {page} shows {commands} commands")
            failed += 1
        for block in unknown_code(page, sources):
            print(f"FAILED: {page}: this code is in no file of the examples:\n{block}")
            failed += 1
        total += commands
        bad += failed
    print(f"{total} commands of {len(arguments) - 2} pages, {bad} failed")
    return 1 if bad or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
