# SPDX-License-Identifier: Apache-2.0
"""Running modules on arrays."""

import gc
import io
import os
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import hlokit


def test_engines(module):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 3), np.float32), rng.standard_normal((3, 4), np.float32)
    exact = hlokit.Executable(module)
    assert [str(s) for s in exact.argument_shapes] == ["f32[2,3]{1,0}", "f32[3,4]{1,0}"]
    value = exact(x, y)
    np.testing.assert_allclose(value, (2 * x @ y).sum(axis=1), rtol=1e-5)
    assert module.run_on(x, y, engine="reference").tobytes() == value.tobytes()
    np.testing.assert_allclose(hlokit.Executable(module, engine="fast")(x, y), value, rtol=1e-5)
    assert exact.statistics.steps > 0
    with pytest.raises(ValueError):
        hlokit.Executable(module, engine="none")


def test_passes_before_a_run():
    module = hlokit.parse("""HloModule calls
square {
  x = f32[8] parameter(0)
  ROOT s = f32[8] multiply(x, x)
}
ENTRY main {
  x = f32[8] parameter(0)
  ROOT y = f32[8] call(x), to_apply=square
}
""")
    x = np.arange(8, dtype=np.float32)
    opcodes = {}
    for name, options in {"exact": {}, "fast": {"engine": "fast"}, "none": {"engine": "fast", "passes": ""},
                          "inline": {"passes": "inline"}}.items():
        program = hlokit.Executable(module, **options)
        np.testing.assert_array_equal(program(x), x * x)
        opcodes[name] = program.module.entry.root.opcode
    assert opcodes == {"exact": "call", "fast": "multiply", "none": "call", "inline": "multiply"}
    with pytest.raises(hlokit.RunError, match="passes"):
        hlokit.Executable(module, passes="none-such")


LOOP = """HloModule loop
ENTRY main {
  x = f32[512,512] parameter(0)
  t = f32[512,512] tanh(x)
  ROOT e = f32[512,512] exponential(t)
}
"""


def test_compiled_loops_stay_on_disk(tmp_path):
    code = f"import hlokit, numpy as np; hlokit.parse({LOOP!r}).run_on(np.ones((512, 512), np.float32), engine='fast')"
    compiles = []
    for directory in (tmp_path, tmp_path, "off"):
        environment = {**os.environ, "HLOKIT_CODE_CACHE": str(directory), "LD_DEBUG": "files"}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        if "libhlokit_llvm" not in run.stderr and directory == tmp_path and not compiles:
            pytest.skip("the build has no generator of code")
        compiles.append("libhlokit_llvm" in run.stderr)
    assert compiles == [True, False, True]


def test_no_copies():
    m = hlokit.parse("HloModule a\nENTRY e { p = f32[1000] parameter(0) ROOT n = f32[1000] negate(p) }")
    x = np.arange(1000, dtype=np.float32)
    result = m.run_on(x)
    assert result.base is not None and result.flags.writeable
    m.run_on(x[::-1])  # not contiguous: copied
    keep = hlokit.Executable(m)
    first, second = keep(x), keep(x)
    assert not np.shares_memory(first, second)


def test_tuples():
    m = hlokit.parse("""HloModule a
ENTRY e {
  p = (f32[2], (s32[], f32[])) parameter(0)
  a = f32[2] get-tuple-element(p), index=0
  b = (s32[], f32[]) get-tuple-element(p), index=1
  ROOT t = ((s32[], f32[]), f32[2]) tuple(b, a)
}""")
    (i, f), a = m.run_on((np.array([1, 2], np.float32), (np.int32(3), np.float32(4))))
    assert (int(i), float(f), a.tolist()) == (3, 4.0, [1, 2])
    with pytest.raises(TypeError):
        m.run_on((np.array([1, 2], np.float32),))


def test_wrong_arguments(module):
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    with pytest.raises(TypeError, match="takes 2 arguments"):
        module.run_on(x)
    with pytest.raises(ValueError, match=r"\(3, 2\)"):
        module.run_on(x.T, y)
    with pytest.raises(TypeError, match="float64"):
        module.run_on(x.astype(np.float64), y)
    with pytest.raises(TypeError):
        module.run_on(object(), y)
    assert module.run_on(x.tolist(), y).tolist() == [24, 24]  # numbers of Python take the type of the parameter


