#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs recorded op calls through `ir-dump --test-case` and counts by family.

  tools/torch_ops.py FOLDER [--bin build/release/bin/ir-dump] [--only REGEX] [--section15] [--failures]

FOLDER holds files NAME.case and INDEX.tsv (columns name, op, family, ..., section15), or files FAMILY.cases with many
cases, each after a line `case: NAME`. Exit code 1 if a case fails or there is none.
"""
import argparse
import csv
import pathlib
import re
import subprocess
import sys
import tempfile


def indexed(folder):
    """(row, path) for each case of a folder with an index."""
    with open(folder / "INDEX.tsv", newline="") as index:
        return [(row, folder / (row["name"] + ".case")) for row in csv.DictReader(index, delimiter="\t")]


def split(folder, target):
    """The same for a folder of files FAMILY.cases, each case written to a file in `target`."""
    cases = []
    for path in sorted(folder.glob("*.cases")):
        for text in re.split(r"^case: ", path.read_text(), flags=re.MULTILINE)[1:]:
            name, _, body = text.partition("\n")
            target.joinpath(name + ".case").write_text(body)
            cases.append(({"name": name, "family": path.stem, "section15": "no"}, target / (name + ".case")))
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--bin", default="build/release/bin/ir-dump")
    parser.add_argument("--only", default="")
    parser.add_argument("--section15", action="store_true", help="only the cases so marked")
    parser.add_argument("--failures", action="store_true", help="print what fails and why")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as target:
        if (options.folder / "INDEX.tsv").exists():
            cases = indexed(options.folder)
        else:
            cases = split(options.folder, pathlib.Path(target))
        return replay([c for c in cases if re.search(options.only, c[0]["name"])], options)


def replay(cases, options):
    if options.section15:
        cases = [c for c in cases if c[0]["section15"] == "yes"]
    rows = [row for row, _ in cases]
    passed = set()
    died = []
    batch = 200
    for start in range(0, len(cases), batch):
        paths = [str(path) for _, path in cases[start : start + batch]]
        while paths:
            command = [options.bin, "--test-summary"] + [f"--test-case={p}" for p in paths]
            result = subprocess.run(command, capture_output=True, text=True)
            done = re.findall(r"^(PASS|FAIL) (.*)$", result.stdout, re.M)
            passed |= {pathlib.Path(p).stem for verdict, p in done if verdict == "PASS"}
            if options.failures:
                sys.stdout.write(result.stderr)
            if result.returncode in (0, 1):
                break
            # A crash loses the output: run the cases one by one.
            for p in paths:
                one = subprocess.run([options.bin, f"--test-case={p}"], capture_output=True, text=True)
                if one.returncode == 0:
                    passed.add(pathlib.Path(p).stem)
                elif one.returncode != 1:
                    died.append((p, one.returncode))
                    if options.failures:
                        print(p, "exit code", one.returncode, one.stderr[-200:])
            break
    families = {}
    for r in rows:
        counts = families.setdefault((r["family"], r["section15"]), [0, 0])
        counts[1] += 1
        counts[0] += r["name"] in passed
    for (family, section), (ok, total) in sorted(families.items()):
        print(f"{family:24} {'section 15' if section == 'yes' else 'others':10} {ok:4} of {total}")
    for section in ("yes", "no"):
        chosen = [r for r in rows if r["section15"] == section]
        if chosen:
            ok = sum(r["name"] in passed for r in chosen)
            print(f"{'all':24} {'section 15' if section == 'yes' else 'others':10} {ok:4} of {len(chosen)}")
    if died:
        print(f"{len(died)} crashed")
    return 0 if rows and len(passed) == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
