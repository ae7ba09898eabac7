#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a suite of recorded programs and compares the passing tests with its baseline.

  suites.py corpus|conformance|stablehlo|torch DIR [--quick] [--engine=fast] [--bin=build/release/bin] [--logs=build/check]

DIR contains corpus/, conformance/ and tools/. Each line of tests/SUITE_baseline.txt is a test: the minimum that must
pass. A baseline only ever rises. The failing cases of conformance, as HLO and as StableHLO, must be those that
tests/conformance_exceptions.txt explains. --quick leaves out the larger suites of stablehlo; --engine is that of conformance. Ends with `N passed, N
failed`.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent


def run(*command, python=sys.executable):
    """The output of a command; its exit status is ignored, since some cases are known to fail."""
    done = subprocess.run([python, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    print(done.stdout, end="")
    return done.stdout


def floor(name):
    """The rows of a baseline file, split."""
    lines = (TESTS / name).read_text().splitlines()
    return [line.split() for line in lines if re.match("[a-z]", line)]


class Counts:
    def __init__(self):
        self.passed = self.failed = 0

    def at_least(self, what, found, minimum):
        reached = int(found) if found else 0
        if reached >= int(minimum):
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what} has {reached} right, must have {minimum}")


def first(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return found and found[1]


def corpus(options, counts):
    text = run(options.folder / "tools/corpus.py", options.bin / "hlo-opt", "--fails", options.logs / "corpus-fails.tsv")
    for suite, kind, minimum in floor("corpus_baseline.txt"):
        counts.at_least(f"{suite}: {kind}", first(rf"^{suite}: (?:.*, )?{kind} (\d+)/", text), minimum)


def explained_cases():
    return {line.split(":")[0] for line in (TESTS / "conformance_exceptions.txt").read_text().splitlines()
            if re.match("[a-z]", line)}


def conformance(options, counts):
    fails = options.logs / f"conformance-{options.engine}-fails.tsv"
    fails.unlink(missing_ok=True)
    text = run(options.folder / "tools/conformance.py", options.bin / "hlo-run", "--fails", fails,
               f"--extra=--engine={options.engine}")
    for suite, minimum in floor("conformance_baseline.txt"):
        counts.at_least(suite, first(rf"^{suite}: (\d+) of ", text), minimum)
    failing = {line.split("\t")[0] for line in fails.read_text().splitlines()} if fails.exists() else set()
    explained = explained_cases()
    for case in sorted(failing - explained):
        print(f"FAILED: {case} is wrong, and tests/conformance_exceptions.txt does not say why")
    for case in sorted(explained - failing):
        print(f"FAILED: {case} is right, but tests/conformance_exceptions.txt names it")
    if failing == explained:
        counts.passed += 1
    else:
        counts.failed += 1


def stablehlo(options, counts):
    tools, cases = options.folder / "tools", options.folder / "conformance"
    fails = options.logs / "stablehlo-fails.tsv"
    fails.unlink(missing_ok=True)
    only = run(tools / "conformance.py", options.bin / "hlo-run", "--suite", "stablehlo-mlir-only")
    artifacts = run(TESTS / "programs/portable_artifacts.py", options.bin, cases / "stablehlo-bytecode")
    reached = {"values-only": first(r"^stablehlo-mlir-only: (\d+) of ", only),
               "artifacts": first(r"^(\d+) passed", artifacts)}
    if not options.quick:
        values = run(tools / "conformance.py", options.bin / "hlo-run", "--suite", "stablehlo-mlir", "--fails", fails)
        texts = run(tools / "stablehlo_text.py", f"{options.bin / 'hlo-translate'} --to=stablehlo {{}}", "--messages")
        reached |= {"values": first(r"^stablehlo-mlir: (\d+) of ", values),
                    "valid": first(r"^valid: (\d+) of ", texts), "invalid": first(r"^invalid: (\d+) of ", texts)}
        # The same cases fail as in HLO text.
        failing = {line.split("\t")[0].replace("stablehlo-mlir/", "stablehlo/") for line in fails.read_text().splitlines()}
        for case in sorted(failing - explained_cases()):
            counts.failed += 1
            print(f"FAILED: {case} is wrong as StableHLO, and tests/conformance_exceptions.txt does not say why")
    for suite, minimum in floor("stablehlo_baseline.txt"):
        if suite in reached:
            counts.at_least(suite, reached[suite], minimum)


def torch(options, counts):
    recorded, tools = options.folder / "conformance/torch", TESTS.parent / "tools"
    binary = f"--bin={options.bin / 'ir-dump'}"
    ops = run(tools / "torch_ops.py", recorded / "ops", "--failures", binary)
    reached = {
        "ops": sum(map(int, re.findall(r"^all .*?(\d+) of \d+$", ops, re.MULTILINE))),
        "models": first(r"^(\d+) of \d+ models$", run(tools / "torch_models.py", recorded / "models", binary)),
    }
    # hlokit.torch, by the Python that it is built for.
    python = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable
    package = f"--python={options.bin.parent / 'python'}"
    traces = run(tools / "torch_traces.py", recorded / "traces", package, python=python)
    reached["traces"] = first(r"^(\d+) of \d+ traces$", traces)
    for suite, minimum in floor("torch_baseline.txt"):
        if suite == "traces" and "the traces are left out" in traces:
            continue
        counts.at_least(suite, reached[suite], minimum)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=("corpus", "conformance", "stablehlo", "torch"))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--engine", default="exact")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--logs", type=pathlib.Path, default=pathlib.Path("build/check"))
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    counts = Counts()
    {"corpus": corpus, "conformance": conformance, "stablehlo": stablehlo, "torch": torch}[options.suite](options, counts)
    print(f"{counts.passed} passed, {counts.failed} failed")
    return 1 if counts.failed else 0


if __name__ == "__main__":
    sys.exit(main())
