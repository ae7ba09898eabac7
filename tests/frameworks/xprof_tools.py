# SPDX-License-Identifier: Apache-2.0
"""Opens profiles that hlokit writes in the real XProf: every tool, without an error, with its steps and the report's figures.

  PYTHON_WITH_XPROF xprof_tools.py BIN [--quick] [--jax-profile=DIR ...] [--torch-profile=DIR ...] [--keep=DIR]

BIN is the directory of hlokit's tools. --jax-profile: also a log directory that jax_profile.py wrote with the plugin for a
simulated TPU, by the Python of another environment; --torch-profile: one of torch_profile.py. --quick: two of the profiles. Prints `N passed, N failed`.
"""
import argparse
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import defaultdict

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
from xprof.convert import raw_to_tool_data  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# What a tool writes instead of data when it has none or fails.
ERROR_TEXTS = ("No step time", "No step marker", "RET_CHECK", "INTERNAL:", "INVALID_ARGUMENT:", "FAILED_PRECONDITION", "NOT_FOUND:",
               "UNIMPLEMENTED:", "Can not find tool", "Traceback")
# Written to the log of the process about each operation or program that cannot be read.
LOG_ERRORS = re.compile(r"RET_CHECK|Failed to extract|Skipping grouping|Check failed|hlo_schedule\.cc|DFATAL")

# The tools of the wheel that give data for one host with TPUs, offered on its pages or not. megascale_stats needs slices on
# several hosts; the drawing of graph_viewer needs a renderer that the wheel lacks.
PLAIN_TOOLS = ("overview_page", "input_pipeline_analyzer", "framework_op_stats", "op_profile", "hlo_stats", "roofline_model",
               "pod_viewer", "memory_profile", "perf_counters", "utilization_viewer", "kernel_stats", "inference_profile",
               "smart_suggestion", "trace_viewer", "trace_viewer@")
PROGRAM_TOOLS = ("memory_viewer", "graph_viewer")

SHARDED = """HloModule sharded, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b)
}

ENTRY main {
  x = bf16[2048,2048] parameter(0), metadata={op_name="jit(step)/x"}
  w = bf16[2048,4096] parameter(1), metadata={op_name="jit(step)/w"}
  v = bf16[4096,2048] parameter(2), metadata={op_name="jit(step)/v"}
  h = bf16[2048,4096] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/jvp(mlp)/dot_general" source_file="model.py" source_line=7}
  t = bf16[2048,4096] tanh(h), metadata={op_name="jit(step)/jvp(mlp)/tanh" source_file="model.py" source_line=8}
  y = bf16[2048,2048] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(step)/transpose(jvp(mlp))/dot_general"}
  r = bf16[2048,2048] all-reduce(y), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=sum, metadata={op_name="jit(step)/psum"}
  ROOT z = bf16[2048,2048] add(r, x), metadata={op_name="jit(step)/add"}
}
"""


