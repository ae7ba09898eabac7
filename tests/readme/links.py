# SPDX-License-Identifier: Apache-2.0
"""Checks the targets of the documentation's links.

  links.py SOURCE_DIR

Relative links of all .md files lead to files, and to headings if they name one; files and directories of the repository
named in backticks exist, unless `foo` is part of the name: a placeholder.
"""

import glob
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "check"))
import folders  # noqa: E402

FOLDERS = (*folders.ALL, "docs")


def anchors(text):
    """The names under which links find the headings of a page."""
    names = set()
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).replace(" ", "-")
        while name in names:
            name += "-1"
        names.add(name)
    return names


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def problems(source, page):
    text = read(page)
    folder = os.path.dirname(page)
    # Code has no links: fenced, between backticks, and, after an empty line, indented.
    code = r"^```.*?^```$|`[^`\n]*`|(?<=\n\n)(?:    [^\n]*\n)+"
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(code, "", text, flags=re.MULTILINE | re.DOTALL)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        path = os.path.join(folder, path) if path else page
        if not os.path.exists(path):
            yield f"links to {target}, which does not exist"
        elif anchor and anchor not in anchors(read(path)):
            yield f"links to {target}, but there is no such heading"
    for name in re.findall(r"`((?:%s)/[a-z0-9_./*-]+)`" % "|".join(FOLDERS), text):
        if "foo" not in name and not glob.glob(os.path.join(source, name)):
            yield f"names {name}, which does not exist"


def main():
    source = os.path.abspath(sys.argv[1])
    pages = glob.glob(os.path.join(source, "*.md")) + glob.glob(os.path.join(source, "*", "*.md"))
    pages += glob.glob(os.path.join(source, "docs", "*", "*.md"))
    pages = sorted(page for page in pages if not page.startswith(os.path.join(source, "build")))
    bad = 0
    for page in pages:
        for problem in problems(source, page):
            bad += 1
            print(f"{os.path.relpath(page, source)}: {problem}")
    print(f"{len(pages)} pages, {bad} problems")
    return 1 if bad or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
