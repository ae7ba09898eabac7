#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of tests/check/steps.tsv and counts the tests in them.

  tools/check [--full] [--seed=N] [--list] [STEP...]

Without --full: all correctness checks once, on samples where the whole takes long. --full adds sanitizer builds,
fuzzing and packages, and uses the long forms of steps. STEP: only those, as tools/check --list names them, after the
builds that they need. The output of a step is in build/check/; for a failed step, its end and the command to repeat it
are shown. The last line is `N passed, N failed`; exit code 1 if anything failed.
"""
import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
LOGS = TOP / "build/check"
SHOWN_LINES = 200
MAX_SECONDS = 22 * 60  # of a check without --full, by the budgets
SKIPPED = 77  # exit code of a step that cannot run on this machine; the last line of its output says why
CORES = 2  # of the machine that budgets are for


@dataclasses.dataclass
class Step:
    name: str
    when: str
    alone: bool
    budget: int
    after: str
    needs: str
    command: str
    process: subprocess.Popen = None
    begin: float = 0
    seconds: float = 0  # elapsed
    processor: float = 0  # processor time of its processes
    status: str = ""  # "", "ok", "failed" or why it is skipped

    @property
    def log(self):
        return LOGS / (self.name.replace(" ", "-") + ".log")

    @property
    def used(self):
        """What counts against the budget: processor time, which other programs on the machine do not change."""
        return self.processor / (CORES if self.alone else 1)

    @property
    def limit(self):
        return 5 * self.budget + 120

    @property
    def patience(self):
        """Elapsed seconds after which a step ends that uses little processor time: it waits for something, or for its turn."""
        return 4 * self.limit


def read_steps(table, words):
    steps = []
    for line in table.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, when, cores, budget, after, needs, command = line.split("\t")
        for word, value in words.items():
            command = command.replace("{" + word + "}", str(value))
        steps.append(Step(name, when, cores == "all", int(budget), after, needs, command))
    return steps


def chosen(steps, options):
    """The steps to run: the named ones with their dependencies, those of a full check, or those of every check."""
    by_name = {step.name: step for step in steps}
    if options.steps:
        names = set()
        for name in options.steps:
            while name != "-":
                names.add(name)
                name = by_name[name].after
        return [step for step in steps if step.name in names]
    if options.full:
        return [step for step in steps if "long " + step.name not in by_name]
    return [step for step in steps if step.when == "check"]


def longest(steps, cores=2):
    """Total seconds of the steps' budgets, where nothing else runs."""
    return sum(step.budget / (1 if step.alone else cores) for step in steps)


def counts(step):
    """Numbers of passed and failed tests, from the step's output."""
    text = step.log.read_text(errors="replace")
    # ctest prints the output of a failed test, which may contain other counts.
    if found := re.findall(r"(\d+) tests? failed out of (\d+)", text):
        failed, passed = int(found[-1][0]), int(found[-1][1]) - int(found[-1][0])
    elif found := re.findall(r"^(\d+) passed, (\d+) failed$", text, re.MULTILINE):
        passed, failed = map(int, found[-1])
    else:
        passed = failed = 0
    if step.status == "failed" and failed == 0:
        failed = 1
    elif step.status == "ok" and passed == 0:
        passed = 1
    return passed, failed


def processor_seconds(session):
    """Processor time so far of the processes of a session, and of those that they have waited for."""
    ticks = 0
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            text = (pathlib.Path(entry.path) / "stat").read_text()
        except OSError:  # it has ended
            continue
        fields = text[text.rindex(")") + 2:].split()  # the name may contain spaces
        if int(fields[3]) == session:
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


class Progress:
    """A status line with the running steps and the remaining time; only on a terminal."""

    def __init__(self, steps, expected):
        self.steps, self.expected, self.begin = steps, expected, time.monotonic()
        self.on = sys.stdout.isatty()

    def left(self, cores):
        now, alone, beside = time.monotonic(), 0.0, 0.0
        for step in self.steps:
            if step.status:
                continue
            rest = self.expected(step) - (now - step.begin if step.process else 0)
            if step.alone:
                alone += max(rest, 0)
            else:
                beside += max(rest, 0)
        return alone + beside / cores

    def show(self, cores):
        if not self.on:
            return
        running = [step.name for step in self.steps if step.process and not step.status]
        done = sum(1 for step in self.steps if step.status)
        text = f"[{done}/{len(self.steps)}] {', '.join(running)}  {clock(time.monotonic() - self.begin)}, about {clock(self.left(cores))} left"
        sys.stdout.write("\r\033[K" + text[:shutil.get_terminal_size().columns - 1])
        sys.stdout.flush()

    def clear(self):
        if self.on:
            sys.stdout.write("\r\033[K")


