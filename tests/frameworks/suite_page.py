#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/jax_suite.md or docs/torch_xla_suite.md from the results that the runner has kept.

  suite_page.py jax|torch_xla RESULTS [TESTS]   RESULTS: the runner's --results; TESTS: its --tests
"""
import argparse
import collections
import pathlib

import jax_suite
import suite
import torch_xla_suite

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
KINDS = {"jax": jax_suite.JaxSuite, "torch_xla": torch_xla_suite.TorchXlaSuite}
MARKS = ("<!-- by file -->\n", "<!-- end of files -->\n", "<!-- failures -->\n", "<!-- end of failures -->\n")
COLUMNS = ("run", "passed", "fault", "skipped here only", "skipped", "fails on both")
HEADER = ("| file | devices | tests | pass | fail here only | skipped here only | skipped on both | fail on both |\n"
          "|---|---|---|---|---|---|---|---|\n")


def compared(kept):
    """What was run of each file, and its number of devices."""
    comparison, devices = suite.Comparison(f"{kept.name}_failures.tsv"), {}
    hlokit, cpu = kept.backends()
    for group in kept.groups(None):
        record = kept.record(hlokit(group.devices), group)
        if record.exists():
            comparison.add(group.name, suite.read(record), suite.read(kept.record(cpu(group.devices), group)),
                           suffix=group.suffix)
            devices[group.name] = group.devices
    return comparison, devices


def file_rows(comparison, devices):
    for name in sorted(comparison.counts):
        counts = comparison.counts[name]
        if counts["run"]:
            yield f"| {name} | {devices[name]} | " + " | ".join(str(counts[key]) for key in COLUMNS) + " |\n"
    yield "| all | | " + " | ".join(str(comparison.total(key)) for key in COLUMNS) + " |\n"


def failure_rows(comparison):
    """A row for each reason, with its tests."""
    by_reason = collections.defaultdict(list)
    for test in sorted({**comparison.faults, **comparison.skipped_here}):
        by_reason[comparison.reason(test) or "not explained"].append(test)
    for reason, tests in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"| {len(tests)} | {reason} | " + ", ".join(f"`{test.split('::', 1)[-1]}`" for test in tests) + " |\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("results")
    parser.add_argument("tests", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    kind = KINDS[arguments.kind]
    options = argparse.Namespace(results=arguments.results, tests=arguments.tests or kind.default_tests(), build="",
                                 engine="exact", devices=0, files=None, shard=None)
    comparison, devices = compared(kind(options))
    page = DOCS / f"{kind.name}.md"
    text = page.read_text()
    tables = (HEADER + "".join(file_rows(comparison, devices)),
              "| tests | why | which |\n|---|---|---|\n" + "".join(failure_rows(comparison)))
    for table, begin, end in ((tables[0], MARKS[0], MARKS[1]), (tables[1], MARKS[2], MARKS[3])):
        before, rest = text.split(begin)
        text = before + begin + table + end + rest.split(end)[1]
    page.write_text(text)
    total = comparison.total("passed") + len(comparison.faults) + len(comparison.skipped_here)
    print(f"{comparison.ratio():.2f} % of {total}")


if __name__ == "__main__":
    main()
