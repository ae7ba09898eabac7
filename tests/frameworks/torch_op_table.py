# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's whole table of ops, op_db, through hlokit.torch: each op in each type of elements that the CPU has, all samples.

    PYTHONPATH=build/release/python VENV/bin/python tests/frameworks/torch_op_table.py [--results=FILE] [--resume | --again=KINDS]
        [--ops=REGEX] [--types=REGEX] [--samples=N] [--jobs=N]

Results, gradients (f32, f64, c64) and what a write to a view does to its base must be the CPU's. Workers, which may crash
or hang, write a line for each op and type to the file of results, from which --resume goes on and --again runs again what was
not recorded (`cpu,raises,wrong,crash`). A wrong value and a crash is a failure; so is an op on the CPU, and a call that raises
here only, unless torch_op_table.tsv has a row for it; and so is, in a run of everything, a row without such a call.
"""

import argparse
import collections
import contextlib
import json
import os
import pathlib
import re
import select
import subprocess
import sys
import tempfile
import time
from typing import IO, Any, Dict, List, NamedTuple, Optional, Tuple

FOLDER = pathlib.Path(__file__).resolve().parent
BAD = ("raises", "wrong", "crash")


class Job(NamedTuple):
    index: int  # of op_db
    op: str
    dtype: str


def all_jobs() -> List[Job]:
    from torch.testing._internal.common_methods_invocations import op_db

    jobs = []
    for index, op in enumerate(op_db):
        name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
        for dtype in sorted(op.supported_dtypes("cpu"), key=str):
            jobs.append(Job(index, name, str(dtype).replace("torch.", "")))
    return jobs


def processor_seconds(pid: int) -> float:
    """The time that the processor spent on a process."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process that runs jobs one after the other, and is started anew if it dies, or hangs: by the processor's time, so that
    a busy machine makes no difference."""

    WAITING = 20  # times as much without the processor's time: it waits for something

    def __init__(self, samples: int, seconds: float):
        self.samples, self.seconds = samples, seconds
        self.process: Optional[subprocess.Popen[bytes]] = None
        self.errors: IO[bytes] = tempfile.TemporaryFile()
        self.unread = b""
        self.job: Optional[Job] = None
        self.started = self.spent = 0.0

    def start(self, job: Job) -> None:
        if self.process is None:
            self.errors = tempfile.TemporaryFile()
            self.process = subprocess.Popen([sys.executable, str(FOLDER / "torch_op_worker.py")], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=self.errors)
            self.unread = b""
        assert self.process.stdin is not None
        self.job, self.started, self.spent = job, time.time(), processor_seconds(self.process.pid)
        try:
            self.process.stdin.write(f"{job.index} {job.dtype} {self.samples}\n".encode())
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # its output ends

    def poll(self) -> Optional[Dict[str, Any]]:
        """The record of the job, once there is one."""
        assert self.process is not None and self.process.stdout is not None and self.job is not None
        while True:
            line, found, rest = self.unread.partition(b"\n")
            if found:
                self.unread = rest
                if line.startswith(b"@{"):
                    self.job = None
                    return dict(json.loads(line[1:]))
                continue
            if not select.select([self.process.stdout], [], [], 0)[0]:
                used = processor_seconds(self.process.pid) - self.spent
                late = used > self.seconds or time.time() - self.started > self.WAITING * self.seconds
                return self._lost(f"takes more than {self.seconds:.0f} s") if late else None
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                code = self.process.wait()
                self.errors.seek(0)
                text = self.errors.read().decode(errors="replace")
                return self._lost(f"the process ends with {code}: {' '.join(text[-300:].split())}")
            self.unread += data

    def _lost(self, text: str) -> Dict[str, Any]:
        job = self.job
        assert job is not None
        self.stop()
        return {"op": job.op, "dtype": job.dtype, "counts": {"crash": 1}, "cpu": {}, "problems": [["crash", text]], "seconds": 0}

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout, self.errors):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
        self.process = self.job = None


def run(jobs: List[Job], workers: List[Worker], path: pathlib.Path) -> None:
    """Runs the jobs and appends their records to the file."""
    waiting = list(reversed(jobs))
    with path.open("a") as file:
        while waiting or any(w.job for w in workers):
            for worker in workers:
                if worker.job is None and waiting:
                    worker.start(waiting.pop())
            busy = [w for w in workers if w.job is not None and w.process is not None]
            select.select([w.process.stdout for w in busy if w.process is not None], [], [], 1)
            for worker in busy:
                record = worker.poll()
                if record is not None:
                    file.write(json.dumps(record) + "\n")
                    file.flush()
    for worker in workers:
        worker.stop()


def read(path: pathlib.Path) -> Dict[Tuple[str, str], Dict[str, Any]]:
    """The last record of each op and type."""
    records = {}
    if path.exists():
        for line in path.read_text().splitlines():
            record = json.loads(line)
            records[record["op"], record["dtype"]] = record
    return records


class Known(NamedTuple):
    """A row of torch_op_table.tsv."""

    kind: str  # cpu or raises
    name: str  # of the aten op on the CPU, or of the call: a regular expression
    dtypes: str  # a regular expression
    error: str  # or why it ran on the CPU: a regular expression
    reason: str


def known_rows() -> List[Known]:
    path = FOLDER / "torch_op_table.tsv"
    lines = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [Known(*line) for line in lines]


# Types of PyTorch that HLO does not have.
NOT_IN_HLO = ("complex32", "bcomplex32")


class Summary:
    def __init__(self, records: List[Dict[str, Any]]):
        self.calls: Dict[str, int] = collections.Counter()
        by_op: Dict[str, Dict[str, int]] = collections.defaultdict(collections.Counter)
        for record in records:
            self.calls.update(record["counts"])
            by_op[record["op"]].update(record["counts"])
        self.ops = {"recorded": 0, "cpu": 0, "raises": 0, "wrong": 0, "crash": 0, "no call": 0}
        for counts in by_op.values():
            worst = next((kind for kind in ("crash", "wrong", "raises", "cpu", "recorded") if counts.get(kind)), "no call")
            self.ops[worst] += 1

    def lines(self) -> List[str]:
        ops = sum(self.ops.values()) - self.ops["no call"]
        calls = sum(self.calls[kind] for kind in ("recorded", "cpu", "raises", "wrong", "crash"))

        def row(what: str, counts: Dict[str, int], total: int) -> str:
            share = 100 * counts["recorded"] / max(total, 1)
            return (f"{total} {what}: {counts['recorded']} recorded and equal ({share:.1f} %), {counts['cpu']} equal with an op on the CPU, "
                    f"{counts['raises']} raise here only, {counts['wrong']} wrong, {counts['crash']} crash")

        return [row("ops", self.ops, ops), row("calls", self.calls, calls),
                f"{self.ops['no call']} ops have no call that the CPU takes; {self.calls['rejected']} calls that it rejects, "
                f"{self.calls['undefined']} without a defined result"]


def failures(records: List[Dict[str, Any]], whole: bool) -> Tuple[int, List[str]]:
    """How many records are as they must be, and what is wrong with the others."""
    rows = {row: 0 for row in known_rows()}
    passed, found = 0, []
    for record in records:
        before = len(found)
        name = f"{record['op']} {record['dtype']}"
        for kind, text in record["problems"]:
            if kind == "no samples":
                continue
            row = next((r for r in rows if r.kind == kind == "raises" and re.fullmatch(r.name, record["op"])
                        and re.fullmatch(r.dtypes, record["dtype"]) and re.search(r.error, text)), None)
            if row is None:
                found.append(f"{name}: {kind} {text}")
            else:
                rows[row] += 1
        for text, count in record["cpu"].items():
            op, why = text.split("\t")
            row = next((r for r in rows if r.kind == "cpu" and re.fullmatch(r.name, op) and re.fullmatch(r.dtypes, record["dtype"])
                        and re.search(r.error, why)), None)
            if row is None:
                found.append(f"{name}: {op} on the CPU, {count} calls: {why}")
            else:
                rows[row] += count
        passed += len(found) == before
    if whole:
        found += [f"{row.kind} {row.name}: its row in torch_op_table.tsv is out of date: no call does this" for row, n in rows.items() if not n]
    return passed, found


def ranking(records: List[Dict[str, Any]]) -> List[str]:
    """The ops on the CPU by number of ops and calls that meet them."""
    ops: Dict[str, set[str]] = collections.defaultdict(set)
    calls: Dict[str, int] = collections.Counter()
    for record in records:
        for text, count in record["cpu"].items():
            ops[text].add(record["op"])
            calls[text] += count
    order = sorted(ops, key=lambda text: (-len(ops[text]), -calls[text]))
    return [f"on the CPU: {len(ops[t])} ops, {calls[t]} calls: {t.replace(chr(9), ': ')}: {', '.join(sorted(ops[t])[:6])}" for t in order]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, default=FOLDER.parents[1] / "build/release/torch-op-table.jsonl")
    parser.add_argument("--resume", action="store_true", help="go on where the last run ended")
    parser.add_argument("--again", default="", help="run again records with such calls: cpu, raises, wrong, crash")
    parser.add_argument("--summary", action="store_true", help="run nothing")
    parser.add_argument("--ranking", action="store_true", help="print the ops on the CPU by frequency")
    parser.add_argument("--ops", default="", help="only ops whose name matches")
    parser.add_argument("--types", default="", help="only types whose name matches wholly")
    parser.add_argument("--samples", type=int, default=1000, help="most calls of each op and type")
    parser.add_argument("--seconds", type=float, default=300, help="most seconds of an op in a type")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    jobs = [j for j in all_jobs() if re.search(options.ops, j.op) and (not options.types or re.fullmatch(options.types, j.dtype))]
    options.results.parent.mkdir(parents=True, exist_ok=True)
    if not (options.resume or options.again or options.summary):
        options.results.unlink(missing_ok=True)
    before = read(options.results)
    todo = [] if options.summary else [j for j in jobs if (j.op, j.dtype) not in before]
    if options.again:
        kinds = options.again.split(",")
        todo = [j for j in jobs if (j.op, j.dtype) in before and any(before[j.op, j.dtype]["counts"].get(k) for k in kinds)]
    run(todo, [Worker(options.samples, options.seconds) for _ in range(options.jobs)], options.results)
    after = read(options.results)
    records = [after[j.op, j.dtype] for j in jobs if (j.op, j.dtype) in after]
    if options.ranking:
        print("\n".join(ranking(records)))
    whole = not options.ops and not options.types and len(records) == len(jobs)
    passed, found = failures(records, whole)
    for text in found:
        print(f"FAILED {text}")
    print("\n".join(Summary(records).lines()))
    print("of the types that HLO has:")
    print("\n".join(Summary([r for r in records if r["dtype"] not in NOT_IN_HLO]).lines()))
    print(f"{passed} passed, {len(found)} failed")
    return 1 if found or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
