#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs JAX's own tests on the plugin, and on JAX's CPU backend those that do not pass, and compares test by test.

  jax_suite.py --tests=DIR --build=DIR [--results=DIR] [--engine=exact|fast] [--devices=N] [--files=GLOB]... [--shard=I/N]
               [--names=FILE] [--jobs=N] [--cpu=failed|all|none] [--table] [--again]

DIR of --tests is the folder `tests` of JAX's repository at the release that this Python has. Results are kept by test, so a
run that was ended goes on where it was; --again forgets those of the files. A file runs in a process of its own; a test
that ends the process or takes more than --seconds is a crash or a hang, and the others go on in a new one.

Tests that fail here and pass on the CPU must be in jax_suite_failures.tsv, with the reason. Exit code 1 if others do, or if
one of the table passes. The last line is `N passed, N failed`.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).resolve().parent
OUTCOMES = ("passed", "skipped", "failed", "crashed", "hung", "not collected")


@dataclasses.dataclass
class Result:
    outcome: str
    seconds: float = 0
    message: str = ""


@dataclasses.dataclass
class Backend:
    """Where tests run. `name` is that of its results."""

    name: str
    variables: dict


def rows(name, columns):
    for line in (FOLDER / name).read_text().splitlines():
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != columns:
                raise SystemExit(f"{name}: {len(fields)} columns where there should be {columns}: {line}")
            yield fields


def backends(options):
    """The plugin and JAX's CPU, with a number of devices each."""
    plugin = f"{options.build}/lib/hlokit/libhlokit_pjrt.so"

    def hlokit(devices):
        return Backend(f"hlokit-{options.engine}-{devices}", {
            "JAX_PLATFORMS": "hlokit", "PYTHONPATH": f"{options.build}/python", "HLOKIT_PJRT_PLUGIN": plugin,
            "HLOKIT_DEVICE": f"cpu:{devices}", "HLOKIT_ENGINE": options.engine, "HLOKIT_NUM_THREADS": "1",
            "JAX_SUITE_DEVICE_UNDER_TEST": "cpu"})

    def cpu(devices):
        return Backend(f"cpu-{devices}", {
            "JAX_PLATFORMS": "cpu", "PYTHONPATH": "", "JAX_NUM_CPU_DEVICES": str(devices), "JAX_SUITE_DEVICE_UNDER_TEST": "cpu"})

    return hlokit, cpu