class Check:
    def __init__(self, steps, options):
        self.steps, self.options = steps, options
        self.passed = self.failed = 0
        self.times = {}
        self.times_file = LOGS / "times.tsv"
        if self.times_file.exists():
            self.times = dict(re.findall(r"^(.+)\t(\d+\.\d)$", self.times_file.read_text(), re.MULTILINE))
        self.progress = Progress(steps, lambda step: float(self.times.get(step.name, step.budget / 2)))
        self.by_name = {step.name: step for step in steps}
        self.printed = 0

    def start(self, step):
        step.begin = time.monotonic()
        before = self.by_name.get(step.after)
        if before is not None and before.status != "ok":
            step.status = f"not run, since `{before.name}` did not pass"
            return
        if step.needs != "-" and not (TOP / step.needs).exists() and not shutil.which(step.needs):
            step.status = f"skipped: no {step.needs}"
            return
        with step.log.open("wb") as log:
            step.process = subprocess.Popen(["sh", "-c", step.command], cwd=TOP, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=subprocess.STDOUT, start_new_session=True)

    def finish(self, step):
        """Records the end of a step that has ended or must end."""
        step.seconds = time.monotonic() - step.begin
        if self.wait(step, os.WNOHANG):
            step.status = self.outcome(step)
            return
        # Time that others take on a busy machine is no fault of the step.
        if step.seconds > step.limit:
            step.processor = processor_seconds(step.process.pid)
        if step.used <= step.limit and step.seconds <= step.patience:
            return
        why = f"ended after {step.used:.0f} s of processor time: its budget is {step.budget} s"
        if step.used <= step.limit:
            why = f"ended after {step.seconds:.0f} s, in which it used {step.used:.0f} s of processor time: what does it wait for?"
        self.kill(step)
        with step.log.open("a") as log:
            log.write(f"\n{why}\n")
        step.status = "failed"

    @staticmethod
    def outcome(step):
        if step.process.returncode == SKIPPED:
            last = step.log.read_text(errors="replace").rstrip().splitlines()[-1:]
            return "".join(last).strip() or "skipped, without a word why"
        return "ok" if step.process.returncode == 0 else "failed"

    @staticmethod
    def wait(step, options=0):
        """Returns whether the step has ended, and keeps its exit code and the processor time of all its processes."""
        pid, status, usage = os.wait4(step.process.pid, options)
        if pid == 0:
            return False
        step.process.returncode = os.waitstatus_to_exitcode(status)
        step.processor = usage.ru_utime + usage.ru_stime
        return True

    def kill(self, step):
        os.killpg(step.process.pid, signal.SIGKILL)
        self.wait(step)

    def report(self, step):
        if step.status not in ("ok", "failed"):
            print(f"{step.name:24} {step.status}")
            return
        passed, failed = counts(step)
        self.passed += passed
        self.failed += failed
        over = f"; {step.used:.0f} s of processor time, its budget is {step.budget} s" if step.used > step.budget else ""
        tests = f"{passed} passed, {failed} failed, " if passed + failed > 1 else ""
        print(f"{step.name:24} {'ok' if step.status == 'ok' else 'FAILED'} ({tests}{step.seconds:.0f} s{over})")
        text = step.log.read_text(errors="replace").splitlines()
        for line in text:
            if found := re.match(r"\s*\d+ - (.*) \(Skipped\)$", line):
                print(f"  skipped: {found[1]} (run it by itself with ctest -V to see why)")
        if step.status == "failed":
            for line in text[-SHOWN_LINES:]:
                print(f"  | {line}")
            print(f"  log: {os.path.relpath(step.log, TOP)}")
            seed = f" --seed={self.options.seed}" if self.options.seed != 1 else ""
            print(f"  alone: tools/check{seed} '{step.name}', which runs: {step.command}")
        else:
            self.times[step.name] = f"{step.seconds:.1f}"

    def report_finished(self):
        """In table order, whichever step ended first."""
        while self.printed < len(self.steps) and self.steps[self.printed].status:
            self.progress.clear()
            self.report(self.steps[self.printed])
            sys.stdout.flush()
            self.printed += 1

    def run(self):
        try:
            self.run_steps()
        except KeyboardInterrupt:
            self.progress.clear()
            print("interrupted")
            self.failed += 1
        finally:
            for step in self.steps:
                if step.process and step.process.returncode is None:
                    self.kill(step)
        self.times_file.write_text("".join(f"{name}\t{seconds}\n" for name, seconds in sorted(self.times.items())))
        print(f"\n{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0

    def run_steps(self):
        cores = len(os.sched_getaffinity(0))
        waiting = list(self.steps)
        running = []
        while waiting or running:
            while waiting and (not running or (not waiting[0].alone and not running[0].alone and len(running) < cores)):
                step = waiting.pop(0)
                self.start(step)
                if not step.status:
                    running.append(step)
            for step in running:
                self.finish(step)
            running = [step for step in running if not step.status]
            self.report_finished()
            if running:
                self.progress.show(cores)
                time.sleep(0.1)


def main():
    parser = argparse.ArgumentParser(prog="tools/check", usage="tools/check [--full] [--seed=N] [--list] [STEP...]",
                                     description=__doc__.split("\n\n", 2)[2],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="with sanitizers, fuzzing, packages and long forms of steps")
    parser.add_argument("--seed", type=int, default=1, help="seed of random inputs and samples; 1 unless given")
    parser.add_argument("--list", action="store_true", help="names the steps and their budgets")
    parser.add_argument("steps", nargs="*", metavar="STEP")
    options = parser.parse_args()
    steps = read_steps(pathlib.Path(__file__).with_name("steps.tsv"),
                       {"seed": options.seed})
    if options.list:
        for step in steps:
            print(f"{step.name:24} {step.when:6} {step.budget:4} s  {step.command}")
        every = [step for step in steps if step.when == "check"]
        print(f"\nwithout --full {clock(longest(every))} minutes at most on two cores, by the budgets; allowed {clock(MAX_SECONDS)}")
        return 0 if longest(every) <= MAX_SECONDS else 1
    names = {step.name for step in steps}
    if unknown := [name for name in options.steps if name not in names]:
        print(f"tools/check: no step `{unknown[0]}` (tools/check --list names them)", file=sys.stderr)
        return 2
    steps = chosen(steps, options)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    LOGS.mkdir(parents=True, exist_ok=True)
    return Check(steps, options).run()


if __name__ == "__main__":
    sys.exit(main())
