#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what jaxlib writes of small programs with hlokit, and what hlokit writes of them with jaxlib.

  jaxlib_text.py BIN [PROGRAM...]

BIN is the directory of hlokit's tools, and the Python that runs this has jax and jaxlib. Each program is read as
StableHLO (text, text with locations, portable artifact) and as XLA's dumps (text and protos, before and after its
optimizations, over 8 devices where it is sharded). jaxlib's parser must accept what is printed of each dump, and
print the same of it as of the dump; --print=dump of a dump, and of the proto beside it, must be the dump, byte for
byte. Ends with `N passed, N failed`.
"""
import atexit
import collections
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

DUMPS = pathlib.Path(tempfile.mkdtemp(prefix="jaxlib_text."))
atexit.register(shutil.rmtree, DUMPS, ignore_errors=True)
os.environ["XLA_FLAGS"] = (f"--xla_force_host_platform_device_count=8 --xla_dump_to={DUMPS} --xla_dump_hlo_as_text "
                           "--xla_dump_hlo_as_proto --xla_dump_hlo_module_re=jit_program.*")
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

try:
    from jaxlib import _hlo as hlo
except ImportError:
    from jaxlib import _jax as hlo


def reads(instruction):
    """Whether jaxlib knows what one instruction of arrays p and q is written with."""
    try:
        hlo.hlo_module_from_text("HloModule m\nENTRY e {\n  p = f32[2]{0} parameter(0)\n  q = f32[2]{0} parameter(1)\n"
                                 f"  t = (f32[2]{{0}}, f32[2]{{0}}) tuple(p, q)\n  ROOT r = {instruction}\n}}\n")
        return True
    except Exception:  # of jaxlib
        return False


# `order=` of compares and `%t#1`.
NEW_FORMS = reads("pred[2]{0} compare(p, q), direction=LT, order=TOTAL") and reads("f32[2]{0} negate(t#1)")
KNOWS_STABLE = reads("(f32[1]{0}, s32[1]{0}) topk(p), k=1, largest=true, is_stable=true")

MESH = jax.make_mesh((4, 2), ("a", "b"), axis_types=(AxisType.Auto, AxisType.Auto))
LINE = jax.make_mesh((8,), ("e",), axis_types=(AxisType.Explicit,))
ONE = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("one",))
PROGRAMS = {}


def arg(shape, dtype="f4", spec=None, mesh=MESH):
    sharding = None if spec is None else NamedSharding(mesh, spec)
    return jax.ShapeDtypeStruct(shape, np.dtype(dtype), sharding=sharding)


def program(*args, compiles=True, **options):
    def add(function):
        PROGRAMS[function.__name__] = (function, args, compiles, options)
        return function
    return add


def on(spec, mesh=MESH):
    return NamedSharding(mesh, spec)


def shard(in_specs, out_specs, mesh=MESH, **options):
    return functools.partial(jax.shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


# ---- one device ----

@program(arg((8, 4)), arg((4, 6)))
def mlp(x, w):
    return jax.nn.gelu(x @ w).sum()


@program(arg((2,), "u4"))
def normal(key):
    return jax.random.normal(key, (3,))


@program(arg((2,), "u4"), arg((4, 4)))
def dropout(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x / 0.9, 0)


@program(arg((16,)))
def sorts(x):
    return jnp.sort(x), jnp.argsort(-x), jnp.median(x)


@program(arg((16,)))
def top_k(x):
    return lax.top_k(x, 3)


@program(arg((16,)))
def approx_max_k(x):
    return lax.approx_max_k(x, 3)


@program(arg((16,), "i4"))
def unique(x):
    return jnp.unique(x, size=4)


@program(arg((8,)), arg((8,)))
def total_order(x, y):
    return lax.lt_to(x, y) if hasattr(lax, "lt_to") else jnp.lexsort((x, y))


@program(arg((4,)))
def loops(x):
    return lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x), lax.while_loop(lambda c: c[0] < 9., lambda c: c + 1, x)


@program(arg((5, 4)))
def scan(x):
    return lax.scan(lambda c, a: (c + a, c * a), jnp.zeros(4), x)


@program(arg((), "i4"), arg((4,)))
def branches(i, x):
    return lax.switch(i, [jnp.sin, jnp.cos, lambda v: v], x)


@program(arg((4, 4)), compiles=False)
def cholesky(x):
    return jnp.linalg.cholesky(x), jnp.linalg.slogdet(x)


@program(arg((3, 3)), compiles=False)
def eigh(x):
    return jnp.linalg.eigh(x)


@program(arg((2, 8, 8, 3)), arg((3, 3, 3, 4)))
def convolution(x, w):
    return lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@program(arg((2, 8)))
def windows(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 3), (1, 2), "SAME"), lax.cumsum(x, axis=1)


@program(arg((8, 4)), arg((3,), "i4"))
def gather_scatter(x, i):
    return x[i], x.at[i].add(1.), x.at[i, 0].set(2.)


@program(arg((4, 4), "c8"))
def complex_numbers(x):
    return jnp.fft.fft(x) * jnp.exp(x)


@program(arg((8,), "bfloat16"), arg((8,), "float8_e4m3fn"), arg((8,), "int4"))
def small_types(x, y, z):
    return x + y.astype(jnp.bfloat16), z + z


@program(arg((0, 3)))
def no_elements(x):
    return x + jnp.zeros((0, 3)), jnp.ones((0, 0))


@program(arg(()))
def pure_callback(x):
    return jax.pure_callback(lambda v: v, jax.ShapeDtypeStruct((), np.float32), x)


@program(arg(()))
def debug_print(x):
    jax.debug.print("x = {}", x)
    return x * 2


@program(arg((4,)), donate_argnums=0)
def donated(x):
    return x + 1


@program(arg((8, 4)), arg((4, 6)))
def gradient(x, w):
    return jax.value_and_grad(lambda v: jnp.tanh(x @ v).sum())(w)


@program(arg((6, 4)), arg((2, 4, 5)), arg((2,), "i4"))
def ragged(x, w, sizes):
    return lax.ragged_dot(x, w, sizes)


@program(arg((4, 4), spec=P("one"), mesh=ONE))
def one_device_mesh(x):
    return x * 2


# ---- 8 devices ----

@program(arg((8, 8), spec=P("a", "b")), arg((8, 8), spec=P("b", None)))
def matmul(x, w):
    return lax.with_sharding_constraint(x @ w, on(P("a", None)))


@program(arg((8, 8), spec=P("a", "b")))
def orders(x):
    y = lax.with_sharding_constraint(jnp.ones((8, 8)), on(P(("a", "b"))))
    return lax.with_sharding_constraint(x @ y, on(P(None, ("b", "a"))))


@program(arg((8, 8), spec=P("a")))
def sharded_loop(x):
    return lax.fori_loop(0, 3, lambda i, c: lax.with_sharding_constraint(c * 2, on(P("b"))), x)


@program(arg((8, 8), spec=P("e"), mesh=LINE))
def explicit(x):
    return jnp.sum(jax.sharding.reshard(x, on(P(None, "e"), LINE)), axis=0)


@program(arg((16,), spec=P("a")))
def sharded_sort(x):
    return jnp.sort(x), lax.cumsum(x)


@program(arg((8, 8), spec=P("a")), out_shardings=(on(P("b")), on(P())))
def result_shardings(x):
    return x + 1, x.sum()


@program(arg((8, 8), spec=P("a", "b")))
@shard(P("a", "b"), P("a"))
def psum(x):
    return lax.psum(x, "b")


@program(arg((8, 8), spec=P("a", "b")))
@shard(P("a", "b"), (P("a", "b"), P(None, "b"), P("a", "b"), P("a", "b")), check_vma=False)
def collectives(x):
    return (lax.ppermute(x, "a", [(0, 1), (1, 0)]), lax.all_gather(x, "a", tiled=True),
            lax.all_to_all(x, "b", 0, 1, tiled=True),
            lax.psum_scatter(lax.all_gather(x, "a", tiled=True), "a", tiled=True))


@program(arg((8, 8), spec=P("a", "b")))
@shard(P("a", None), P("a"), axis_names={"a"})
def partly_manual(x):
    return lax.psum(x, "a") @ jnp.ones((8, 8)) * lax.axis_index("a")


@program(arg((8,), spec=P(("a", "b"))))
def manual_in_auto(x):
    return jnp.sin(shard(P(("a", "b")), P())(lambda v: lax.psum(v, ("a", "b")))(jnp.cos(x)))


@program(arg((8, 8), spec=P("a", "b")), arg((8, 8)))
@shard((P("a", "b"), P()), (P("a", "b"), P()), check_vma=False)
def several(x, y):
    return x + 1, lax.pmean(y, ("a", "b"))


@program(arg((8, 8), spec=P("a")))
@shard(P("a"), P("a"))
def manual_loop(x):
    return lax.fori_loop(0, 2, lambda i, c: lax.ppermute(c, "a", [(i, (i + 1) % 4) for i in range(4)]), x)


class Tools:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def run(self, tool, *args, text):
        """Returns the output of a tool; raises its errors."""
        data = text if isinstance(text, bytes) else text.encode()
        done = subprocess.run([self.folder / tool, *args, "-"], input=data, capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{tool} {' '.join(args)}: {done.stderr.decode()[:300]}")
        return done.stdout


def parsed(text):
    """The module that jaxlib reads, which has not always known that a top-k is stable."""
    return hlo.hlo_module_from_text(text if KNOWS_STABLE else re.sub(r"( topk\(.*), is_stable=\w+", r"\1", text))


def same_text(ours, theirs, what):
    if ours == theirs:
        return
    for a, b in zip(ours.splitlines(), theirs.splitlines()):
        if a != b:
            raise RuntimeError(f"{what}\n  {a[:300]}\n  {b[:300]}")
    raise RuntimeError(f"{what}: another length")


def opcodes(text):
    """How many instructions there are of each opcode."""
    return collections.Counter(re.findall(r" = .*? ([a-z][a-z-]*)\(", text))


def comparable(text, message=False):
    """A module without the numbers of stack frames; message: without what a message does not hold."""
    header, _, rest = text.partition("\n")
    if message:
        header = re.sub(r", allow_spmd_sharding_propagation_to_\w+=\{[^}]*\}", "", header)
        header = re.sub(r", (num_partitions|replica_count)=\d+", "", header)
    rest = re.sub(r"\n*FileNames\n.*?StackFrames\n(\d+ .*\n)*\s*", "\n", rest, flags=re.DOTALL)
    return header + "\n" + re.sub(r" ?stack_frame_id=\d+", "", rest).strip()


def read_stablehlo(tools, lowered):
    text = lowered.as_text()
    converted = tools.run("hlo-translate", "--to=hlo", text=text).decode()
    located = tools.run("hlo-translate", "--to=hlo", text=lowered.as_text(debug_info=True)).decode()
    if opcodes(located) != opcodes(converted) or "op_name" not in located:
        raise RuntimeError("another program from the text with locations")
    once = tools.run("hlo-translate", "--to=stablehlo", text=text)
    same_text(tools.run("hlo-translate", "--to=stablehlo", text=once).decode(), once.decode(), "StableHLO changes")
    generic = tools.run("hlo-translate", "--to=stablehlo", "--generic", text=text)
    same_text(tools.run("hlo-translate", "--to=stablehlo", text=generic).decode(), once.decode(), "the generic form")
    parsed(converted)


def read_artifact(tools, jitted, args):
    checks = [export.DisabledSafetyCheck.custom_call("ApproxTopK")]
    exported = export.export(jitted, disabled_checks=checks)(*args)
    artifact = tools.run("hlo-translate", "--to=hlo", text=exported.mlir_module_serialized).decode()
    text = tools.run("hlo-translate", "--to=hlo", text=exported.mlir_module()).decode()
    if opcodes(artifact) != opcodes(text):
        raise RuntimeError(f"{opcodes(artifact)} from the artifact, {opcodes(text)} from text")
    program = tools.run("hlo-translate", "--to=stablehlo", text=exported.mlir_module_serialized)
    same_text(program, tools.run("hlo-translate", "--to=stablehlo", text=program), "StableHLO of the artifact changes")


def read_hlo(tools, text, is_dump):
    module = parsed(text)
    theirs = comparable(module.to_string())
    printed = tools.run("hlo-opt", "--print=default", "--print-large-constants", text=text).decode()
    same_text(comparable(parsed(printed).to_string()), theirs, "jaxlib prints something else")
    if NEW_FORMS:
        newer = tools.run("hlo-opt", "--print=default", "--print-large-constants", "--print-comparison-order",
                          text=text)
        same_text(comparable(newer.decode()), theirs, "hlokit prints something else")
        dump = tools.run("hlo-opt", "--print=dump", "--print-large-constants", text=text).decode()
        again = comparable(parsed(dump).to_string())
        if is_dump:
            same_text(again, theirs, "jaxlib prints something else of --print=dump")
            same_text(tools.run("hlo-opt", "--print=dump", text=text).decode(), text, "--print=dump changes the dump")
    proto = tools.run("hlo-translate", "--to=proto", text=text)
    read = hlo.HloModule.from_serialized_hlo_module_proto(module_of(proto))
    same_text(comparable(read.to_string(), True), comparable(module.to_string(), True), "jaxlib prints something else of the proto")


def module_of(message):
    """The HloModuleProto in an HloProto or HloModuleProtoWithConfig, of which it is the first field."""
    if message[0] != 0x0a:
        raise RuntimeError("no module in a message")
    size, at, shift = 0, 1, 0
    while True:
        size |= (message[at] & 0x7f) << shift
        shift += 7
        at += 1
        if message[at - 1] < 0x80:
            break
    return message[at:at + size] if at + size <= len(message) and message[at] == 0x0a else message


def read_proto(tools, message, path):
    dump = path.read_text()

    def of_message(data):
        return comparable(hlo.HloModule.from_serialized_hlo_module_proto(module_of(data)).to_string(), True)

    theirs = of_message(message)
    if NEW_FORMS:
        printed = tools.run("hlo-opt", "--print=dump", text=message).decode()
        same_text(comparable(printed, True), comparable(dump, True), "hlokit prints something else than the dump")
        printed = tools.run("hlo-opt", "--print=dump", f"--config={path}", text=message).decode()
        same_text(printed, dump, "--config: hlokit prints something else than the dump")
    printed = tools.run("hlo-opt", "--print=default", "--print-large-constants", text=message).decode()
    same_text(comparable(parsed(printed).to_string(), True), theirs, "jaxlib prints something else of the text")
    again = tools.run("hlo-translate", "--to=proto", text=message)
    same_text(of_message(again), theirs, "jaxlib prints something else of the proto")


def require_dump(pattern):
    if not any(DUMPS.glob(pattern)):
        raise RuntimeError(f"XLA has written no {pattern}")


def main():
    tools = Tools(sys.argv[1])
    names = sys.argv[2:] or list(PROGRAMS)
    passed = failed = 0

    def check(name, what, function, *args):
        nonlocal passed, failed
        try:
            function(*args)
            passed += 1
        except Exception as error:  # of jaxlib, hlokit or this script
            failed += 1
            print(f"FAILED {name}: {what}: {str(error)[:700]}")

    for name in names:
        function, args, compiles, options = PROGRAMS[name]

        def renamed(*values):
            return function(*values)

        renamed.__name__ = f"program_{name}_end"
        jitted = jax.jit(renamed, **options)
        lowered = jitted.lower(*args)
        check(name, "StableHLO", read_stablehlo, tools, lowered)
        if name not in ("pure_callback", "debug_print"):  # which JAX cannot export
            check(name, "artifact", read_artifact, tools, jitted, args)
        check(name, "lowered HLO", read_hlo, tools, lowered.as_text(dialect="hlo"), False)
        if not compiles:
            continue
        check(name, "optimized HLO", read_hlo, tools, lowered.compile().as_text(), False)
        for stage in ("before_optimizations", "after_optimizations"):
            files = f"*jit_program_{name}_end.*{stage}"
            for ending in ("txt", "hlo.pb"):
                check(name, f"files of {stage}", require_dump, f"{files}.{ending}")
            for path in DUMPS.glob(f"{files}.txt"):
                check(name, f"dump of text {stage}", read_hlo, tools, path.read_text(), True)
            for path in DUMPS.glob(f"{files}.hlo.pb"):
                check(name, f"dump of a proto {stage}", read_proto, tools, path.read_bytes(),
                      path.with_suffix("").with_suffix(".txt"))
    print(f"jax {jax.__version__}")
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
