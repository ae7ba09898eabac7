# SPDX-License-Identifier: Apache-2.0
"""Reading modules: text, handles, attributes, queries."""

import copy
import pickle

import numpy as np
import pytest

import hlokit


def test_module(module):
    assert module.name == "t"
    assert [c.name for c in module.computations] == ["add", "main"]
    assert module.entry.name == "main" and module.entry.is_entry
    assert len(module.entry) == 8 and module.instruction_count == 11
    assert hlokit.parse(module.text("lossless")).fingerprint() == module.fingerprint()
    assert hlokit.parse(str(module).replace("%z", "%other")).fingerprint() == module.fingerprint()


def test_instruction(module):
    d = module["d"]
    assert d.opcode == "dot" and d.name == "d" and d == module["%d"] and hash(d) == hash(module["d"])
    assert [o.name for o in d.operands] == ["z", "y"] and [u.name for u in d.users] == ["r"]
    assert d.attributes == {"lhs_contracting_dims": (1,), "rhs_contracting_dims": (0,)}
    assert d.attribute("lhs_contracting_dims") == (1,) and d.attribute("absent", 5) == 5
    assert d.metadata.scope == "net/dense" and d.metadata.op_name == "net/dense/dot"
    assert d.parent == module.entry and d.module.name == "t" and not d.is_root
    assert module["r"].is_root and module["r"].called_computations == [module["add"]]
    assert module["r"].attributes["to_apply"] == module["add"]
    assert module["x"].parameter_number == 0 and d.parameter_number is None
    location = module["z"].location
    assert (location.file, location.line) == ("t.hlo", 14)


def test_shape(module):
    shape = module["d"].shape
    assert shape.dims == (2, 4) and shape.dtype == "f32" and shape.bytes == 32 and shape.rank == 2
    assert shape.layout.minor_to_major == (1, 0) and str(shape) == "f32[2,4]{1,0}"
    assert shape == hlokit.Shape("f32[2,4]{1,0}") and hash(shape) == hash(hlokit.Shape("f32[2,4]{1,0}"))
    assert shape != hlokit.Shape("f32[2,4]{0,1}")
    tuple_shape = hlokit.Shape("(f32[2], (s8[], token[]))")
    assert tuple_shape.is_tuple and [e.dtype for e in tuple_shape.elements] == ["f32", "tuple"]
    with pytest.raises(hlokit.ParseError):
        hlokit.Shape("f32[2")


def test_typed_attributes():
    m = hlokit.parse("""HloModule a
ENTRY e {
  x = f32[1,8,8,3] parameter(0), sharding={devices=[1,2,1,1,2]<=[4] last_tile_dim_replicate}
  w = f32[3,3,3,16] parameter(1)
  c = f32[1,4,4,16] convolution(x, w), window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=b01f_01io->b01f
  p = f32[] constant(0)
  q = f32[1,6,4,16] pad(c, p), padding=0_0x1_1x0_0x0_0
  s = f32[1,3,4,16] slice(q), slice={[0:1], [0:6:2], [0:4], [0:16]}
  ROOT n = pred[1,3,4,16] compare(s, s), direction=NE, frontend_attributes={a="b"}
}""")
    window = m["c"].attributes["window"]
    assert window[0] == hlokit.WindowDimension(size=3, stride=2, padding_high=1)
    dims = m["c"].attributes["dim_labels"]
    assert (dims.input_batch, dims.input_feature, dims.kernel_output_feature) == (0, 3, 3)
    assert m["q"].attributes["padding"][1] == hlokit.PaddingDimension(1, 1, 0)
    assert m["s"].attributes["slice"][1] == hlokit.SliceDimension(0, 6, 2)
    assert m["n"].attributes["direction"] == "NE" and m["n"].attributes["frontend_attributes"] == {"a": "b"}
    sharding = m["x"].attributes["sharding"]
    assert sharding.kind == "tiled" and sharding.tiles == (1, 2, 1, 1, 2) and sharding.subgroups == ("replicated",)


def test_literals():
    m = hlokit.parse("""HloModule a
ENTRY e {
  c = s32[2,2] constant({{1,2},{3,4}})
  h = f16[2] constant({1, -2})
  b = bf16[2] constant({1, -2})
  ROOT t = (s32[2,2], f16[2], bf16[2]) tuple(c, h, b)
}""")
    literal = m["c"].literal
    assert literal.dtype == np.int32 and literal.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError):
        literal[0, 0] = 5
    assert m["h"].literal.tolist() == [1, -2]
    assert m["b"].literal.view(np.uint16).tolist() == [0x3F80, 0xC000]
    assert m["t"].literal is None
    del m
    assert literal.tolist() == [[1, 2], [3, 4]]  # the array keeps the values


def test_walks(module):
    names = [i.name for i in module.entry.post_order()]
    assert all(names.index(o.name) < names.index(i.name) for i in module.entry for o in i.operands)
    assert [i.name for i in module.entry.pre_order()] == names[::-1]
    assert {i.name for i in module["d"].upstream()} == {"z", "y", "x", "b", "c"}
    assert {i.name for i in module["d"].upstream(depth=1)} == {"z", "y"}
    assert [i.name for i in module["z"].downstream()] == ["d", "r"]


