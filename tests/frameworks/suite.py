# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a framework on the plugin, and on its CPU those that do not pass, and compares test by test.

What jax_suite.py and torch_xla_suite.py share: results are kept by test, as a JSON object a line, so a run that was ended
goes on where it was. A group, a file with its settings, runs in a process of its own; a test that ends the process or
takes too long is a crash or a hang, and the others go on in a new process.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import hashlib
import json
import math
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import environment as environments

FOLDER = pathlib.Path(__file__).resolve().parent
MANY_TESTS = 900


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


@dataclasses.dataclass
class Group:
    """What runs in one process. `suffix` tells its tests from those of the same files with other settings."""

    name: str
    files: list
    devices: int
    tests: set = None
    suffix: str = ""
    variables: dict = dataclasses.field(default_factory=dict)
    arguments: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Known:
    results: dict
    unfinished: str = None  # the test that has begun last, without an end
    uncollected: str = ""
    done: bool = False  # the last process came to its end
    complete: bool = False

    def take_passed(self, other):
        """Takes the results of tests that passed elsewhere."""
        self.results.update({test: result for test, result in other.results.items() if result.outcome == "passed"})


def rows(name, columns):
    for line in (FOLDER / name).read_text().splitlines():
        if line and not line.startswith("#"):
            fields = line.split("\t")
            if len(fields) != columns:
                raise SystemExit(f"{name}: {len(fields)} columns where there should be {columns}: {line}")
            yield fields


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


