# SPDX-License-Identifier: Apache-2.0
"""Editing, building, passes."""

import numpy as np
import pytest

import hlokit


def test_replace_and_erase(module):
    z, x = module["z"], module["x"]
    with pytest.raises(hlokit.EditError, match="has users"):
        z.erase()
    z.replace_all_uses_with(x)
    assert module["d"].operands[0] == x and z.users == []
    z.erase()
    assert z.is_dead and repr(z) == "<erased Instruction>"
    for use in (lambda: z.name, lambda: z.users, lambda: z.erase(), lambda: z.replace_all_uses_with(x)):
        with pytest.raises(hlokit.DeadHandleError):
            use()
    module.verify()
    assert module.run_on(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)).tolist() == [12, 12]


def test_bad_edits_change_nothing(module):
    text = str(module)
    for edit in (
        lambda: module["z"].replace_all_uses_with(module["d"]),
        lambda: module["d"].replace_operand(0, module["y"]),
        lambda: module["z"].replace_operand(0, module["d"]),
        lambda: module["d"].set_attribute("lhs_contracting_dims", (0,)),
        lambda: module["d"].set_attribute("lhs_contractin_dims", (1,)),
        lambda: module["r"].erase(),
        lambda: module["d"].clone([module["x"]]),
        lambda: module["z"].replace_all_uses_with(module["s"]),
    ):
        with pytest.raises(hlokit.EditError):
            edit()
        assert str(module) == text
    with pytest.raises(ValueError):
        module["z"].replace_all_uses_with(hlokit.parse(text)["x"])


def test_set_attribute(module):
    d = module["d"]
    d.set_attribute("frontend_attributes", {"key": 'a "b"'})
    assert d.attributes["frontend_attributes"] == {"key": 'a "b"'}
    d.set_attribute("sharding", "{replicated}")
    assert d.attributes["sharding"].kind == "replicated"
    d.set_attribute("sharding", None)
    assert "sharding" not in d.attributes
    module["r"].set_attribute("to_apply", module["add"])
    d.set_metadata(op_name="here/there", source_line=3)
    assert (d.metadata.op_name, d.metadata.source_line) == ("here/there", 3)
    module.verify()


def test_every_attribute_value_can_be_set(module):
    text = str(module)
    for i in list(module.instructions()):
        for name, value in i.attributes.items():
            i.set_attribute(name, value)
    assert str(module) == text


def test_iteration_while_editing(module):
    seen = []
    for i in module.entry:
        seen.append(i.name)
        if i.name == "x":
            module["z"].replace_all_uses_with(module["x"])
            module["z"].erase()
    assert "z" not in seen and "d" in seen


def test_builder():
    m = hlokit.module("built")
    b = hlokit.Builder(m.entry)
    x = b.parameter("f32[4,8]", "x")
    w = b.parameter("f32[8,2]")
    y = b.dot(x, w, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))
    c = b.constant(0.5)
    half = b.broadcast(c, shape="f32[4,2]", dimensions=())
    b.set_root(b.tanh(b.multiply(y, half), name="out"))
    m.verify()
    assert m.entry.root.name == "out" and m.entry.root.shape.dims == (4, 2)
    value = m.run_on(np.ones((4, 8), np.float32), np.full((8, 2), 0.25, np.float32))
    np.testing.assert_allclose(value, np.tanh(1.0), rtol=1e-6)
    with pytest.raises(hlokit.EditError):
        b.add("add", x, w)
    with pytest.raises(hlokit.EditError):
        b.add(x, w)
    with pytest.raises(hlokit.EditError, match="did you mean"):
        b.add("tanhh", x)
    count = m.instruction_count
    before = hlokit.Builder(m.entry.root)
    before.negate(y)
    assert m.instruction_count == count + 1


def test_reducer():
    m = hlokit.module()
    add = m.add_computation("add")
    b = hlokit.Builder(add)
    b.set_root(b.add(b.parameter("f32[]"), b.parameter("f32[]")))
    assert add.root.opcode == "add"
    e = hlokit.Builder(m.entry)
    e.set_root(e.reduce(e.parameter("f32[3,4]"), e.constant(0.0), dimensions=(1,), to_apply=add))
    m.verify()
    assert m.run_on(np.ones((3, 4), np.float32)).tolist() == [4, 4, 4]


def test_passes(module):
    assert module.run("simplify") is False
    hlokit.Builder(module["z"]).negate(module["x"])
    stats = module.run("simplify", stats=True)
    assert any(s.changed for s in stats) and all(s.seconds >= 0 for s in stats)
    with pytest.raises(hlokit.PassError, match="did you mean"):
        module.run("simplfy")
    assert "simplify" in hlokit.passes()


