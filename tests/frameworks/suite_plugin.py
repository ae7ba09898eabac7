# SPDX-License-Identifier: Apache-2.0
"""The part of suite.py within the tests' process, which plugins of pytest use: it records each test as it begins and ends.

Environment: SUITE_RECORD, the file that gets a JSON object a line; SUITE_TESTS, a file with the names of the tests to
run, one a line, or nothing for all but those that the record has.
"""
import json
import os
import re
import time

import pytest

_MESSAGE_LINES = 6
_RANK = {"passed": 0, "skipped": 1, "failed": 2}


class Record:
    def __init__(self, path):
        self.path = path
        self.outcome, self.message, self.begin = None, "", 0.0

    def write(self, **values):
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(values) + "\n")

    def known(self):
        """Tests that have begun before, in this process or in one that has ended in them."""
        if not os.path.exists(self.path):
            return set()
        with open(self.path, encoding="utf-8") as file:
            return {value["begin"] for value in map(json.loads, file) if "begin" in value}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        chosen = None
        if path := os.environ.get("SUITE_TESTS"):
            with open(path, encoding="utf-8") as file:
                chosen = set(file.read().splitlines())
        known = self.known()
        kept, left = [], []
        for item in items:
            name = item.nodeid
            (kept if name not in known and (chosen is None or name in chosen) else left).append(item)
        items[:] = kept
        config.hook.pytest_deselected(items=left)

    def pytest_runtest_logstart(self, nodeid):
        self.outcome, self.message, self.begin = "passed", "", time.monotonic()
        self.write(begin=nodeid)

    def pytest_runtest_logreport(self, report):
        if _RANK[report.outcome] <= _RANK[self.outcome]:
            return
        self.outcome = report.outcome
        if report.skipped and isinstance(report.longrepr, tuple):
            self.message = report.longrepr[2]
        else:
            self.message = shortened(report.longreprtext)

    def pytest_runtest_logfinish(self, nodeid):
        seconds = round(time.monotonic() - self.begin, 2)
        self.write(end=nodeid, outcome=self.outcome, seconds=seconds, message=self.message)

    def pytest_collectreport(self, report):
        if report.failed:
            self.write(uncollected=shortened(report.longreprtext))
        elif report.skipped:
            self.write(uncollected="", skipped=str(report.longrepr))

    def pytest_sessionfinish(self, exitstatus):
        self.write(done=int(exitstatus))


def shortened(text):
    """The lines of an error that pytest marks, and the last ones."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in text.splitlines() if line.strip()]
    marked = [line for line in lines if re.match(r"E\s", line)]
    return "\n".join(line[:600] for line in (marked[:_MESSAGE_LINES] + lines[-2:]))


def register(config):
    config.pluginmanager.register(Record(os.environ["SUITE_RECORD"]), "suite_record")