class Results:
    """Counts what holds."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, condition, what):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print("FAILED:", what, flush=True)


class Profile:
    """A run directory of a profile and what the report says of the same run."""

    def __init__(self, name, path, steps=None, report=None, devices=None):
        self.name = name
        self.path = path
        self.steps = steps        # None: at least one
        self.report = report
        self.devices = devices


def run(command, **options):
    done = subprocess.run(command, check=False, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def xplane_of(logdir):
    (path,) = glob.glob(os.path.join(logdir, "plugins", "profile", "*", "*.xplane.pb"))
    return path


class Maker:
    """Makes profiles with the tools of BIN."""

    def __init__(self, tools, directory):
        self.tools = tools
        self.directory = directory

    def tool(self, name):
        return os.path.join(self.tools, name)

    def hlo_run(self, name, module, device, host, steps, devices=1):
        log = os.path.join(self.directory, name)
        flags = [f"--device={device}", "--timing-only", "--json", f"--host=steps={steps},{host}", f"--xplane={log}"]
        report = json.loads(run([self.tool("hlo-run"), module, *flags]))
        return Profile(name, xplane_of(log), steps, report, devices)

    def sharded(self):
        module = os.path.join(self.directory, "sharded.hlo")
        with open(module, "w", encoding="utf-8") as file:
            file.write(SHARDED)
        return self.hlo_run("sharded", module, "v5p:2x2x1", "trace=50us", 6, devices=4)

    def ir_dump(self, name, steps, devices, *flags):
        log = os.path.join(self.directory, name)
        report = os.path.join(self.directory, name + ".report")
        run([self.tool("ir-dump"), f"--steps={steps}", f"--profile={log}", f"--report={report}", *flags])
        with open(os.path.join(report, "report.json"), encoding="utf-8") as file:
            return Profile(name, xplane_of(log), steps, json.load(file), devices)

    def capture(self):
        """Of a program that runs until the capture is done."""
        log = os.path.join(self.directory, "capture")
        command = [self.tool("ir-dump"), "--model=mlp", "--batch=16", "--hidden=32", "--steps=100000000", "--profiler-port=0", "--device=v5e"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as program:
            try:
                address = re.search(r"localhost:\d+", program.stderr.readline()).group()
                run([self.tool("hlo-profile"), "capture", f"--address={address}", f"--logdir={log}", "--duration-ms=500",
                     "--attempts=20"])
            finally:
                program.kill()
        return Profile("capture", xplane_of(log), devices=1)

    def all(self, quick):
        examples = os.path.join(ROOT, "examples")
        yield self.hlo_run("one", os.path.join(examples, "decoder_layer.hlo"), "v5e", "trace=1ms,marker=50us", 8)
        yield self.ir_dump("loader", 20, 8, "--model=mlp", "--batch=256", "--hidden=512", "--device=v3:2x2", "--devices=8",
                           "--loader=workers:2,prefetch:2,cost:5ms")
        if quick:
            return
        yield self.sharded()
        yield self.hlo_run("host", os.path.join(examples, "transformer_block.hlo"), "v6e", "trace=3ms,fetch=20us,fetch_every=2", 10)
        yield self.hlo_run("loop", os.path.join(ROOT, "tests", "golden", "simulate", "timeline.hlo"), "v5e:2x2", "trace=10us", 5, devices=4)
        yield self.ir_dump("many", 4, 8, "--model=mlp", "--batch=64", "--hidden=64", "--device=v5p:4x4x4", "--devices=64")
        yield self.ir_dump("bert", 5, 1, "--model=bert", "--layers=2", "--batch=4", "--device=v5e")
        yield self.capture()


def tool_data(path, tool, **params):
    """Returns the text of a tool, and what was logged meanwhile."""
    saved = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        try:
            data, _ = raw_to_tool_data.xspace_to_tool_data([path], tool, {"use_saved_result": False, **params})
        except (ValueError, RuntimeError) as error:
            data = f"Traceback: {error}"
        finally:
            os.dup2(saved, 2)
            os.close(saved)
        log.seek(0)
        logged = log.read().decode("utf-8", "replace")
    if isinstance(data, bytes):
        data = data.decode("utf-8", "replace")
    return data, logged


def columns(table):
    """The rows of a table of Google's charts, by column id."""
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (cell and cell.get("v") for cell in row["c"]))) for row in table.get("rows", [])]


def table_with(tables, column):
    return next(table for table in tables if any(c["id"] == column for c in table.get("cols", [])))


def near(a, b, relative, absolute=0.0):
    return abs(a - b) <= relative * max(abs(a), abs(b)) + absolute


def check_text(name, text, logged, results):
    """The text has no error, and nothing was logged about the profile."""
    found = [error for error in ERROR_TEXTS if text is not None and error in text]
    results.check(text and not found, f"{name}: {found or 'no data'}: {(text or '')[:200]}")
    error = LOG_ERRORS.search(logged)
    line = error and logged[max(0, error.start() - 100):error.end() + 200]
    results.check(error is None, f"{name} logs: {line}")


def check_tools(profile, results):
    """Every tool gives data without an error. Returns it by tool."""
    offered = set(raw_to_tool_data.xspace_to_tool_names([profile.path]))
    results.check(offered <= set(PLAIN_TOOLS + PROGRAM_TOOLS), f"{profile.name}: offered: {sorted(offered)}")
    # The counters are percentages, which the tool of hardware counters would list as zeros.
    results.check("perf_counters" not in offered, f"{profile.name}: offers perf_counters")
    texts = {}
    for tool in PLAIN_TOOLS:
        texts[tool], logged = tool_data(profile.path, tool)
        check_text(f"{profile.name}: {tool}", texts[tool], logged, results)
    return texts


def check_steps(profile, texts, results):
    """Each step of the host is one of the device, with compute time, and most last as long as the report says."""
    name = profile.name
    steps = columns(table_with(json.loads(texts["input_pipeline_analyzer"]), "stepnum"))
    results.check(len(steps) == profile.steps if profile.steps else len(steps) > 0,
                  f"{name}: {len(steps)} steps, expected {profile.steps or 'some'}")
    parts = ("tcComputeTimeMs", "tcInfeedTimeMs", "tcOutfeedTimeMs", "tcIdleTimeMs", "hostTransferTimeMs", "scv0ComputeTimeMs",
             "scv0InfeedTimeMs")
    times = [sum(step[part] or 0 for part in parts) for step in steps]
    results.check(all(step["tcComputeTimeMs"] > 0 for step in steps), f"{name}: steps without compute time: {steps}")
    pods = json.loads(texts["pod_viewer"])["podStatsSequence"]["podStatsMap"]
    results.check(len(pods) == len(steps), f"{name}: {len(pods)} steps in pod_viewer")
    if profile.devices:
        results.check(all(len(pod["podStatsPerCore"]) == profile.devices for pod in pods),
                      f"{name}: devices in pod_viewer: {[len(pod['podStatsPerCore']) for pod in pods]}")
    numbers = [step["stepnum"] for step in steps]
    overview = columns(table_with(json.loads(texts["overview_page"]), "stepnum"))
    results.check([step["stepnum"] for step in overview] == numbers, f"{name}: steps of overview_page")
    if profile.report is None:
        return
    # The report has the mean time between the ends of the executions of steps, once nothing compiles.
    begins = [sum(times[:k]) for k in range(len(times))]
    ends = [begin + step["tcComputeTimeMs"] for begin, step in zip(begins, steps)]
    means = [(ends[-1] - end) / (len(ends) - 1 - k) for k, end in enumerate(ends[:-1])]
    expected = profile.report["step_time_us"] / 1000
    results.check(any(near(mean, expected, 2e-3, 1e-5) for mean in means),
                  f"{name}: mean step times {means} ms, the report has {expected}")


