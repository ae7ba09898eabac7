# SPDX-License-Identifier: Apache-2.0
"""Random calls, with handles of erased instructions and of other modules and with wrong types, raise Python errors and
leave modules valid."""

import gc
import io
import os
import random
import threading

import numpy as np
import pytest

import hlokit
from hlokit import _hlokit

CALLS = int(os.environ.get("HLOKIT_RANDOM_CALLS", "2000"))
SEED = int(os.environ.get("HLOKIT_RANDOM_SEED", "0"))
EXPECTED = (
    hlokit.HloError,
    TypeError,
    ValueError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    BufferError,
    RuntimeError,
)

LOOP = """HloModule loop
cond { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(3) ROOT c = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 one = s32[] constant(1) j = s32[] add(i, one)
  x = f32[4] get-tuple-element(p), index=1 y = f32[4] negate(x) ROOT t = (s32[], f32[4]) tuple(j, y) }
ENTRY e { x = f32[4] parameter(0) z = s32[] constant(0) t = (s32[], f32[4]) tuple(z, x) w = (s32[], f32[4]) while(t), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1 }"""


class Driver:
    def __init__(self, seed, texts):
        self.random = random.Random(f"{SEED} {seed}")
        self.texts = texts
        self.modules = [hlokit.parse(t) for t in texts]
        self.handles = [i for m in self.modules for i in m.instructions()]
        self.current = self.modules[0]

    def pick(self):
        """A handle, alive or not, or something else altogether."""
        if self.random.random() < 0.03:
            return self.random.choice([None, 5, "x", object(), [], self.modules[0]])
        if self.random.random() < 0.6:
            return self.random.choice(self.random.choice(self.current.computations).instructions or self.handles)
        return self.random.choice(self.handles)

    def any_value(self):
        return self.random.choice([0, -1, 2**70, "", "{0}", (0,), (1, 2), {"a": "b"}, None, 1.5, b"x", self.pick()])

    def any_array(self):
        x = np.arange(6, dtype=self.random.choice([np.float32, np.int8, np.uint16, np.float64, bool]))
        return self.random.choice(
            [x, x.reshape(2, 3), x[::2], x[:4], x[:0], x.view(np.uint8), x.tolist(), self.any_value(), np.array("x"), x[0]]
        )

    def damaged(self):
        """A text with a part of another place in it, or without one."""
        text = self.random.choice(self.texts)
        a, b = sorted(self.random.randrange(len(text)) for _ in range(2))
        c = self.random.randrange(len(text))
        return text[:a] + text[c : c + self.random.randrange(8)] + text[self.random.choice([a, a + 1, b]) :]

    def everything(self, m):
        """Whatever a module can be asked, also one that is invalid or not complete."""
        calls = [
            lambda: str(m),
            lambda: m.text(self.random.choice(["lossless", "short", "canonical", "?"])),
            lambda: m.to_format(self.random.choice(["json", "proto", "stablehlo", "artifact", "textproto", "?"])),
            lambda: m.verify(),
            lambda: m.fingerprint(layout=True, schedule=True),
            lambda: (m.costs().total, m.costs()[self.pick()]),
            lambda: m.memory(),
            lambda: m.annotations(),
            lambda: hlokit.diff(m, self.random.choice(self.modules)),
            lambda: str(hlokit.fingerprint_diff(m, self.random.choice(self.modules))),
            lambda: hlokit.simulate(m, "v5e", dtype=self.random.choice([None, "bf16", "s8"])),
            lambda: _hlokit._dot(m, self.random.choice(["", "x", "add"]), self.random.randrange(-1, 3), 9),
            lambda: _hlokit._graph_json(m),
            lambda: [m.extract([i]) for i in list(m.instructions())[:3]],
            lambda: m.find(name="a", where=lambda i: bool(i.users) and i.shape.bytes > 4),
            lambda: [(i.attributes, i.metadata, i.literal, i.called_computations) for i in m.instructions()],
        ]
        self.random.choice(calls)()

    def step(self):
        r, m = self.random, self.random.choice(self.modules)
        self.current = m
        i = self.pick()
        action = r.randrange(23)
        if action == 0:
            i.replace_all_uses_with(self.pick())
        elif action == 1:
            i.erase()
        elif action == 2:
            i.replace_operand(r.randrange(-1, 3), self.pick())
        elif action == 3:
            names = list(i.attributes) + ["dimensions", "to_apply", "sharding", "window", "metadata", "nothing"]
            i.set_attribute(r.choice(names), self.any_value())
        elif action == 4:
            self.handles.append(i.clone(r.choice([None, list(i.operands), [self.pick()]])))
        elif action == 5:
            i.move_before(self.pick())
        elif action == 6:
            for other in i.parent:
                if r.random() < 0.1 and not other.users and not other.is_root and other.opcode != "parameter":
                    other.erase()
        elif action == 7:
            str(i), repr(i), i.users, i.attributes, i.metadata, i.location, i.upstream(2), i.literal, i.shape.layout
        elif action == 8:
            b = hlokit.Builder(i)
            opcode = r.choice(["add", "tuple", "negate", "dot", "reduce", "while", "call", "reshape", "convert", "iota"])
            self.handles.append(b.add(opcode, *[self.pick() for _ in range(r.randrange(3))], shape=r.choice([None, "f32[4]", "s32[", 7])))
        elif action == 9:
            m.run(r.choice(["dce", "simplify", "cse", "fuse", "nothing", "", "dce,,", "(dce"]))
        elif action == 10:
            self.modules[r.randrange(len(self.modules))] = m.clone() if r.random() < 0.5 else hlokit.parse(r.choice(self.texts))
        elif action == 11:
            m.match(r.choice(["add(%x, %y)", "_", "dot(", "%", "tuple(...)"]), r.choice(["", "bytes>1", "users<", "%x.bytes"]))
        elif action == 12:
            part = m.extract([self.pick()], depth=r.choice([None, 0, 1, -5]))
            self.handles += list(part.instructions())[:2]
        elif action == 13:
            c = r.choice(m.computations)
            c.post_order(), c.parameters, c.root, len(c), c[r.choice(["p", "t", "?"])]
        elif action == 14:
            i.rename(r.choice(["p", "t", "", "a b", "x" * 100])), i.set_metadata(op_name=r.choice([None, "a/b", 5]))
        elif action == 15:
            options = {
                "engine": r.choice(["exact", "reference"]),
                "partitions": r.choice([1, 1, 2]),
                "results": r.choice(["numpy", "array"]),
                "max_seconds": 1,
            }
            if options["engine"] == "exact":
                options["debug_nans"] = r.random() < 0.3
                options["on_value"] = r.choice([None, lambda i, value: value, lambda i, value: self.edit(i), 5])
                options["print_values"] = r.choice([None, "x", "("])
                options["file"] = io.StringIO()
            program = hlokit.Executable(m, **options)
            shapes = program.argument_shapes
            given = [np.ones(s.dims, s.numpy_dtype) if r.random() < 0.8 else self.any_array() for s in shapes]
            program(*given[: r.choice([len(given), len(given), 1])])
        elif action == 16:
            array = hlokit.Array(self.any_array(), r.choice([None, "f32", "bf16", "s4", "pred", "f4e2m1fn", "?"]))
            array.numpy(), repr(array), array.shape, np.asarray(array), array.float32(), np.from_dlpack(array)
        elif action == 17:
            m.run(r.choice(["test-random", "dce,test-random,cse", "test-random*"]), print_changed=r.choice([False, "diff"]), file=io.StringIO())
        elif action == 18:
            self.everything(m)
        elif action == 19:
            built = hlokit.module(r.choice(["m", ""]))
            b = hlokit.Builder(r.choice([built.entry, built.add_computation("f")]))
            for _ in range(r.randrange(3)):
                b.parameter(r.choice(["f32[4]", "s32[]", "(f32[2], s8[3])"]))
                self.handles.append(b.add(r.choice(["add", "negate", "tuple", "copy"]), *b.computation.parameters[:2]))
            if r.random() < 0.5:
                b.set_root(self.pick() if r.random() < 0.2 else list(built.instructions())[-1])
            self.everything(built)
            built.run(r.choice(["dce", "simplify,fuse"]))
        elif action == 20:
            self.everything(hlokit.parse(self.damaged(), verify=False))
        elif action == 21:
            hlokit.parse(self.damaged().encode("utf-8", "replace"), allow_unknown=r.random() < 0.5)
        else:
            b = hlokit.Builder(r.choice(m.computations))
            self.handles.append(b.constant(self.any_array(), r.choice([None, "f32[6]", "bf16[2,3]", "s4[]", "("])))
        if len(self.handles) > 400:
            del self.handles[: len(self.handles) // 2]
            self.handles += [i for m in self.modules for i in m.instructions()]
            gc.collect()


    def edit(self, module):
        """A pass, or a function that a run calls: a few calls at random, of which one may raise."""
        for _ in range(self.random.randrange(3)):
            if self.random.random() < 0.1:
                raise RuntimeError("on purpose")
            try:
                self.step()
            except EXPECTED:
                pass
        return self.random.choice([True, False, None, 3, 2**80, "yes"])


def register(driver):
    hlokit.module_pass(driver.edit, name="test-random")


@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls(seed, module):
    driver = Driver(seed, [str(module), LOOP])
    register(driver)
    outcomes = {True: 0, False: 0}
    for _ in range(CALLS):
        try:
            driver.step()
            outcomes[True] += 1
        except EXPECTED:
            outcomes[False] += 1
    assert outcomes[True] > CALLS // 10 and outcomes[False] > CALLS // 10


@pytest.mark.parametrize("seed", [3])
def test_edits_keep_modules_valid(seed, module):
    """Edits that succeed leave a module that verifies."""
    driver = Driver(seed, [str(module), LOOP])
    r = driver.random
    for _ in range(CALLS // 4):
        module = r.choice(driver.modules)
        alive = list(module.instructions())
        i, other = r.choice(alive), r.choice(alive)
        try:
            edit = r.randrange(6)
            if edit == 0:
                i.replace_all_uses_with(other)
            elif edit == 1:
                i.erase()
            elif edit == 2:
                i.replace_operand(r.randrange(2), other)
            elif edit == 3:
                name = r.choice(list(i.attributes) or ["sharding"])
                i.set_attribute(name, r.choice([None, 0, (0,), "{0}", i.attribute(name)]))
            elif edit == 4:
                i.clone([r.choice(alive) for _ in i.operands])
            else:
                i.move_before(other)
        except EXPECTED:
            continue
        module.verify()


def test_random_calls_in_threads(module):
    """Threads with modules and handles in common: calls succeed, or one of them is told that the module is in use."""
    text = str(module)
    shared = Driver(4, [text, LOOP])
    register(shared)
    failures = []

    def run(seed):
        driver = Driver(seed, [text, LOOP])
        driver.modules += shared.modules
        driver.handles += shared.handles
        for _ in range(CALLS // 8):
            try:
                driver.step()
            except EXPECTED:
                pass
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(5, 8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
