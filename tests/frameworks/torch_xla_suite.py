#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs torch_xla's own tests on the plugin, and on its CPU device those that do not pass, and compares test by test.

  torch_xla_suite.py [--tests=DIR] [--build=DIR] [--results=DIR] [--engine=exact|fast] [--devices=N] [--files=GLOB]...
                     [--shard=I/N] [--names=FILE] [--jobs=N] [--cpu=failed|all|none] [--table] [--again]

--tests: the folder `test` of a copy of torch_xla's repository, of the tag of the release; without it
HLOKIT_TORCH_XLA_TESTS, or torch-xla-source/test beside the environments of environment.py. Where there is none the exit
code is 77. Results are kept by test, so a run that was ended goes on where it was; --again forgets them. A file runs in a
process of its own, with one device; torch_xla_suite_ways.tsv has those that run in other ways. A file without test cases
is a program, and one test.

Tests that fail here and pass on the CPU must be in torch_xla_suite_failures.tsv, with the reason; exit code 1 if others
do. The last line is `N passed, N failed`.
"""
import dataclasses
import fnmatch
import os
import re
import sys
import tempfile
import time
import tomllib

import suite


class TorchXlaSuite(suite.Suite):
    framework = "torch_xla"
    variable = "HLOKIT_TORCH_XLA_TESTS"
    source = "torch-xla-source/test"
    name = "torch_xla_suite"
    seconds = 400

    def __init__(self, options):
        super().__init__(options)
        self.ways = list(suite.rows("torch_xla_suite_ways.tsv", 5))

    def backends(self):
        build = os.path.abspath(self.options.build)
        plugin = f"{build}/lib/hlokit/libhlokit_pjrt.so"
        engine = self.options.engine

        def hlokit(devices):
            return suite.Backend(f"hlokit-{engine}", {
                "PJRT_DEVICE": "HLOKIT", "PYTHONPATH": f"{self.installed()}{os.pathsep}{build}/python",
                "HLOKIT_PJRT_PLUGIN": plugin, "HLOKIT_NUM_DEVICES": str(devices), "HLOKIT_ENGINE": engine,
                "HLOKIT_NUM_THREADS": "1", "HLOKIT_CODE_CACHE": "off", "CPU_NUM_DEVICES": str(devices)})

        def cpu(devices):
            return suite.Backend("cpu", {"PJRT_DEVICE": "CPU", "PYTHONPATH": "", "CPU_NUM_DEVICES": str(devices)})

        return hlokit, cpu

    def installed(self):
        """A folder with the entry points of the package, by which torch_xla finds it where it is installed. It comes before
        the build's package, whose metadata has those of PyTorch only: of a package's metadata the first counts."""
        folder = self.results / "installed/hlokit-0.dist-info"
        folder.mkdir(parents=True, exist_ok=True)
        project = tomllib.loads((suite.FOLDER.parents[1] / "pyproject.toml").read_text())["project"]
        lines = ["[torch_xla.plugins]"]
        lines += [f"{name} = {value}" for name, value in project["entry-points"]["torch_xla.plugins"].items()]
        (folder / "entry_points.txt").write_text("\n".join(lines) + "\n")
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: hlokit\nVersion: 0\n")
        return folder.parent

    def found(self):
        return sorted(path.relative_to(self.tests).as_posix() for path in self.tests.rglob("*test*.py"))

    def devices(self, name):
        return self.options.devices or 1

    def groups_of(self, name):
        pattern = next((way[0] for way in self.ways if fnmatch.fnmatch(name, way[0])), None)
        ways = [way[1:] for way in self.ways if way[0] == pattern] or [("-", "1", "-", "-")]
        for label, devices, variables, arguments in ways:
            suffix = "" if label == "-" else f" {label}"
            yield suite.Group(
                name + suffix, [name], self.options.devices or int(devices), suffix=suffix,
                variables=dict(word.split("=", 1) for word in variables.split() if word != "-"),
                arguments=[word for word in arguments.split() if word != "-"])

    def groups(self, names):
        """Files run in processes of their own, also those of a list of tests, which run in a file's first way."""
        if names is None:
            return super().groups(None)
        return [dataclasses.replace(next(iter(self.groups_of(name))), tests=names[name])
                for name in self.files() if name in names]

    def variables(self, group):
        return {"TORCH_TEST_DEVICES": str(self.tests / "pytorch_test_base.py"), "PYTORCH_TEST_WITH_SLOW": "1",
                "HF_HUB_OFFLINE": "1", "SUITE_FILE": str(self.tests / group.files[0])}

    def paths(self, group):
        """Where a program finds what it imports: its own folder, and that of all tests; and what the processes that it
        starts import, its own file as a part of the package `test`, whose folder has more than that beside it."""
        packages = self.results / "packages"
        packages.mkdir(parents=True, exist_ok=True)
        package = packages / self.tests.name
        if not package.is_symlink():
            package.symlink_to(self.tests)
        folders = {str((self.tests / name).parent) for name in group.files}
        return sorted(folders, reverse=True) + [str(self.tests), str(packages)]

    def run_process(self, backend, group, record, chosen):
        with tempfile.TemporaryDirectory() as scratch:
            variables = {name: value.replace("{scratch}", scratch) for name, value in group.variables.items()}
            return self.run_once(backend, dataclasses.replace(group, variables=variables), record, chosen)

    def run_once(self, backend, group, record, chosen):
        if self.has_cases(group.files[0]):
            return super().run_process(backend, group, record, chosen)
        name = f"{group.files[0]}::program"
        if name in suite.read(record).results:
            return 0
        suite.append(record, begin=name)
        begin = time.monotonic()
        code = super().run_process(backend, group, record, chosen)
        if code is not None:
            log = record.with_suffix(".log").read_text(errors="replace")
            outcome = "skipped" if code == 0 and re.search(r"[Ss]kip", log) else "passed" if code == 0 else "failed"
            suite.append(record, end=name, outcome=outcome, seconds=round(time.monotonic() - begin, 2),
                         message="" if outcome == "passed" else f"exit status {code}; {suite.tail(record)}")
            suite.append(record, done=code)
        return code

    def has_cases(self, name):
        return re.search(r"TestCase|unittest\.main|absltest\.main", (self.tests / name).read_text()) is not None

    def command(self, group):
        if self.has_cases(group.files[0]):
            return super().command(group)
        return [sys.executable, str(self.tests / group.files[0]), *group.arguments]


if __name__ == "__main__":
    sys.exit(suite.main(TorchXlaSuite, __doc__))