class Suite:
    """The tests of a framework. A derived class says which files there are, how many devices each has, and with which
    variables a process runs."""

    framework = ""  # its name
    variable = ""  # names the folder of its tests
    name = ""  # of its files here: NAME_failures.tsv, NAME_files.tsv, NAME_plugin.py
    seconds = 150  # limit of a test

    def __init__(self, options):
        self.options = options
        self.tests = options.tests.resolve()
        self.results = pathlib.Path(options.results).resolve()
        self.left_out = {pattern: reason for pattern, reason in rows(f"{self.name}_files.tsv", 2)}

    @classmethod
    def default_tests(cls):
        """The folder of the tests if no option names it."""
        named = os.environ.get(cls.variable)
        return pathlib.Path(named) if named else environments.cache_folder() / cls.source

    def backends(self):
        """The plugin and the framework's CPU, as functions of a number of devices."""
        raise NotImplementedError

    def found(self):
        """Names of all files with tests, relative to the folder."""
        raise NotImplementedError

    def devices(self, name):
        """How many devices a file has."""
        raise NotImplementedError

    def variables(self, group):
        """Variables of a process besides those of the backend."""
        raise NotImplementedError

    def paths(self, group):
        """Folders from which the tests import, besides the packages of the backend."""
        return []

    def files(self):
        """Names of the files to run, the longest first."""
        found = [name for name in self.found() if not any(fnmatch.fnmatch(name, pattern) for pattern in self.left_out)]
        if self.options.files:
            found = [name for name in found if any(fnmatch.fnmatch(name, pattern) for pattern in self.options.files)]
        if self.options.shard:
            index, count = map(int, self.options.shard.split("/"))
            found = found[index::count]
        return sorted(found, key=lambda name: -(self.tests / name).stat().st_size)

    def groups_of(self, name):
        """The ways in which a file is run."""
        return [Group(name, [name], self.devices(name))]

    def groups(self, names):
        """What runs in one process: a file, or the tests of a list in files that have as many devices."""
        if names is None:
            return [group for name in self.files() for group in self.groups_of(name)]
        by_devices = collections.defaultdict(list)
        for name in self.files():
            if name in names:
                by_devices[self.devices(name)].append(name)
        return [Group(f"list for {devices}", members, devices, set().union(*(names[name] for name in members)))
                for devices, members in sorted(by_devices.items(), reverse=True)]

    def record(self, backend, group):
        return self.results / backend.name / (group.name.replace("/", "-").replace(" ", "-") + ".jsonl")

    def run(self, backend, group, wanted):
        """Runs a group's tests, those of `wanted` if it is given, and returns the results of all that have run so far."""
        record = self.record(backend, group)
        record.parent.mkdir(parents=True, exist_ok=True)
        known = read(record)
        if wanted is None and known.complete or wanted is not None and known.done and wanted <= set(known.results):
            return known
        chosen = None
        if wanted is not None:
            chosen = record.with_suffix(".names")
            chosen.write_text("\n".join(sorted(wanted)) + "\n")
        for _ in range(200):
            before = len(known.results)
            code = self.run_process(backend, group, record, chosen)
            known = read(record)
            if known.done or known.unfinished is None:
                break
            outcome = "hung" if code is None else "crashed"
            append(record, end=known.unfinished, outcome=outcome, seconds=0,
                   message=("no end after the limit" if code is None else f"exit status {code}; ") + tail(record))
            known = read(record)
            if len(known.results) == before:
                break
        if wanted is None and known.done and not known.uncollected:
            append(record, complete=True)
        return read(record)

    def command(self, group):
        return [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", f"{self.name}_plugin", "-p", "no:cacheprovider",
                "-c", "/dev/null", f"--rootdir={self.tests}", "--import-mode=importlib", "--tb=short", *group.files]

    def run_process(self, backend, group, record, chosen):
        """Runs pytest once. Returns its exit status, or None if a test took too long."""
        variables = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1",
                         SUITE_RECORD=str(record), SUITE_SOURCE=str(self.tests.parent))
        variables.update(self.variables(group) | group.variables | backend.variables)
        paths = [str(FOLDER), backend.variables["PYTHONPATH"], *self.paths(group)]
        variables["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
        if chosen:
            variables["SUITE_TESTS"] = str(chosen)
        return self.await_process(self.command(group), variables, record)

    def await_process(self, command, variables, record):
        """Returns the exit status of a process that is ended, with those it has started, if it records nothing for too long:
        then None."""
        append(record, process=" ".join(command[1:3]))
        with record.with_suffix(".log").open("w") as log:
            process = subprocess.Popen(command, cwd=self.tests, env=variables, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            code = None
            while time.time() - record.stat().st_mtime < self.options.seconds:
                try:
                    code = process.wait(2)
                    break
                except subprocess.TimeoutExpired:
                    pass
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return code

    def run_group(self, group):
        hlokit, cpu = self.backends()
        here = self.run(hlokit(group.devices), group, group.tests)
        peer = None
        if self.options.cpu == "all":
            peer = self.run(cpu(group.devices), group, group.tests)
        elif self.options.cpu == "failed":
            tests = {test for test, result in here.results.items() if result.outcome != "passed"}
            peer = self.run(cpu(group.devices), group, tests) if tests or here.uncollected else Known({})
            if faults := {test for test in tests if passed(peer, test)}:
                # Under the conditions of the CPU, on which only these ran: some tests depend on those before them.
                here.take_passed(self.run(hlokit(group.devices), once_more(group), faults))
        return here, peer


def once_more(group):
    return dataclasses.replace(group, name=f"{group.name} once more")


def passed(known, test):
    return test in known.results and known.results[test].outcome == "passed"


class Comparison:
    """What passes on the CPU and not on the plugin, by group."""

    def __init__(self, failures):
        self.counts = collections.defaultdict(collections.Counter)
        self.faults = {}  # test -> its result here
        self.skipped_here = {}
        self.explained = [(pattern, reason) for pattern, reason in rows(failures, 2)]

    def add(self, name, here, cpu, wanted=frozenset(), suffix=""):
        counts = self.counts[name]
        if not (here.done or here.complete) or here.uncollected and not (cpu and cpu.uncollected):
            self.faults[name] = Result("not collected", 0, here.uncollected or "pytest did not come to its end")
            counts["fault"] += 1
        for test in sorted(wanted - set(here.results)):
            self.faults[test] = Result("not collected", 0, "there is no such test")
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
                self.skipped_here[test + suffix] = result
            else:
                counts["fault"] += 1
                self.faults[test + suffix] = result

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


def sample(suite):
    """Names of tests that pass here within half a second, of each file its share but at most a fiftieth of all; the same
    ones every time."""
    hlokit, _ = suite.backends()
    passed = {}
    for group in suite.groups(None):
        if group.suffix:
            continue
        results = read(suite.record(hlokit(group.devices), group)).results
        names = [name for name, result in results.items()
                 if result.outcome == "passed" and result.seconds < 0.5 and "\n" not in name]
        passed[group.name] = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
    total = sum(map(len, passed.values()))
    for file in sorted(passed):
        if len(passed[file]) > MANY_TESTS:  # collecting them takes long
            continue
        share = math.ceil(suite.options.sample * len(passed[file]) / total)
        yield from sorted(passed[file][:min(share, suite.options.sample // 50)])


def parser_of(kind, description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", default=kind.default_tests(), type=pathlib.Path)
    parser.add_argument("--build", default=str(FOLDER.parents[1] / "build/release"))
    parser.add_argument("--results", default=f"build/{kind.name.replace('_', '-')}")
    parser.add_argument("--engine", choices=("exact", "fast"), default="exact")
    parser.add_argument("--devices", type=int, default=0, help="of every file; without it what the file asks for")
    parser.add_argument("--files", action="append", metavar="GLOB")
    parser.add_argument("--shard", metavar="I/N")
    parser.add_argument("--names", metavar="FILE", help="run only the tests of this list")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=int, default=kind.seconds, help="limit of a test")
    parser.add_argument("--cpu", choices=("failed", "all", "none"), default="failed")
    parser.add_argument("--sample", type=int, metavar="N", help="run nothing; print about N names of tests that passed")
    parser.add_argument("--table", action="store_true", help="print counts by file")
    parser.add_argument("--again", action="store_true")
    return parser


def main(kind, description):
    """Runs a suite by the options of the command line. Returns the exit code."""
    options = parser_of(kind, description).parse_args()
    if not options.tests.is_dir():
        print(f"skipped: no tests of {kind.framework} in {options.tests}; {kind.variable} may name them")
        return environments.SKIPPED
    suite = kind(options)
    groups = suite.groups(chosen_names(options.names) if options.names else None)
    if options.sample:
        print("\n".join(sample(suite)))
        return 0
    if options.again:
        for backend in suite.backends():
            for group in groups:
                for run in (group, once_more(group)):
                    suite.record(backend(group.devices), run).unlink(missing_ok=True)
    comparison = Comparison(f"{kind.name}_failures.tsv")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(suite.run_group, group): group for group in groups}
        for future in concurrent.futures.as_completed(futures):
            group = futures[future]
            comparison.add(group.name, *future.result(), group.tests or frozenset(), group.suffix)
            counts = comparison.counts[group.name]
            print(f"{group.name}: {counts['passed']} of {counts['run']} pass, {counts['fault']} only on the CPU", flush=True)
    return report(comparison, options, kind.framework)


def report(comparison, options, framework):
    unexplained = 0
    for test, result in sorted(comparison.faults.items()) + sorted(comparison.skipped_here.items()):
        reason = comparison.reason(test)
        if reason is None:
            unexplained += 1
            print(f"FAILED {test}: {result.outcome}: {result.message.splitlines()[0] if result.message else ''}")
    if options.table:
        print("\n".join(comparison.table()))
    print(f"{comparison.ratio():.2f} % of the tests that pass on {framework}'s CPU pass here; "
          f"{len(comparison.faults)} fail, {len(comparison.skipped_here)} are skipped")
    print(f"{comparison.total('passed')} passed, {unexplained} failed")
    return 1 if unexplained else 0