def check_host_and_device(profile, texts, results):
    """A step has one number on the lines of the host and of all devices."""
    events = json.loads(texts["trace_viewer"])["traceEvents"]
    lines = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    groups = defaultdict(set)
    for e in events:
        if e.get("ph") == "X" and "group_id" in e.get("args", {}):
            line = lines.get((e["pid"], e["tid"]), "")
            kind = "steps" if line == "Steps" else "host" if "_r" in e["args"] or "step_num" in e["args"] else None
            if kind:
                groups[kind].add(str(e["args"]["group_id"]))
    planes = [e["args"]["name"] for e in events if e.get("name") == "process_name"]
    if any(plane.startswith("/host:") for plane in planes):
        results.check(groups["steps"] <= groups["host"] and groups["steps"],
                      f"{profile.name}: steps of the device {sorted(groups['steps'])}, of the host {sorted(groups['host'])}")


def check_programs(profile, results):
    """graph_viewer and memory_viewer open each program; the memory viewer's peak is the report's."""
    directory = os.path.dirname(profile.path)
    programs = [os.path.basename(path)[:-len(".hlo_proto.pb")] for path in glob.glob(os.path.join(directory, "*.hlo_proto.pb"))]
    results.check(programs, f"{profile.name}: no programs")
    peaks = []
    for program in programs:
        for kind in ("short_txt", "long_txt"):
            text, logged = tool_data(profile.path, "graph_viewer", graph_viewer_options={"type": kind, "module_name": program})
            check_text(f"{profile.name}: graph_viewer {kind} {program}", text, logged, results)
            results.check(text.startswith("HloModule"), f"{profile.name}: graph_viewer {kind} {program}: {text[:200]}")
        text, logged = tool_data(profile.path, "memory_viewer", module_name=program, memory_space="0")
        check_text(f"{profile.name}: memory_viewer {program}", text, logged, results)
        peaks.append(json.loads(text or "{}").get("peakHeapMib", 0))
    if profile.report is not None:
        expected = profile.report["memory"]["peak_bytes"] / 2**20
        results.check(any(near(peak, expected, 1e-9, 1e-6) for peak in peaks),
                      f"{profile.name}: peaks of memory_viewer {peaks} MiB, the report has {expected}")


def lost_slices(path):
    """What Perfetto drops of a trace: a slice that begins within another one of its track and ends after it."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    tracks = defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            tracks[e["pid"], e["tid"]].append((round(e["ts"] * 1000), round(e["dur"] * 1000)))
    lost = 0
    for slices in tracks.values():
        open_until = []
        for start, duration in sorted(slices, key=lambda s: s[0]):
            while open_until and open_until[-1] <= start:
                open_until.pop()
            if open_until and start + duration > open_until[-1]:
                lost += 1
            else:
                open_until.append(start + duration)
    return lost, sum(map(len, tracks.values()))


def check_trace(profile, results):
    path = profile.path.replace(".xplane.pb", ".trace.json.gz")
    lost, slices = lost_slices(path)
    results.check(lost == 0 and slices > 0, f"{profile.name}: Perfetto loses {lost} of {slices} slices")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bin")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--jax-profile", action="append", default=[])
    parser.add_argument("--torch-profile", action="append", default=[])
    parser.add_argument("--keep")
    flags = parser.parse_args()
    results = Results()
    with tempfile.TemporaryDirectory() as scratch:
        directory = flags.keep or scratch
        os.makedirs(directory, exist_ok=True)
        jax = [Profile(os.path.basename(os.path.normpath(log)), xplane_of(log), steps=5) for log in flags.jax_profile]
        torch = [Profile(os.path.basename(os.path.normpath(log)), xplane_of(log), steps=5, devices=1) for log in flags.torch_profile]
        for profile in [*jax, *torch, *Maker(flags.bin, directory).all(flags.quick)]:
            texts = check_tools(profile, results)
            check_steps(profile, texts, results)
            check_host_and_device(profile, texts, results)
            check_programs(profile, results)
            if profile not in jax:
                check_trace(profile, results)
    print(f"{results.passed} passed, {results.failed} failed")
    return 1 if results.failed else 0


if __name__ == "__main__":
    sys.exit(main())