def test_narrow_types():
    m = hlokit.parse("HloModule a\nENTRY e { p = bf16[2] parameter(0) ROOT n = bf16[2] negate(p) }")
    raw = np.array([0x3F80, 0x4000], np.uint16)
    dtype = m["p"].shape.numpy_dtype
    assert m.run_on(raw.view(dtype)).view(np.uint16).tolist() == [0xBF80, 0xC000]


REDUCING = """HloModule a
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] all-reduce(p), replica_groups={}, to_apply=add }"""


def test_devices():
    m = hlokit.parse(REDUCING)
    results = m.run_on([np.array([1, 2], np.float32)], [np.array([10, 20], np.float32)], replicas=2)
    assert [r.tolist() for r in results] == [[11, 22], [11, 22]]


def test_failures(module):
    with pytest.raises(hlokit.RunError):
        hlokit.Executable(module, max_bytes=8)(np.ones((2, 3), np.float32), np.ones((3, 4), np.float32))
    loop = hlokit.parse(ENDLESS)
    with pytest.raises(hlokit.RunError, match="time limit"):
        loop.run_on(np.int32(0), max_seconds=0.05)


ENDLESS = """HloModule a
cond { p = s32[] parameter(0) ROOT c = pred[] compare(p, p), direction=EQ }
body { p = s32[] parameter(0) o = s32[] constant(1) ROOT n = s32[] add(p, o) }
ENTRY e { p = s32[] parameter(0) ROOT w = s32[] while(p), condition=cond, body=body }"""


@pytest.mark.parametrize("engine", ["exact", "reference"])
def test_interrupt(engine):
    loop = hlokit.Executable(hlokit.parse(ENDLESS), engine, max_seconds=30)
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        loop(np.int32(0))


def test_threads():
    loop = hlokit.Executable(hlokit.parse(ENDLESS), max_seconds=0.3)
    errors = []

    def run():
        try:
            loop(np.int32(0))
        except hlokit.HloError as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert {type(e) for e in errors} == {hlokit.RunError, hlokit.BusyError} and len(errors) == 3


NANS = """HloModule nans
ENTRY main {
  x = f32[2] parameter(0)
  zero = f32[] constant(0)
  zeros = f32[2] broadcast(zero), dimensions={}
  l = f32[2] log(x)
  d = f32[2] divide(x, zeros)
  ROOT t = f32[2] add(l, d)
}"""


def test_nan_search():
    m = hlokit.parse(NANS, "nans.hlo")
    with pytest.raises(hlokit.RunError, match="l: produces a NaN") as error:
        m.run_on(np.array([-1, 1], np.float32), debug_nans=True)
    assert (error.value.diagnostics[0].file, error.value.diagnostics[0].line) == ("nans.hlo", 6)
    ends = hlokit.Executable(m, debug_nans=True)
    for _ in range(2):
        with pytest.raises(hlokit.RunError, match="d: produces an infinity"):
            ends(np.ones(2, np.float32))
    with pytest.raises(ValueError, match="not for engine=\"reference\""):
        m.run_on(np.ones(2, np.float32), debug_nans=True, engine="reference")


def test_print_values():
    m = hlokit.parse(NANS)
    out = io.StringIO()
    program = hlokit.Executable(m, print_values="^[ld]$", file=out)
    for _ in range(2):
        program(np.ones(2, np.float32))
    assert out.getvalue() == "l = f32[2] {0, 0}\nd = f32[2] {inf, inf}\n" * 2
    with pytest.raises(hlokit.QueryError):
        hlokit.Executable(m, print_values="(")

    class Broken:
        def write(self, text):
            raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        m.run_on(np.ones(2, np.float32), print_values="", file=Broken())


