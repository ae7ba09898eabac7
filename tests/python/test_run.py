# SPDX-License-Identifier: Apache-2.0
"""Running modules on arrays."""

import os
import signal
import threading

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


def test_devices():
    m = hlokit.parse("""HloModule a
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY e { p = f32[2] parameter(0) ROOT r = f32[2] all-reduce(p), replica_groups={}, to_apply=add }""")
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


def test_interrupt():
    loop = hlokit.Executable(hlokit.parse(ENDLESS), max_seconds=30)
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

    use(1000)
    before = resident_kib()
    use(9000)
    assert resident_kib() - before < 2000  # one object a load would be 500 KiB or more, one module 20 MiB