class Suite:
    def __init__(self, options):
        self.options = options
        self.tests = pathlib.Path(options.tests).resolve()
        self.results = pathlib.Path(options.results).resolve()
        self.left_out = {pattern: reason for pattern, reason in rows("jax_suite_files.tsv", 2)}

    def files(self):
        """Names of the files with tests, relative to the folder, the longest first."""
        found = sorted(path.relative_to(self.tests).as_posix() for folder in (".", "pallas")
                       for path in (self.tests / folder).glob("*_test.py"))
        found = [name for name in found if not any(fnmatch.fnmatch(name, pattern) for pattern in self.left_out)]
        if self.options.files:
            found = [name for name in found if any(fnmatch.fnmatch(name, pattern) for pattern in self.options.files)]
        if self.options.shard:
            index, count = map(int, self.options.shard.split("/"))
            found = found[index::count]
        return sorted(found, key=lambda name: -(self.tests / name).stat().st_size)

    def devices(self, name):
        """What a file asks for: it says how many devices its tests need."""
        if self.options.devices:
            return self.options.devices
        asked = re.findall(r"request_cpu_devices\((\d+)\)", (self.tests / name).read_text())
        return max(map(int, asked), default=1)

    def record(self, backend, name):
        return self.results / backend.name / (name.replace("/", "-") + ".jsonl")

    def run(self, backend, name, wanted=None):
        """Runs a file's tests, those of `wanted` if it is given, and returns the results of all that have run so far."""
        record = self.record(backend, name)
        record.parent.mkdir(parents=True, exist_ok=True)
        known = read(record)
        if wanted is None and known.complete or wanted is not None and wanted <= set(known.results):
            return known
        chosen = None
        if wanted is not None:
            chosen = record.with_suffix(".names")
            chosen.write_text("\n".join(sorted(wanted)) + "\n")
        for _ in range(200):
            before = len(known.results)
            code = self.run_process(backend, name, record, chosen)
            known = read(record)
            if known.done or known.unfinished is None:
                break
            outcome = "hung" if code is None else "crashed"
            append(record, end=known.unfinished, outcome=outcome, seconds=0,
                   message=("no end after the limit" if code is None else f"exit status {code}; ") + tail(record))
            known = read(record)
            if len(known.results) == before:
                break
        if wanted is None and not known.uncollected:
            append(record, complete=True)
        return read(record)

    def run_process(self, backend, name, record, chosen):
        """Runs pytest once. Returns its exit status, or None if a test took too long."""
        variables = dict(os.environ, **backend.variables, JAX_SUITE_RECORD=str(record), PYTHONDONTWRITEBYTECODE="1",
                         JAX_NUM_GENERATED_CASES="1", JAX_SKIP_SLOW_TESTS="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        variables["PYTHONPATH"] = f"{FOLDER}:{variables['PYTHONPATH']}"
        if chosen:
            variables["JAX_SUITE_TESTS"] = str(chosen)
        command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "jax_suite_plugin", "-p", "no:cacheprovider",
                   "-c", "/dev/null", f"--rootdir={self.tests}", "--import-mode=importlib", "--tb=short", name]
        append(record, process=" ".join(command[1:3]))
        with record.with_suffix(".log").open("w") as log:
            process = subprocess.Popen(command, cwd=self.tests, env=variables, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            while True:
                try:
                    return process.wait(2)
                except subprocess.TimeoutExpired:
                    if time.time() - record.stat().st_mtime > self.options.seconds:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
                        return None


@dataclasses.dataclass
class Known:
    results: dict
    unfinished: str = None  # the test that has begun last, without an end
    uncollected: str = ""
    done: bool = False  # the last process came to its end
    complete: bool = False


def append(record, **values):
    with record.open("a") as file:
        file.write(json.dumps(values) + "\n")


def tail(record):
    lines = record.with_suffix(".log").read_text(errors="replace").splitlines()
    fatal = [line for line in lines if re.search(r"Fatal|Check failed|F\d{4} |terminate|Segmentation|Assert", line)]
    return "\n".join(line[:300] for line in (fatal[:3] + lines[-3:]))


def read(record):
    known = Known({})
    if not record.exists():
        return known
    for line in record.read_text().splitlines():
        value = json.loads(line)
        if "process" in value:
            known.done, known.uncollected = False, ""
        elif "begin" in value:
            known.unfinished = value["begin"]
        elif "end" in value:
            known.results[value["end"]] = Result(value["outcome"], value["seconds"], value["message"])
            known.unfinished = None
        elif "uncollected" in value:
            known.uncollected = known.uncollected or value["uncollected"]
        elif "done" in value:
            known.done = True
        elif "complete" in value:
            known.complete = True
    return known


class Comparison:
    """What passes on the CPU and not on the plugin, by file."""

    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)
        self.faults = {}  # test -> its result here
        self.skipped_here = {}
        self.fixed = []
        self.explained = [(pattern, reason) for pattern, reason in rows("jax_suite_failures.tsv", 2)]

    def add(self, name, here, cpu):
        counts = self.counts[name]
        if here.uncollected and not (cpu and cpu.uncollected):
            self.faults[name] = Result("not collected", 0, here.uncollected)
            counts["fault"] += 1
        for test, result in here.results.items():
            peer = cpu.results.get(test) if cpu else None
            counts["run"] += 1
            if result.outcome == "passed":
                counts["passed"] += 1
            elif peer is None:
                counts["skipped" if result.outcome == "skipped" else "not compared"] += 1
            elif peer.outcome != "passed":
                counts["skipped" if peer.outcome == "skipped" else "fails on both"] += 1
            elif result.outcome == "skipped":
                counts["skipped here only"] += 1
                self.skipped_here[test] = result
            else:
                counts["fault"] += 1
                self.faults[test] = result

    def reason(self, test):
        return next((reason for pattern, reason in self.explained if fnmatch.fnmatchcase(test, pattern)), None)

    def total(self, key):
        return sum(counts[key] for counts in self.counts.values())

    def ratio(self):
        passed = self.total("passed")
        return 100 * passed / max(1, passed + self.total("fault") + self.total("skipped here only"))

    def table(self):
        keys = ("run", "passed", "fault", "skipped here only", "skipped", "fails on both", "not compared")
        yield "\t".join(("file",) + keys)
        for name in sorted(self.counts):
            yield "\t".join([name] + [str(self.counts[name][key]) for key in keys])
        yield "\t".join(["all"] + [str(self.total(key)) for key in keys])