def test_on_value():
    m = hlokit.parse(NANS)
    seen = {}
    program = hlokit.Executable(m, on_value=lambda i, value: seen.update({i.name: value}), on_value_match="^[lt]$")
    result = program(np.ones(2, np.float32))
    assert sorted(seen) == ["l", "t"] and seen["t"].tolist() == result.tolist()
    assert [i.name for i in program.module.entry] == [i.name for i in m.entry]
    with pytest.raises(hlokit.EditError, match="Executable"):
        program.module["l"].rename("other")
    nested = hlokit.Executable(m, on_value=lambda i, value: nested(np.ones(2, np.float32)))
    with pytest.raises(hlokit.BusyError):
        nested(np.ones(2, np.float32))
    loop = hlokit.parse(ENDLESS)
    steps = []

    def stop(i, value):
        steps.append(i.opcode)
        if len(steps) == 20:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        loop.run_on(np.int32(0), on_value=stop, max_seconds=10)
    assert len(steps) == 20


def test_profile(module):
    program = hlokit.Executable(module, profile=True)
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    program(x, y), program(x, y)
    rows = {row["instruction"]: row for row in program.profile["instructions"]}
    assert rows["d"]["runs"] == 1 and rows["d"]["opcode"] == "dot" and rows["d"]["shape"] == "f32[2,4]"
    assert program.profile["total_us"] > 0 and "<table>" in program.profile._repr_html_()
    with pytest.raises(ValueError, match="profile=True"):
        hlokit.Executable(module).profile


def test_explain_engine(module):
    text = hlokit.Executable(module, engine="fast").explain_engine()
    assert text.startswith("engine: ") and "\ncode: " in text and " dot " in text
    with pytest.raises(ValueError, match="engine=\"fast\""):
        hlokit.Executable(module).explain_engine()


SHARDED = """HloModule s
ENTRY main {
  x = f32[4,6] parameter(0), sharding={devices=[2,1]<=[2]}
  w = f32[6,4] parameter(1), sharding={devices=[1,2]<=[2]}
  ROOT d = f32[4,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, sharding={devices=[2,1]<=[2]}
}"""


@pytest.mark.parametrize("engine", ["exact", "reference"])
def test_programs_are_partitioned(engine):
    m = hlokit.parse(SHARDED)
    x, w = np.arange(24, dtype=np.float32).reshape(4, 6), np.ones((6, 4), np.float32)
    program = hlokit.Executable(m, engine, partitions=2)
    assert program.is_partitioned and [s.dims for s in program.argument_shapes] == [(4, 6), (6, 4)]
    assert np.array_equal(program(x, w), x @ w)
    assert program.module["x"].shape.dims == (2, 6) and m["x"].shape.dims == (4, 6)
    top, bottom = m.run_on(x, w, partitions=2, by_device=True, engine=engine)
    assert np.array_equal(np.vstack([top, bottom]), x @ w)
    assert not hlokit.Executable(m).is_partitioned
    with pytest.raises(hlokit.RunError, match="cannot be partitioned") as caught:
        hlokit.Executable(m, partitions=3)
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.line, diagnostic.kind) == (3, "sharding") and "partitions=1" in diagnostic.hint


def test_warnings_of_the_partitioner_are_warnings():
    m = hlokit.parse("""HloModule s
ENTRY main {
  x = f32[12,8] parameter(0), sharding={devices=[3,1,2]<=[6] last_tile_dim_replicate}
  ROOT y = f32[12,8] negate(x), sharding={devices=[2,1,3]<=[6] last_tile_dim_replicate}
}""")
    x = np.ones((12, 8), np.float32)
    for run in (hlokit.Executable, lambda module, partitions: module.run_on(x, partitions=partitions)):
        with pytest.warns(hlokit.RunWarning, match="4:.* every device gathers all of the result of `y`") as caught:
            run(m, partitions=6)
        assert [w.filename for w in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hlokit.Executable(hlokit.parse(SHARDED), partitions=2)


def test_wrong_devices():
    m = hlokit.parse(REDUCING)
    with pytest.raises(TypeError, match="2 devices"):
        m.run_on(np.ones(2, np.float32), replicas=2)
    with pytest.raises(TypeError, match="device 0: expected a list"):
        m.run_on(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32), replicas=2)
    for replicas in (0, -1, 5000):
        with pytest.raises(ValueError):
            hlokit.Executable(m, replicas=replicas)