def test_find(module):
    assert [i.name for i in module.find(opcode="constant")] == ["c", "zero"]
    assert [i.name for i in module.find(scope="dense")] == ["d"]
    assert [i.name for i in module.find(name="^[xy]$")] == ["x", "y"]
    scalars = module.find(where=lambda i: i.shape.rank == 0 and not i.operands)
    assert [i.name for i in scalars] == ["lhs", "rhs", "c", "zero"]
    assert [i.name for i in module.find(opcode="dot", where="bytes>1")] == ["d"]
    with pytest.raises(hlokit.QueryError) as error:
        module.find(where="bytes>>1")
    assert error.value.diagnostics[0].column > 1


def test_match(module):
    (match,) = module.match("dot(multiply(%a, broadcast(%s)), %b)")
    assert match.root == module["d"] and match["a"] == module["x"] and match["%s"] == module["c"]
    assert module.match("dot(%a, %a)") == []
    with pytest.raises(hlokit.QueryError):
        module.match("dot(")
    with pytest.raises(hlokit.QueryError, match="a variable is written %x"):
        module.match("dot(transpose(x), convert(y))")


def test_unknown_opcodes(module):
    with pytest.raises(hlokit.QueryError, match="did you mean `dot`"):
        module.find(opcode="dott")
    assert module.find(opcode="tanh") == []


def test_pickle(module):
    other = pickle.loads(pickle.dumps(module))
    assert other.fingerprint() == module.fingerprint() and other["d"].metadata == module["d"].metadata


def test_names_of_files_are_no_modules():
    with pytest.raises(hlokit.ParseError, match="load reads it"):
        hlokit.parse("model.hlo")
    with pytest.raises(hlokit.ParseError):
        hlokit.parse(b"HloModule a\n\xff\xfe \xc3 {")


def test_extract(module):
    assert module.extract(module["d"]).fingerprint() == module.extract([module["d"]]).fingerprint()
    for wrong in (None, 5, [5], ["d"]):
        with pytest.raises(TypeError):
            module.extract(wrong)
    part = module.extract([module["d"]], inputs=[module["z"]])
    assert part.entry.root.opcode == "dot" and [p.name for p in part.entry.parameters] == ["y", "z"]
    assert part.run_on(np.ones((3, 4), np.float32), np.ones((2, 3), np.float32)).tolist() == [[3] * 4] * 2


def test_errors():
    with pytest.raises(hlokit.ParseError) as error:
        hlokit.parse("HloModule x\nENTRY e { ROOT a = f32[2] ad(b) }", "x.hlo")
    first = error.value.diagnostics[0]
    assert (first.file, first.line, first.column, first.kind) == ("x.hlo", 2, 27, "unknown-opcode")
    assert "add" in first.hint and "^~" in str(error.value)
    with pytest.raises(hlokit.VerifyError):
        hlokit.parse("HloModule x\nENTRY e { p = f32[2] parameter(0) ROOT a = f32[3] negate(p) }")
    with pytest.raises(FileNotFoundError):
        hlokit.load("/nonexistent.hlo")
    with pytest.raises(TypeError):
        hlokit.parse(5)
    with pytest.raises(KeyError):
        hlokit.parse("HloModule x\nENTRY e { ROOT p = f32[2] parameter(0) }")["nothing"]


def test_formats(module, tmp_path):
    for suffix in ("hlo", "mlir", "hlo.pb", "json"):
        path = tmp_path / f"m.{suffix}"
        module.save(path)
        assert hlokit.load(path).fingerprint() == module.fingerprint()
    with pytest.raises(ValueError):
        module.to_format("nothing")
    with pytest.raises(OSError):
        module.save(tmp_path / "absent" / "m.hlo")
    with pytest.raises(ValueError, match=r"\.mlir\.bc"):
        module.save(tmp_path / "m.hlp")
    assert not (tmp_path / "m.hlp").exists()
    module.save(tmp_path / "m.hlp", format="json")
    assert hlokit.load(tmp_path / "m.hlp").fingerprint() == module.fingerprint()


def test_copies(module):
    other = copy.deepcopy(module)
    other["z"].rename("w")
    assert module["z"].name == "z" and other["w"].name == "w" and module["z"] != other["w"]


def test_diff(module):
    other = hlokit.parse(str(module).replace("%z", "%w"))
    assert hlokit.diff(module, other).same is False or hlokit.diff(module, other).changed == []
    other["d"].replace_operand(0, other["x"])
    difference = hlokit.diff(module, other)
    assert difference and [c[0].name for c in difference.changed] != []
    assert not hlokit.diff(module, module.clone())


def test_entry():
    program = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    with pytest.raises(hlokit.ParseError, match="main"):
        hlokit.parse(program)
    assert hlokit.parse(program, entry="f").entry.root.opcode == "parameter"