def test_failing_passes_change_nothing(module):
    added = []

    @hlokit.module_pass(name="test-fails-on-purpose")
    def fails(m):
        m["r"].rename("changed")
        added.append(hlokit.Builder(m["changed"]).constant(1.0))
        raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError):
        module.run("test-fails-on-purpose")
    assert module["r"].name == "r"
    assert added[0].is_dead and repr(added[0]) == "<erased Instruction>"
    assert hlokit.Builder(module["r"]).constant(2.0) != added[0]
    with pytest.raises(hlokit.DeadHandleError):
        added[0].name


def test_computations_without_a_root():
    m = hlokit.module()
    for computation in (m.entry, m.add_computation("f")):
        with pytest.raises(hlokit.EditError, match="no root"):
            computation.root
        b = hlokit.Builder(computation)
        computation.set_root(b.parameter("f32[]"))
        assert computation.root.opcode == "parameter"


def test_values_that_contain_themselves(module):
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested"):
        module["d"].set_attribute("lhs_contracting_dims", endless)


def test_insertion_points(module):
    before, behind = hlokit.Builder(module["d"]), hlokit.Builder.after(module["d"])
    before.negate(module["x"], name="first"), behind.negate(module["d"], name="second")
    names = [i.name for i in module.entry]
    assert names.index("first") + 1 == names.index("d") == names.index("second") - 1
    last = hlokit.Builder.after(module["r"]).negate(module["r"])
    assert list(module.entry)[-1] == last
    with pytest.raises(TypeError, match="operand 1 is no Instruction but float; constant"):
        before.add("add", module["x"], 2.0)


def test_names(module):
    for name in ("", "a b", "1x", "é", "x,y", "%q", "a\nb", "f32[2]"):
        for edit in (
            lambda: module["d"].rename(name),
            lambda: module["d"].clone(name=name),
            lambda: hlokit.Builder(module["d"]).negate(module["x"], name=name),
            lambda: module.add_computation(name),
            lambda: hlokit.module(name),
        ):
            with pytest.raises(hlokit.EditError, match="is no name"):
                edit()
    assert hlokit.parse(str(module)).fingerprint() == module.fingerprint()


def test_parameters_of_computations_that_are_called(module):
    with pytest.raises(hlokit.EditError, match="`r` calls"):
        hlokit.Builder(module["add"]).parameter("f32[]")
    with pytest.raises(hlokit.EditError, match="callers use"):
        hlokit.Builder(module["add"]).set_root(hlokit.Builder(module["add"]).constant(1))
    module.verify()


def test_errors_name_what_can_be_set(module):
    with pytest.raises(hlokit.EditError) as error:
        module["d"].set_attribute("dimensions", (1,))
    assert "``" not in str(error.value) and "`lhs_contracting_dims`" in str(error.value)
    with pytest.raises(hlokit.EditError, match="set_metadata"):
        module["d"].set_attribute("metadata", {"op_name": "x"})


def test_what_is_being_built():
    m = hlokit.module("built")
    b = hlokit.Builder(m.entry)
    assert "no root yet" in str(m) and "no root yet" in str(m.entry)
    x = b.parameter("f32[2]", "x")
    assert "%x = f32[2]{0} parameter(0)" in str(m)
    for use in (
        lambda: m.text("lossless"),
        lambda: m.to_format("json"),
        lambda: m.run("dce"),
        lambda: m.run_on([1, 2]),
        lambda: m.fingerprint(),
        lambda: m.memory(),
        lambda: m.extract(x),
        lambda: hlokit.simulate(m, "v5e"),
        lambda: hlokit.diff(m, m),
    ):
        with pytest.raises(hlokit.EditError, match="`main` has no root"):
            use()
    with pytest.raises(hlokit.VerifyError, match="root"):
        m.verify()
    b.set_root(x)
    assert m.run_on([1, 2]).tolist() == [1, 2]


def test_modules_that_are_not_valid():
    m = hlokit.parse("HloModule x\nENTRY e { p = f32[2] parameter(0) ROOT a = f32[3] negate(p) }", verify=False)
    assert m["a"].shape.dims == (3,) and "negate" in str(m)
    for use in (lambda: m.run("dce"), lambda: m.memory(), lambda: hlokit.simulate(m, "v5e"), lambda: m.verify()):
        with pytest.raises(hlokit.VerifyError, match=r"f32\[3\]"):
            use()
    with pytest.raises(hlokit.RunError):
        m.run_on([1, 2])


def test_operands_that_come_later(module):
    """Edits may put an operand behind its user; what reads the module finds it in order."""
    fingerprint = module.fingerprint()
    module["z"].move_before(module["x"])
    assert [i.name for i in module.entry][0] == "z" and module.fingerprint() == fingerprint
    assert hlokit.parse(module.to_format("stablehlo")).run_on(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)).tolist() == [24, 24]
    names = [i.name for i in module.entry]
    assert all(names.index(o.name) < names.index(i.name) for i in module.entry for o in i.operands)
    late = hlokit.Builder(module.entry).negate(module["x"])
    module["d"].replace_operand(0, late)
    module.run("simplify,fuse", verify_each=True)
    assert module.run_on(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)).tolist() == [-12, -12]
