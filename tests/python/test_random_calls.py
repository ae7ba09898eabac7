# SPDX-License-Identifier: Apache-2.0
"""Random calls, with handles of erased instructions and of other modules and with wrong types, raise Python errors and
leave modules valid."""

import gc
import os
import random

import pytest

import hlokit

CALLS = int(os.environ.get("HLOKIT_RANDOM_CALLS", "4000"))
EXPECTED = (hlokit.HloError, TypeError, ValueError, KeyError, IndexError, AttributeError, OverflowError)

LOOP = """HloModule loop
cond { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(3) ROOT c = pred[] compare(i, n), direction=LT }
body { p = (s32[], f32[4]) parameter(0) i = s32[] get-tuple-element(p), index=0 one = s32[] constant(1) j = s32[] add(i, one)
  x = f32[4] get-tuple-element(p), index=1 y = f32[4] negate(x) ROOT t = (s32[], f32[4]) tuple(j, y) }
ENTRY e { x = f32[4] parameter(0) z = s32[] constant(0) t = (s32[], f32[4]) tuple(z, x) w = (s32[], f32[4]) while(t), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1 }"""


class Driver:
    def __init__(self, seed, texts):
        self.random = random.Random(seed)
        self.texts = texts
        self.modules = [hlokit.parse(t) for t in texts]
        self.handles = [i for m in self.modules for i in m.instructions()]

    def pick(self):
        """A handle, alive or not, or something else altogether."""
        if self.random.random() < 0.03:
            return self.random.choice([None, 5, "x", object(), [], self.modules[0]])
        return self.random.choice(self.handles)

    def any_value(self):
        return self.random.choice([0, -1, 2**70, "", "{0}", (0,), (1, 2), {"a": "b"}, None, 1.5, b"x", self.pick()])

    def step(self):
        r, m = self.random, self.random.choice(self.modules)
        i = self.pick()
        action = r.randrange(16)
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
        else:
            shapes = hlokit.Executable(m, max_seconds=1).argument_shapes
            m.run_on(*[self.any_value() for _ in range(r.randrange(3) or len(shapes))], max_seconds=1)
        if len(self.handles) > 400:
            del self.handles[: len(self.handles) // 2]
            self.handles += [i for m in self.modules for i in m.instructions()]
            gc.collect()


@pytest.mark.parametrize("seed", [1, 2])
def test_random_calls(seed, module):
    driver = Driver(seed, [str(module), LOOP])
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
