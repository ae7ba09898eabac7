# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of hlokit.torch with the PyTorch that is installed: programs, models, and calls of its table of ops.

    PYTHONPATH=build/release/python VENV/bin/python tests/frameworks/torch_programs.py [--calls=N]

Each test of tests/python/test_torch*.py, each model of torch_models.py and the first calls of each op of torch.testing's
op_db (torch_op_calls.py) counts as one. What is skipped or left out is printed with the reason; a call that raises here and
not on the CPU is a failure unless torch_programs.tsv has a row for it; a wrong value always is, and so is a row whose calls
all work.
"""

import argparse
import pathlib
import re
import sys
import time
import warnings
from typing import Any, Dict, List, Tuple

import pytest
import torch

TESTS = pathlib.Path(__file__).resolve().parents[1] / "python"
sys.path.insert(0, str(TESTS))
import torch_models  # noqa: E402
import torch_op_calls  # noqa: E402


class Outcome:
    def __init__(self) -> None:
        self.passed = 0
        self.failed: List[Tuple[str, str]] = []

    def add(self, name: str, problem: str) -> None:
        if problem:
            self.failed.append((name, problem))
        else:
            self.passed += 1


class Reports:
    """A plugin of pytest: passes, failures, and skipped tests with their reasons."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.skipped:
            print(f"skipped {report.nodeid}: {report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr}")
        elif report.when == "call" or report.failed:
            self.outcome.add(report.nodeid, "".join(str(report.longrepr).splitlines()[-1:]) if report.failed else "")

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.outcome.add(report.nodeid, str(report.longrepr).splitlines()[-1])


def check_tests(outcome: Outcome) -> None:
    before = outcome.passed
    files = [str(path) for path in sorted(TESTS.glob("test_torch*.py"))]
    code = pytest.main(["-p", "no:cacheprovider", "-p", "no:terminal", *files], plugins=[Reports(outcome)])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED) or outcome.passed == before:
        outcome.add("test_torch*.py", f"pytest ends with {code!r}, {outcome.passed - before} tests pass")


def check_models(outcome: Outcome) -> None:
    import hlokit.torch as ht

    ht.configure(devices=1, pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0)
    names = torch_models.cases()
    for name in names:
        try:
            problem = torch_models.run(name).problem()
        except Exception as error:  # noqa: BLE001
            problem = f"{type(error).__name__}: {error}"
        outcome.add(f"model {name}", problem)
    if "resnet18" not in names:
        print("skipped models of torchvision: it is not installed")


def check_calls(outcome: Outcome, calls: int) -> None:
    lines = pathlib.Path(__file__).with_suffix(".tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    known = [row for row in rows if re.match(row[2], torch.__version__)]
    found = torch_op_calls.check("", calls)
    for reason, names in sorted(found.left_out.items()):
        print(f"left out, {reason}: {len(names)}: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}")
    raised: Dict[str, int] = {f"{row[0]}: {row[3]}": 0 for row in known}
    for name, error in found.failures:
        row = next((r for r in known if re.fullmatch(r[0], name.split(" ")[0]) and re.search(r[1], error)), None)
        if row is None or error.startswith("AssertionError"):
            outcome.add(name, error)
        else:
            raised[f"{row[0]}: {row[3]}"] += 1
    for text, count in raised.items():
        if count:
            print(f"raises, {count} calls: {text}")
        else:
            outcome.add(text, "its row in torch_programs.tsv is out of date: no call raises this")
    outcome.passed += found.recorded + found.on_cpu
    print(f"{found.recorded} calls recorded, {found.on_cpu} with an op on the CPU, {found.rejected} that torch rejects")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=3, help="most calls of each op")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    outcome, start = Outcome(), time.process_time()
    check_tests(outcome)
    check_models(outcome)
    check_calls(outcome, options.calls)
    for name, problem in outcome.failed:
        print(f"FAILED {name}: {' '.join(problem.split())[:300]}")
    print(f"torch {torch.__version__}, {time.process_time() - start:.0f} s of the processor")
    print(f"{outcome.passed} passed, {len(outcome.failed)} failed")
    return 1 if outcome.failed or outcome.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
