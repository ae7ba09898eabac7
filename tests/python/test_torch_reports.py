# SPDX-License-Identifier: Apache-2.0
"""Reports of programs of hlokit.torch on simulated TPUs: what they advise, with lines of the program, and that the model of
the host agrees with the threads as they ran."""

import pathlib

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import hlokit.torch as ht  # noqa: E402
import hlokit.torch.profiler as xp  # noqa: E402
import hlokit.torch.xla_model as xm  # noqa: E402

HERE = str(pathlib.Path(__file__))
# The first optimizer imports parts of PyTorch, whose time would be the program's own.
torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)


def report_of(program, devices=1):
    ht.configure(devices=devices, pipeline="default", debug=True, fake=False, replicas=1, engine="exact", num_threads=0)
    with ht.trace() as t:
        program()
    return t.simulate("v5e").document()


def line_of(text):
    """The place in this file of the first line with a text."""
    lines = pathlib.Path(__file__).read_text().splitlines()
    return f"{HERE}:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def matrices(n):
    return torch.rand(n, n).to(ht.device()), torch.rand(n, n).to(ht.device())


# ---- situations that profiles are read for ----


def fetch_in_each_step():
    x, w = matrices(1024)
    for _ in range(12):
        with xp.Trace("forward"):
            loss = (x @ w).mean()
        ht.mark_step()
        loss.item()  # fetched


def op_without_a_lowering():
    x, w = matrices(64)
    for _ in range(12):
        with xp.Trace("forward"):
            total = (x @ w).nonzero().sum()  # on the host
        ht.mark_step()
    return total


def shapes_that_change():
    x, _ = matrices(64)
    for rows in range(1, 7):
        y = x[:rows] @ x
        ht.mark_step()  # compiled
    return y


def recording_that_takes_longer():
    x = torch.rand(8).to(ht.device())
    for _ in range(12):
        with xp.Trace("forward"):  # recorded
            for _ in range(100):
                x.mul_(0.5)
        ht.mark_step()


@pytest.mark.parametrize("program, title, parts", [
    (fetch_in_each_step, "Fetch values less often", ["6 of 6 steps wait for a value: ", " It is at {}.", "# fetched"]),
    (op_without_a_lowering, "Avoid ops without a lowering", [": aten::nonzero at {}.", "# on the host"]),
    (shapes_that_change, "Stop compiling in the loop",
     ["waiting for: compile. It differs from the graph before in: ", "the shape of xla::generic_slice became ", ", at {}.",
      "# compiled"]),
    (recording_that_takes_longer, "Record the step once",
     ["waiting for: IR generation. Most of it: forward, at {}.", "# recorded"]),
], ids=lambda value: getattr(value, "__name__", ""))
def test_a_situation_is_found_with_its_line(program, title, parts):
    report = report_of(program)
    assert report["missing"] == []
    evidence = {advice["title"]: advice["evidence"] for advice in report["recommendations"]}
    for part in parts[:-1]:
        assert part.format(line_of(parts[-1])) in evidence[title], evidence
    if program is op_without_a_lowering:
        assert sum(graph["runs_per_step"] > 0 for graph in report["graphs"]) == 2


# ---- the model of the host ----


def training_with_fetches():
    model = torch.nn.Linear(256, 256).to(ht.device())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.rand(64, 256).to(ht.device())
    for i in range(6):
        optimizer.zero_grad(set_to_none=True)
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        if i % 2 == 1:
            loss.item()
        ht.mark_step()


def training_on_two_devices():
    def run(index):
        torch.manual_seed(0)
        model = torch.nn.Linear(8, 8).to(xm.xla_device())
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.rand(4, 8).to(xm.xla_device())
        for _ in range(6):
            optimizer.zero_grad(set_to_none=True)
            model(x).mean().backward()
            xm.optimizer_step(optimizer)
            xm.mark_step()

    ht.spawn(run, nprocs=2)


@pytest.mark.parametrize("program, threads", [
    (training_with_fetches, ["main", "TPU:0 runtime"]),
    (training_on_two_devices, ["replica 0", "replica 1", "TPU:0 runtime", "TPU:1 runtime"]),
], ids=lambda value: getattr(value, "__name__", ""))
def test_the_model_of_the_host_agrees_with_the_threads(program, threads):
    report = report_of(program, sum("runtime" in thread for thread in threads))
    assert sum("as they ran" in check["what"] for check in report["checks"]) == 1 and report["missing"] == []
    host = report["host"]
    assert sorted(thread["thread"] for thread in host["threads"]) == sorted(threads)
    runtime = next(thread for thread in host["threads"] if thread["thread"] == "TPU:0 runtime")
    replayed = max(span[1] + span[2] for span in runtime["spans"])
    modeled = max(activity[3] + activity[4] for activity in host["activities"])
    assert modeled == pytest.approx(replayed, rel=0.02)


def test_which_device_compiled_does_not_change_the_report():
    reports = [report_of(training_on_two_devices, 2) for _ in range(2)]
    compiles = [[sum(span[0].endswith("::Compile") for span in thread["spans"]) for thread in report["host"]["threads"]
                 if thread["thread"].startswith("replica")] for report in reports]
    assert compiles[0] == compiles[1] and compiles[0][0] == compiles[0][1] > 0
    for report in reports:
        for graph in report["graphs"]:
            graph["compile"].pop("measured_us", None)
            graph.pop("module")  # numbered
    assert reports[0]["graphs"] == reports[1]["graphs"]


def test_spans_of_a_profile_have_lines_of_the_program(tmp_path):
    x, _ = matrices(16)
    xp.start_trace(str(tmp_path), device="v5e")
    for step in range(3):
        with xp.StepTrace("train", step_num=step):
            with xp.Trace("attention"):  # the span
                x = x @ x
    folder = pathlib.Path(xp.stop_trace())
    plane = next(folder.glob("*.xplane.pb")).read_bytes()
    assert b"attention" in plane and line_of("# the span").encode() in plane


def test_a_program_that_executes_nothing_has_no_report():
    with ht.trace() as t:
        pass
    with pytest.raises(RuntimeError, match="nothing was executed"):
        t.simulate("v5e")
