#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/jax_suite.md or docs/torch_xla_suite.md from the results that the runner has kept, and, where
the page has a place for it, the list of files that were not run to their end.

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
FILES = ("<!-- by file -->\n", "<!-- end of files -->\n")
FAILURES = ("<!-- failures -->\n", "<!-- end of failures -->\n")
NOT_RUN = ("<!-- not run -->\n", "<!-- end of what was not run -->\n")
COLUMNS = ("run", "passed", "fault", "skipped here only", "skipped", "fails on both")
HEADER = ("| file | devices | tests | pass | fail here only | skipped here only | skipped on both | fail on both |\n"
          "|---|---|---|---|---|---|---|---|\n")


def compared(kept):
    """What was run of each file, its number of devices, and the names of those that were not run to their end."""
    comparison, devices, not_run = suite.Comparison(f"{kept.name}_failures.tsv"), {}, []
    hlokit, cpu = kept.backends()
    for group in kept.groups(None):
        here = suite.read(kept.record(hlokit(group.devices), group))
        if not (here.done or here.complete):
            not_run.append(group.name)
            continue
        here.take_passed(suite.read(kept.record(hlokit(group.devices), suite.once_more(group))))
        comparison.add(group.name, here, suite.read(kept.record(cpu(group.devices), group)), suffix=group.suffix)
        devices[group.name] = group.devices
    return comparison, devices, not_run


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
    comparison, devices, not_run = compared(kind(options))
    page = DOCS / f"{kind.name}.md"
    text = page.read_text()
    parts = {FILES: HEADER + "".join(file_rows(comparison, devices)),
             FAILURES: "| tests | why | which |\n|---|---|---|\n" + "".join(failure_rows(comparison)),
             NOT_RUN: f"{len(not_run)}: " + ", ".join(sorted(not_run)) + ".\n"}
    for (begin, end), part in parts.items():
        if begin in text:
            before, rest = text.split(begin)
            text = before + begin + part + end + rest.split(end)[1]
    page.write_text(text)
    total = comparison.total("passed") + len(comparison.faults) + len(comparison.skipped_here)
    print(f"{comparison.ratio():.2f} % of {total}")


if __name__ == "__main__":
    main()
