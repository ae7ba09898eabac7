#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/jax_suite.md from the results that jax_suite.py has kept.

  jax_suite_page.py RESULTS [TESTS]   RESULTS: its --results; TESTS: its --tests
"""
import argparse
import collections
import pathlib

import environment as environments
import jax_suite

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/jax_suite.md"
MARKS = ("<!-- by file -->\n", "<!-- end of files -->\n", "<!-- failures -->\n", "<!-- end of failures -->\n")
COLUMNS = ("run", "passed", "fault", "skipped here only", "skipped", "fails on both")
HEADER = ("| file | devices | tests | pass | fail here only | skipped here only | skipped on both | fail on both |\n"
          "|---|---|---|---|---|---|---|---|\n")


def compared(suite, hlokit, cpu):
    """What was run of each file, and its number of devices."""
    comparison, devices = jax_suite.Comparison(), {}
    for group in suite.groups(None):
        record = suite.record(hlokit(group.devices), group)
        if record.exists():
            comparison.add(group.name, jax_suite.read(record), jax_suite.read(suite.record(cpu(group.devices), group)))
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
    parser.add_argument("results")
    parser.add_argument("tests", nargs="?", default=environments.cache_folder() / "jax-source/tests", type=pathlib.Path)
    arguments = parser.parse_args()
    options = argparse.Namespace(results=arguments.results, tests=arguments.tests, build="", engine="exact", devices=0,
                                 files=None, shard=None)
    suite = jax_suite.Suite(options)
    comparison, devices = compared(suite, *jax_suite.backends(options))
    text = PAGE.read_text()
    tables = (HEADER + "".join(file_rows(comparison, devices)),
              "| tests | why | which |\n|---|---|---|\n" + "".join(failure_rows(comparison)))
    for table, begin, end in ((tables[0], MARKS[0], MARKS[1]), (tables[1], MARKS[2], MARKS[3])):
        before, rest = text.split(begin)
        text = before + begin + table + end + rest.split(end)[1]
    PAGE.write_text(text)
    print(f"{comparison.ratio():.2f} % of {comparison.total('passed') + len(comparison.faults) + len(comparison.skipped_here)}")


if __name__ == "__main__":
    main()