def test_options_are_checked(module):
    for options in (
        {"num_threads": -1},
        {"num_threads": 100000},
        {"max_bytes": -1},
        {"max_seconds": float("nan")},
        {"max_steps": -5},
        {"on_value_match": "x"},
    ):
        with pytest.raises(ValueError):
            hlokit.Executable(module, **options)
    with pytest.raises(hlokit.RunError, match="max_steps|steps|instructions"):
        hlokit.parse(ENDLESS).run_on(np.int32(0), max_steps=100)
    with pytest.raises(ValueError, match="trip_count"):
        hlokit.simulate(module, "v5e", trip_count=-1)


def test_elided_constants():
    m = hlokit.parse("HloModule a\nENTRY e { ROOT c = f32[4] constant({...}) }")
    with pytest.raises(hlokit.RunError):
        m.run_on()
    assert m["c"].literal is None and m.run_on(fill_elided="iota").tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="iota"):
        m.run_on(fill_elided="ones")


def test_runs_of_several_programs_at_once(module):
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)
    programs = [hlokit.Executable(module) for _ in range(4)]
    results = []

    def run(program):
        for _ in range(50):
            results.append(program(x, y).tolist())

    threads = [threading.Thread(target=run, args=(p,)) for p in programs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [[24, 24]] * 200


def resident_kib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4


def test_no_leaks(module):
    text = str(module)
    x, y = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32)

    def use(count):
        for _ in range(count):
            m = hlokit.parse(text)
            m.run("simplify")
            m["d"].attributes, m["c"].literal, m.find(opcode="dot"), list(m.instructions())
            try:
                m["d"].erase()
            except hlokit.EditError:
                pass
        for _ in range(count // 10):
            module.run_on(x, y)
            module.run_on(x, y, on_value=lambda i, value: None, print_values="d", file=io.StringIO(), profile=True)
            np.from_dlpack(hlokit.Array(module.run_on(x, y, results="array"), "f32"))
            hlokit.Array(x).__dlpack__()
            hlokit.module_pass(lambda m: m is None, name="test-leaks")
            module.run("test-leaks,dce", stats=True, print_changed=True, file=io.StringIO())
            with pytest.raises(hlokit.RunError):
                hlokit.Executable(module, max_bytes=8)(x, y)

    use(1000)
    gc.collect()
    before, objects = resident_kib(), len(gc.get_objects())
    use(9000)
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    assert resident_kib() - before < 2000  # one object a load would be 500 KiB or more, one module 20 MiB


DYNAMIC = """HloModule dynamic
sum {
  a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT c = s32[] add(a, b)
}
ENTRY e {
  x = s32[2,<=4] parameter(0)
  zero = s32[] constant(0)
  totals = s32[2] reduce(x, zero), dimensions={1}, to_apply=sum
  twice = s32[2,<=8] concatenate(x, x), dimensions={1}
  ROOT result = (s32[2], s32[2,<=8]) tuple(totals, twice)
}
"""


@pytest.mark.parametrize("engine", ["reference", "exact", "fast"])
def test_dynamic_dimensions_have_the_sizes_of_the_arrays(engine):
    program = hlokit.Executable(hlokit.parse(DYNAMIC), engine=engine)
    for size in (0, 1, 3, 4):
        x = np.arange(2 * size, dtype=np.int32).reshape(2, size)
        totals, twice = program(x)
        np.testing.assert_array_equal(totals, x.sum(axis=1))
        np.testing.assert_array_equal(twice, np.concatenate([x, x], axis=1))
    with pytest.raises(ValueError, match="shape"):
        program(np.zeros((2, 5), np.int32))
    with pytest.raises(ValueError, match="shape"):
        program(np.zeros((1, 3), np.int32))


def test_observers_of_dynamic_programs_see_arrays_of_the_bounds():
    seen = {}
    program = hlokit.Executable(hlokit.parse(DYNAMIC), on_value=lambda i, v: seen.setdefault(i.name, v))
    program(np.ones((2, 3), np.int32))
    assert seen["totals"].tolist() == [3, 3]
    assert seen["x"].shape == (2, 4)