def chosen_names(path):
    """The tests of a list by file: `lax_test.py::LaxTest::testOp0`."""
    names = collections.defaultdict(set)
    for line in pathlib.Path(path).read_text().splitlines():
        if line and not line.startswith("#"):
            names[line.partition("::")[0]].add(line)
    return names


def run_file(suite, options, name, wanted):
    hlokit, cpu = backends(options)
    devices = suite.devices(name)
    here = suite.run(hlokit(devices), name, wanted)
    peer = None
    if options.cpu == "all":
        peer = suite.run(cpu(devices), name, wanted)
    elif options.cpu == "failed":
        tests = {test for test, result in here.results.items() if result.outcome != "passed"}
        peer = suite.run(cpu(devices), name, tests) if tests or here.uncollected else Known({})
    return here, peer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", required=True)
    parser.add_argument("--build", default=str(FOLDER.parents[1] / "build/release"))
    parser.add_argument("--results", default="build/jax-suite")
    parser.add_argument("--engine", choices=("exact", "fast"), default="exact")
    parser.add_argument("--devices", type=int, default=0, help="of every file; without it what the file asks for")
    parser.add_argument("--files", action="append", metavar="GLOB")
    parser.add_argument("--shard", metavar="I/N")
    parser.add_argument("--names", metavar="FILE", help="run only the tests of this list")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=150, help="limit of a test")
    parser.add_argument("--cpu", choices=("failed", "all", "none"), default="failed")
    parser.add_argument("--table", action="store_true", help="print counts by file")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    suite = Suite(options)
    names = chosen_names(options.names) if options.names else None
    files = [name for name in suite.files() if names is None or name in names]
    if options.again:
        hlokit, _ = backends(options)
        for name in files:
            suite.record(hlokit(suite.devices(name)), name).unlink(missing_ok=True)
    comparison = Comparison()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(run_file, suite, options, name, names and names[name]): name for name in files}
        for future in concurrent.futures.as_completed(futures):
            name = futures[future]
            comparison.add(name, *future.result())
            counts = comparison.counts[name]
            print(f"{name}: {counts['passed']} of {counts['run']} pass, {counts['fault']} only on the CPU", flush=True)
    return report(comparison, options)


def report(comparison, options):
    unexplained = 0
    for test, result in sorted(comparison.faults.items()) + sorted(comparison.skipped_here.items()):
        reason = comparison.reason(test)
        if reason is None:
            unexplained += 1
            print(f"FAILED {test}: {result.outcome}: {result.message.splitlines()[0] if result.message else ''}")
    if options.table:
        print("\n".join(comparison.table()))
    print(f"{comparison.ratio():.2f} % of the tests that pass on JAX's CPU pass here; "
          f"{len(comparison.faults)} fail, {len(comparison.skipped_here)} are skipped")
    print(f"{comparison.total('passed')} passed, {unexplained} failed")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
