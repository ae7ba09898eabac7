# SPDX-License-Identifier: Apache-2.0
"""Pipelines, and passes in Python among those of the library."""

import io
import os
import signal
import sys
import types

import numpy as np
import pytest

import hlokit
from hlokit import _progress

X, Y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)


@hlokit.rewrite("multiply(%a, broadcast(%c))", name="test-sum")
def double_is_a_sum(match):
    """Writes a product by two as a sum."""
    return hlokit.Builder(match.root).add("add", match["a"], match["a"])


@hlokit.module_pass(name="test-wrong")
def wrong(m):
    """Computes something else."""
    z = m["z"]
    z.replace_all_uses_with(hlokit.Builder(m["d"]).negate(z))


def test_python_passes_are_passes(module):
    assert hlokit.passes()["test-sum"] == "Writes a product by two as a sum"
    stats = module.run("clean(test-sum,dce)*", stats=True)
    assert [s.name for s in stats][:2] == ["test-sum", "dce"] and stats[0].place == "clean"
    assert stats[0].changed and stats[0].counts == {"matches replaced": 1} and stats[0].seconds > 0
    assert module.run_on(X, Y).tolist() == [24, 24]
    with pytest.raises(hlokit.PassError, match="test-sum"):
        module.run("test-sun")
    with pytest.raises(hlokit.PassError, match="option"):
        module.run("test-sum{fast}")


def test_print_changed(module):
    out = io.StringIO()
    module.run("test-sum,dce", print_changed="diff", file=out)
    assert "test-sum" in out.getvalue() and "+  %add = f32[2,3]{1,0} add(%x, %x)" in out.getvalue()
    out = io.StringIO()
    module.run("dce,cse", print_before="cse", print_after="d.e", file=out)
    assert out.getvalue().count("HloModule") == 2
    out = io.StringIO()
    module.run("dce", print_changed=True, file=out)
    assert "ENTRY" not in out.getvalue()  # nothing changes any more
    with pytest.raises(ValueError, match="full"):
        module.run("dce", print_changed="some")
    with pytest.raises(hlokit.PassError):
        module.run("dce", print_after="(")


def test_verify_each(module):
    @hlokit.module_pass(name="test-invalid")
    def invalid(m):
        m["x"].set_attribute("sharding", "{devices=[1,1,1,2]<=[2]}")

    text = str(module)
    with pytest.raises(hlokit.PassError, match="test-invalid"):
        module.run("test-invalid", verify_each=True)
    assert str(module) == text


def test_run_before_after(module):
    text = str(module)
    assert module.run("test-sum,dce,simplify", run_before_after=True)
    again = hlokit.parse(text)
    with pytest.raises(hlokit.PassError, match="test-wrong"):
        again.run("dce,test-wrong", run_before_after=True)
    assert str(again) == text
    assert again.run("test-wrong", run_before_after=True, run_tolerance="rel:10,abs:1e9")
    with pytest.raises(hlokit.PassError):
        again.run("dce", run_before_after=True, run_tolerance="nonsense")


def test_handles_in_passes(module):
    """Inside a pass, handles made before it see what earlier passes did, and stay those of their instructions."""
    d, z = module["d"], module["z"]
    seen = []

    @hlokit.module_pass(name="test-look")
    def look(m):
        assert m is module
        seen.append((z.is_dead, d.operands[0].opcode, len(m.entry)))
        return False

    module.run("test-look,test-sum,test-look")
    assert seen[0][:2] == (False, "multiply") and seen[1][:2] == (True, "add")
    assert d.operands[0].opcode == "add" and z.is_dead


def test_a_pass_that_forgets_to_say_so(module):
    @hlokit.module_pass(name="test-silent")
    def silent(m):
        m["d"].rename("renamed")

    assert module.run("test-silent") is True and module["renamed"].opcode == "dot"


def test_pipelines_in_passes(module):
    @hlokit.module_pass(name="test-nested")
    def nested(m):
        return m.run("test-sum,dce")

    assert module.run("test-nested,simplify") and module.find(opcode="multiply") == []
    assert module.run_on(X, Y).tolist() == [24, 24]

    @hlokit.module_pass(name="test-endless")
    def endless(m):
        return m.run("test-endless")

    text = str(module)
    with pytest.raises(hlokit.PassError, match="nested"):
        module.run("test-endless")
    assert str(module) == text


def test_runs_in_passes(module):
    values = []

    @hlokit.module_pass(name="test-evaluate")
    def evaluate(m):
        values.append(m.run_on(X, Y).tolist())
        values.append(m.run_on(X, Y, engine="reference").tolist())

    module.run("test-sum,test-evaluate")
    assert values == [[24, 24], [24, 24]]


def test_definitions_replace_earlier_ones(module):
    for name in ("one", "two"):

        @hlokit.module_pass(name="test-again")
        def again(m, name=name):
            m["d"].rename(name)

    module.run("test-again")
    assert module["two"].opcode == "dot"


def test_definitions_are_checked():
    with pytest.raises(hlokit.QueryError):
        hlokit.rewrite("dot(")
    with pytest.raises(ValueError, match="lower case"):
        hlokit.module_pass(lambda m: False, name="Bad Name")
    for name in ("dce", "simplify"):
        with pytest.raises(ValueError, match="there is a pass"):
            hlokit.module_pass(lambda m: False, name=name)
    with pytest.raises(TypeError):
        hlokit.module_pass(5)


def test_progress(module):
    calls = []
    hlokit.progress(lambda *call: calls.append(call))
    try:
        module.run("dce,cse,test-sum")
        hlokit.sweep(module, ["v5e", "v5p"])
    finally:
        hlokit.progress(None)
    assert calls[:3] == [("passes", 1, 3, "dce"), ("passes", 2, 3, "cse"), ("passes", 3, 3, "test-sum")]
    assert calls[-1] == ("sweep", 1, 2, "device=v5p")
    with pytest.raises(TypeError):
        hlokit.progress("on")


def test_progress_is_a_line(module, capsys):
    module.run("dce,cse")
    assert capsys.readouterr().err == ""  # no terminal
    hlokit.progress(True)
    try:
        module.run("dce,cse")
    finally:
        hlokit.progress(None)
    shown = capsys.readouterr().err
    assert "passes [" in shown and "of 2" in shown and shown.endswith(" \r")


def test_progress_in_a_notebook(module, monkeypatch):
    """In the kernel of a notebook, an output is shown and updated; this is what is used of IPython."""
    shown = []

    class Handle:
        def update(self, data):
            shown.append(data)

    def display(data, display_id=None):
        shown.append(data)
        return Handle()

    class ZMQInteractiveShell:
        pass

    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=ZMQInteractiveShell))
    monkeypatch.setitem(sys.modules, "IPython.display", types.SimpleNamespace(HTML=str, display=display))
    monkeypatch.setattr(_progress, "_DELAY_SECONDS", 0)
    monkeypatch.setattr(_progress, "_INTERVAL_SECONDS", 0)
    module.run("dce,cse")
    assert shown[0].startswith("<pre>passes [") and "2 of 2" in shown[1] and shown[-1] == ""


def test_interrupts_between_passes(module):
    @hlokit.module_pass(name="test-signal")
    def signals(m):
        m["d"].rename("changed")
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        module.run("test-signal,dce,cse")
    assert module["d"].opcode == "dot"


def test_interrupts_in_passes(module):
    @hlokit.module_pass(name="test-interrupted")
    def interrupted(m):
        m["d"].rename("changed")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        module.run("test-interrupted")
    assert module["d"].opcode == "dot"
