# SPDX-License-Identifier: Apache-2.0
"""Cost, memory, simulation."""

import sys
import types

import pytest

import hlokit


def test_costs(module):
    costs = module.costs()
    assert costs[module["d"]].flops == 2 * 2 * 3 * 4
    assert costs.total.flops >= costs[module["d"]].flops and costs[module["z"]].bytes == 3 * 4 * 6
    with pytest.raises(ValueError):
        costs[hlokit.parse(str(module))["d"]]
    with pytest.raises(KeyError):
        costs[hlokit.Builder(module["d"]).negate(module["x"])]


def test_costs_stay_after_passes(module):
    costs = module.costs()
    flops = costs.total.flops
    hlokit.Builder(module["d"]).negate(module["x"])
    assert module.run("simplify")
    assert costs.total.flops == flops


def test_memory(module):
    memory = module.memory()
    assert memory.argument_bytes == 4 * (6 + 12) and memory.peak_bytes > memory.argument_bytes
    assert {b.kind for b in memory.live_at_peak} <= {"argument", "temporary", "result"}
    assert memory.live_at_peak[0].instruction == module["y"]


def test_simulation(module):
    report = hlokit.simulate(module, "v5e")
    assert report["step_time_us"] > 0 and "ops" in report.tables
    assert all(isinstance(row, dict) for rows in report.tables.values() for row in rows)
    with pytest.raises(ValueError, match="v5"):
        hlokit.simulate(module, "v5x")
    with pytest.raises(ValueError, match="hbm"):
        hlokit.simulate(module, "v5e", scale={"hmb": 2})
    with pytest.raises(ValueError, match="positive"):
        hlokit.simulate(module, "v5e", scale={"hbm": -2})
    with pytest.raises(ValueError, match="bf16"):
        hlokit.simulate(module, "v5e", dtype="s8")
    with pytest.raises(hlokit.PassError):
        hlokit.simulate(module, "v5e", pipeline="nothing")
    with pytest.raises(KeyError, match="step_time_us"):
        report["step_time"]
    assert "v5p" in hlokit.devices()


def test_frames(module, monkeypatch):
    report = hlokit.simulate(module, "v5e")
    with pytest.raises(KeyError, match="ops"):
        report.frame("step_time_us")

    class Frame(list):
        """What pandas.DataFrame is given here."""

    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=Frame))
    assert report.frame("ops") == Frame(report["ops"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError):
        report.frame("ops")


def test_frames_of_pandas(module):
    pandas = pytest.importorskip("pandas")
    frame = hlokit.simulate(module, "v5e").frame("ops")
    assert isinstance(frame, pandas.DataFrame) and len(frame) > 0


def test_sweeps(module):
    rows = hlokit.sweep(module, ["v5e", "v5p:2x2x1"])
    assert [row["device"] for row in rows] == ["v5e", "v5p:2x2x1"]
    rows = hlokit.sweep(module, "v5e", chips=[1, 4], scale={"hbm": [1, 2]}, dtype=["f32", "bf16"])
    points = [(row["chips"], row["dtype"], row["hbm"]) for row in rows]
    assert len(points) == 8 and points[0] == (1, "f32", 1) and points[-1] == (4, "bf16", 2)
    assert rows[-1]["step_time_us"] > 0


def test_sweeps_of_batch_sizes():
    m = hlokit.parse("""HloModule b
ENTRY e {
  x = f32[8,128] parameter(0)
  w = f32[128,128] parameter(1)
  ROOT d = f32[8,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}""")
    rows = hlokit.sweep(m, "v5e", batch=(8, [8, 65536]))
    assert [row["batch"] for row in rows] == [8, 65536] and rows[0]["step_time_us"] < rows[1]["step_time_us"]
    assert m["x"].shape.dims == (8, 128)


def test_annotations(module):
    found = module.annotations()
    assert found.annotations == 2 and found.instructions == 11
    assert found.without_metadata == len(found.missing) == 9
    scopes = {s.name: s for s in found.scopes}
    assert scopes[""].depth == 0 and scopes[""].instructions == 8
    assert scopes["net/dense"].flops == 2 * 2 * 3 * 4 and scopes["net"].instructions == 2
    assert all(i.parent in module.computations and reason for i, reason in found.missing)


def test_fingerprints(module):
    other = hlokit.parse(str(module).replace("%z", "%w").replace("net/dense/dot", "net/other/dot"))
    assert other.fingerprint() == module.fingerprint()
    assert other.fingerprint(metadata=True) != module.fingerprint(metadata=True)
    difference = hlokit.fingerprint_diff(module, other)
    assert not difference and difference.same and set(difference.ignored) >= {"metadata", "names"}
    other["d"].replace_operand(0, other["x"])
    difference = hlokit.fingerprint_diff(module, other)
    assert difference and [step[0].name for step in difference.path][:2] == ["r", "d"]
    assert difference.path[-1][0] == module["z"] and difference.path[-1][1] == other["x"]
    assert difference.differences and "multiply" in str(difference)
