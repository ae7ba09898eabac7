# SPDX-License-Identifier: Apache-2.0
"""Cost, memory, simulation."""

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
    assert report.tables
    with pytest.raises(ValueError, match="v5"):
        hlokit.simulate(module, "v5x")
    rows = hlokit.sweep(module, ["v5e", "v5p:2x2x1"])
    assert [row["device"] for row in rows] == ["v5e", "v5p:2x2x1"]
