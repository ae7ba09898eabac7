# SPDX-License-Identifier: Apache-2.0
"""The graphs of programs of hlokit.torch: how many a step takes, what breaks one, why one is compiled again, and what the
variables of PyTorch/XLA say of it."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import hlokit.torch as ht  # noqa: E402
import hlokit.torch.xla_model as xm  # noqa: E402

HERE = pathlib.Path(__file__).name


@pytest.fixture(autouse=True)
def session():
    configure()
    yield
    ht.explain_recompiles()


def configure(**options):
    defaults = {"devices": 1, "pipeline": "default", "debug": True, "fake": False, "replicas": 1, "engine": "exact"}
    ht.configure(**{**defaults, **options}, num_threads=0)


def vector(*values):
    return torch.tensor([float(v) for v in values]).to(ht.device())


# ---- the graphs of steps ----


def test_a_fetch_breaks_the_graph_of_a_step():
    with ht.trace() as t:
        for _ in range(2):
            s = vector(1, 2).sum()
            assert s.item() == 3
            y = vector(1, 2).relu()
            ht.mark_step()
            del s, y
        while_it_runs = t.graph_report()
    lines = t.graph_report().splitlines()
    assert while_it_runs.splitlines() == lines
    place = rf"test_a_fetch_breaks_the_graph_of_a_step@{HERE}:\d+"
    assert lines[0] == "step 1 on CPU:0: 2 graphs"
    fetch = re.fullmatch(rf"  ([0-9a-f]+) compiled, 2 nodes, 1 input, 1 output, 0 donated, item of aten::sum, at {place}", lines[1])
    assert re.fullmatch(rf"  [0-9a-f]+ compiled, \d nodes, \d inputs?, 2 outputs, 0 donated, step, at {place}", lines[2])
    assert lines[3] == "step 2 on CPU:0: 2 graphs" and lines[4].startswith(f"  {fetch[1]} cached")
    assert lines[6] == "2 steps, 4 graphs run, at most 2 a step, 2 different, 2 compiled, 0 loaded"
    assert re.fullmatch(rf"broken by item of aten::sum, at {place}: 2 times", lines[7]) and len(lines) == 8


def test_a_training_step_is_one_program():
    w = torch.rand(5, 3).to(ht.device()).requires_grad_()
    x = torch.rand(4, 3).to(ht.device())
    ht.metrics.clear_all()
    with ht.trace() as t:
        for _ in range(3):
            w.grad = None
            loss = torch.nn.functional.linear(x, w).relu().mean()
            loss.backward()
            with torch.no_grad():
                w.add_(w.grad, alpha=-0.1)
            ht.mark_step()
    counters = {name: ht.metrics.counter_value(name) for name in ("CachedCompile", "MarkStep", "UncachedCompile")}
    assert counters == {"CachedCompile": 2, "MarkStep": 3, "UncachedCompile": 1}
    assert ht.metrics.counter_value("xla::threshold_backward") == 3
    assert "3 steps, 3 graphs run, at most 1 a step, 1 different, 1 compiled" in t.graph_report()


def test_graphs_of_devices_are_reported_in_order():
    def reported():
        ht.configure(devices=4)

        def run(index):
            x = torch.ones(4).to(xm.xla_device())
            for _ in range(5):
                x = xm.all_reduce("sum", x)
                xm.mark_step()

        with ht.trace() as t:
            ht.spawn(run, nprocs=4)
        return t.graph_report()

    first = reported()
    lines = first.splitlines()
    assert lines[0] == "step 1 on CPU:0: 1 graph" and " compiled, " in lines[1]
    assert [line.split()[3].rstrip(":") for line in lines[0:8:2]] == ["CPU:0", "CPU:1", "CPU:2", "CPU:3"]
    assert all(" cached, " in line for line in lines[3:9:2]) and lines[8] == "step 2 on CPU:0: 1 graph"
    assert {reported() for _ in range(5)} == {first}


def test_metrics_are_read_while_other_devices_record():
    def run(index):
        x = torch.rand(4).to(xm.xla_device())
        for i in range(4):
            y = x + i
            ht.pending(y)
            assert "MarkStep" in ht.metrics_report() or i == 0
            xm.mark_step()

    ht.spawn(run, nprocs=2)
    assert ht.metrics.counter_value("MarkStep") == 8


# ---- explanations of compilations ----


def another_shape():
    a = vector(1, 2).relu()
    ht.mark_step()
    b = vector(1, 2, 3).relu()
    ht.mark_step()
    return a, b


def another_number():
    a = vector(1, 2)
    b = a * 0.5
    ht.mark_step()
    c = a * 1.0
    ht.mark_step()
    return b, c


def another_operand():
    a, b, c = (torch.rand(2, 2).to(ht.device()) for _ in range(3))
    x, y = b.relu(), c.relu()
    p = a * x
    q = p + y
    ht.mark_step()
    x, y, q = b.relu(), c.relu(), None
    p = a * y
    q = p + x
    ht.mark_step()
    return q


def numbers_that_are_shared():
    a = vector(1, 2)
    c = a * 0.5
    d = c * 0.5
    ht.mark_step()
    c = a * 0.5
    d = c * 0.25
    ht.mark_step()
    return d


def a_step_after_a_fetch():
    b = vector(1).sum()
    b.item()
    ht.mark_step()


def another_op():
    a = vector(-1, 2)
    b = a.relu()
    ht.mark_step()
    b = a.tanh()
    ht.mark_step()
    return b


def another_attribute():
    a = torch.rand(2, 2).to(ht.device())
    b = a.softmax(0)
    ht.mark_step()
    b = a.softmax(1)
    ht.mark_step()
    return b


def another_donation():
    w, g = vector(1, 2), vector(3, 4)
    s = w + g
    ht.mark_step()
    s = None
    w.add_(g)
    ht.mark_step()
    return s


def other_results():
    a = vector(1, 2)
    b = a.relu()
    c = b.tanh()
    ht.mark_step()
    b = a.relu()
    c = b.tanh()
    b = None
    ht.mark_step()
    return b, c


def explained(program, **options):
    """What is said of the compilations of a program, in a session of its own; lines of this file are LINE."""
    configure(**options)
    program()
    xm.wait_device_ops()
    return [re.sub(rf"{program.__name__}@{HERE}:\d+", "LINE", text) for text in ht.explain_recompiles()]


@pytest.mark.parametrize("program, difference", [
    (another_shape, "the shape of xla::device_data became f32[3]{0}, it was f32[2]{0}"),
    (another_number, "xla::device_data became prim::Constant"),
    (another_operand, "%5 (LINE) and %5 (LINE): operand 1 of aten::mul became %3, it was %1"),
    (numbers_that_are_shared,
     "parameter order: leaf 2, taken by aten::mul (LINE), is parameter 2; it was 0, taken by aten::mul (LINE)"),
    (a_step_after_a_fetch,
     "a step or print of aten::sum (LINE); before it was a fetch that keeps the graph of aten::sum (LINE)"),
    (another_op, "%1 (LINE) and %1 (LINE): op aten::relu became aten::tanh"),
    (another_attribute, "%1 (LINE) and %1 (LINE): dim of aten::softmax became 1, it was 0"),
    (another_donation, "donation: parameters that results may reuse are 1 of aten::add (LINE); before it were none"),
    (other_results, "ROOT of aten::relu became absent, it was 0"),
], ids=lambda value: getattr(value, "__name__", ""))
def test_a_compilation_is_explained_by_the_first_difference(program, difference):
    first, second = explained(program)
    assert first.endswith("outputs): the first of this device")
    assert ": nearest is " in second and difference in second.split("first difference: ")[1]


def training(one=1.0):
    w, x = vector(1, 2).requires_grad_(), vector(3, 4)
    loss = torch.rsub(w * x, one).sum()
    loss.backward()
    with torch.no_grad():
        w.add_(w.grad, alpha=-0.5)
    ht.mark_step()


def training_with_another_number():
    training(0.5)


SPECIAL = {"XLA_NO_SPECIAL_SCALARS": "1"}
ALIASING = {"XLA_ENABLE_PARAM_ALIASING": "0"}
OTHER = "the stored program has other options: "


# What is stored: a program, variables and options of the session; what is looked for; what is said of it.
@pytest.mark.parametrize("stored, stored_options, program, variables, options, said", [
    (another_op, {"pipeline": "cse,dce"}, another_op, {}, {}, OTHER + "pipeline is `default`, it was `cse,dce`"),
    (another_op, {}, another_op, {"XLA_PARAMETER_WRAPPING_THREADSHOLD": "1"}, {},
     OTHER + "XLA_PARAMETER_WRAPPING_THREADSHOLD is `1`, it was `3200`"),
    # Options that change the graph itself.
    (training, {}, training, SPECIAL, {}, OTHER + "XLA_NO_SPECIAL_SCALARS is `1`, it was `0`"),
    (training, {}, training, ALIASING, {}, OTHER + "XLA_ENABLE_PARAM_ALIASING is `0`, it was `1`"),
    (training, {}, training, {}, {"debug": True}, OTHER + "XLA_IR_DEBUG is `1`, it was `0`"),
    (training, {}, training, {**SPECIAL, **ALIASING}, {"pipeline": "cse"},
     OTHER + "XLA_NO_SPECIAL_SCALARS is `1`, it was `0`; XLA_ENABLE_PARAM_ALIASING is `0`, it was `1`; pipeline is `cse`, it was "
     "`default`"),
    # Another graph anyway, which they do not explain.
    (training, {}, training_with_another_number, SPECIAL, {}, "the first of this device"),
])
def test_a_program_that_is_stored_with_other_options_is_said_to_be(stored, stored_options, program, variables, options, said,
                                                                   monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_PERSISTENT_CACHE_PATH", str(tmp_path / "programs"))
    explained(stored, **{"debug": False, **stored_options})
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    explanations = explained(program, **{"debug": False, **options})
    assert explanations and all(text.endswith("): " + said) for text in explanations), explanations


def test_a_stored_program_in_which_options_change_nothing_is_found(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_PERSISTENT_CACHE_PATH", str(tmp_path / "programs"))
    explained(other_results, debug=False)
    for name, value in {**SPECIAL, **ALIASING}.items():
        monkeypatch.setenv(name, value)
    assert not any("stored program" in text for text in explained(other_results, debug=False))
    assert ht.metrics.counter_value("PersistentCacheHit") == 2


# ---- variables of PyTorch/XLA ----


def exponentials():
    x = torch.rand(262144).to(ht.device())
    y = x.exp()
    ht.mark_step()
    x = None
    y.sum().item()
    return x


ANALYSIS = re.compile(rf"""
Compilation Analysis: ={{80}}
Compilation Analysis: Compilation Cause
Compilation Analysis:   user torch_xla.sync
Compilation Analysis: Graph Info: ?
Compilation Analysis:   Graph Hash: (?P<hash>[0-9a-f]+)
Compilation Analysis:   Number of Graph Inputs: 1
Compilation Analysis:   Number of Graph Outputs: 1
Compilation Analysis: Python Frame Triggered Execution: ?
Compilation Analysis:   exponentials \(\S*{HERE}:\d+\)
(?s:.*)
Post Compilation Analysis: Graph input size: 0.000977 GB
Post Compilation Analysis: Graph output size: 0.000977 GB
Post Compilation Analysis: Aliased Input size: 0.000000 GB
(?s:.*)
Execution Analysis:   user torch_xla.sync
Execution Analysis: Graph Info: ?
Execution Analysis:   Graph Hash: (?P=hash)
(?s:.*)
Execution Analysis:   most likely user code trying to access tensor value before torch_xla.sync
""")


def test_debugging_output_has_causes_and_sizes(monkeypatch, tmp_path, capfd):
    log = tmp_path / "log"
    for name, value in {"PT_XLA_DEBUG": "1", "PT_XLA_DEBUG_FILE": str(log)}.items():
        monkeypatch.setenv(name, value)
    configure()
    exponentials()
    xm.wait_device_ops()
    assert ANALYSIS.search(log.read_text()), log.read_text()
    assert "Analysis" not in capfd.readouterr().err


@pytest.mark.parametrize("variables, wanted", [
    ({"PT_XLA_DEBUG_LEVEL": "1"}, {"Compilation Analysis", "Post Compilation Analysis"}),
    ({"PT_XLA_DEBUG": "1", "PJRT_LOCAL_PROCESS_RANK": "1"}, set()),
    ({"PT_XLA_DEBUG": "1"}, {"Compilation Analysis", "Post Compilation Analysis", "Execution Analysis"}),
])
def test_debugging_output_is_as_much_as_is_asked_for(variables, wanted, monkeypatch, capfd):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    configure()
    exponentials()
    xm.wait_device_ops()
    said = capfd.readouterr().err
    assert set(re.findall(r"^(\w[\w ]*Analysis): ", said, re.M)) == wanted, said


def test_transfers_in_each_step_are_advised_against_once_and_metrics_are_written(monkeypatch, tmp_path, capfd):
    metrics = tmp_path / "metrics"
    for name, value in {"PT_XLA_DEBUG": "1", "XLA_METRICS_FILE": str(metrics), "XLA_METRICS_PERCENTILES": "0.5",
                        "XLA_EMIT_STEPLOG": "1"}.items():
        monkeypatch.setenv(name, value)
    configure()
    for _ in range(4):
        vector(1, 2).sum().item()
        ht.mark_step()
    said = capfd.readouterr().err
    assert re.findall(r"^pt-xla-profiler: .*", said, re.M)[0].startswith("pt-xla-profiler: TransferFromDeviceTime too frequent: 1 "
                                                                         "counts during 1 steps; most often item of aten::sum at ")
    assert said.count("pt-xla-profiler: TransferFromDeviceTime") == 1
    assert said.count("torch_xla.torch_xla::sync") == 4
    text = metrics.read_text()
    assert text.startswith("[MetricsData; step=1]\nMetric: CompileTime\n") and "[MetricsData; step=2]" in text
    assert re.search(r"^  Percentiles: 50%=[^;]*$", text, re.M)


def test_scopes_are_in_the_graph_and_in_the_hlo():
    x = vector(-1, 1)
    with ht.profiler.Trace("block"), ht.profiler.Trace("act"):
        y = x.relu()
    graph = ht.pending(y)
    assert re.search(rf"%1 = f32\[2\]\{{0\}} aten::relu\(%0\), scope=block\.\d+/act\.\d+, location=\w+@{HERE}:\d+, ", graph.lazy_ir)
    line = next(line for line in graph.hlo.splitlines() if " maximum(" in line)
    metadata = rf'op_type="aten__relu" op_name="block\.\d+/act\.\d+/aten__relu" source_file="\S*{HERE}" source_line=\d+'
    assert re.search(metadata, line)
