#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the table of flags in docs/limits.md with what --help of each tool says.

  limits.py [--update] SOURCE BIN

A limit is a flag with `max` or `timeout` in its name, of a tool or of one of its commands; its row has the tools, the text
of the help and the default. --update writes the table. Also checks that the table of limits without a flag names files
that exist, that no other page has such a table, and that every tool that reads a file has --max-input-bytes. Exits with
1, and says what differs, otherwise.
"""

import argparse
import pathlib
import re
import subprocess
import sys

BEGIN, END = "<!-- flags of the tools -->\n", "<!-- end of the flags -->\n"
LIMIT = re.compile(r"--(.*-)?(max|timeout)(-.*)?$")
# They read no file: `ops` prints tables, texts come to the server from an editor, the others ask a running program.
READ_NOTHING = {"hlo-inspect ops", "hlo-lsp-server", "hlo-profile capture", "hlo-profile monitor"}


def help_of(words, bin_folder):
    return subprocess.run([bin_folder / words[0], *words[1:], "--help"], capture_output=True, text=True, check=True).stdout


def commands_of(text):
    section = re.search(r"^Commands:\n((?:  .*\n|\n)+)", text, re.M)
    return re.findall(r"^  (\S+)", section[1], re.M) if section else []


def flags_of(text):
    """Name and description of each flag."""
    flags = []
    for line in text.splitlines():
        begin = re.match(r" {2,8}(?:-\w, )?(--[\w-]+)\S*(?:, -\S+)*\s*(.*)$", line)
        if begin:
            flags.append([begin[1], begin[2]])
        elif flags and re.match(r" {12,}\S", line):
            flags[-1][1] += " " + line.strip()
        elif not line.strip() or not line.startswith(" "):
            flags.append(["", ""])
    return [(name, text.strip()) for name, text in flags if name]


def rows_of(bin_folder):
    """The rows of the table, and the commands without a limit on input."""
    rows, unlimited = {}, []
    for tool in sorted(path.name for path in bin_folder.iterdir() if re.match(r"(hlo|ir)-", path.name)):
        text = help_of([tool], bin_folder)
        commands = commands_of(text)
        for words in [[tool], *([tool, command] for command in commands)]:
            names = set()
            for name, description in flags_of(help_of(words, bin_folder)):
                names.add(name)
                if not LIMIT.match(name):
                    continue
                what, _, inside = description.partition(" (default: ") if " (default: " in description else (
                    re.sub(r" \((from|[\d.]+ to|requires)\b.*", "", description), "", "")
                default = re.split(r"[;)]", inside)[0] if inside else "none"
                tools = rows.setdefault((name, what, default), [])
                if tool not in tools:
                    tools.append(tool)
            reads = not commands or len(words) > 1
            if reads and "--max-input-bytes" not in names and " ".join(words) not in READ_NOTHING:
                unlimited.append(" ".join(words))
    table = ["| flag | tools | what | default |\n", "|---|---|---|---|\n"]
    for (name, what, default), tools in sorted(rows.items()):
        table.append(f"| `{name}` | {', '.join(f'`{tool}`' for tool in tools)} | {what} | {default} |\n")
    return table, unlimited


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--update", action="store_true")
    arguments = parser.parse_args()
    page = arguments.source / "docs/limits.md"
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    found, _, after = rest.partition(END)
    table, unlimited = rows_of(arguments.bin)
    errors = [f"{command} reads files, and has no --max-input-bytes" for command in unlimited]
    if arguments.update:
        page.write_text(before + BEGIN + "\n" + "".join(table) + "\n" + END + after)
    else:
        lines = [line for line in found.splitlines(keepends=True) if line.strip()]
        errors += [f"docs/limits.md lacks: {line.strip()}" for line in table if line not in lines]
        errors += [f"no tool has: {line.strip()}" for line in lines if line not in table]
    for name in re.findall(r"\| `([\w/]+\.(?:h|cc|js|py))`", text):
        if not (arguments.source / name).exists():
            errors.append(f"docs/limits.md names {name}, which is not there")
    for other in [*arguments.source.glob("*.md"), *arguments.source.glob("docs/**/*.md")]:
        if other != page and re.search(r"^\|[^|]*\blimit\b[^|]*\|[^|]*\bflag\b[^|]*\|", other.read_text(), re.M):
            errors.append(f"{other.relative_to(arguments.source)} has a table of limits and flags: they are in docs/limits.md")
    print("\n".join(errors) if errors else f"{len(table) - 2} rows of flags")
    return 1 if errors or len(table) < 12 else 0


if __name__ == "__main__":
    sys.exit(main())
