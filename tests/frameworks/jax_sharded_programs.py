#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs programs of JAX over 8 devices in hlo-run, and compares their values with JAX's.

usage: jax_sharded_programs.py BIN [--quick] [--forms=text,dump,gspmd] [--only=REGEX] [--keep=DIR]

Each program is lowered by the installed JAX for a mesh of 8 CPU devices, in up to three forms of HLO: the text of
compiler_ir (Shardy's shardings as frontend attributes, no num_partitions), the dump of the compiler before its passes
(named shardings), and both without Shardy (SPMDFullToShardShape). BIN/hlo-run partitions and runs each on seeded arguments
with --partitions=8; results are compared with those that JAX computes on its 8 devices. Prints `N passed, N failed`; exit
code 1 if one failed.

--quick   a third of the programs, in the first two forms
--keep    write programs, arguments and results there
"""
import os
import re
import subprocess
import sys
import tempfile
from functools import partial

FLAGS = dict(a[2:].split("=", 1) if "=" in a else (a[2:], "") for a in sys.argv[1:] if a.startswith("--"))
DUMP = tempfile.TemporaryDirectory()
os.environ["XLA_FLAGS"] = (f"--xla_dump_to={DUMP.name} --xla_dump_hlo_as_text --xla_dump_max_hlo_modules=-1 "
                           "--xla_cpu_multi_thread_eigen=false")
os.environ["JAX_PLATFORMS"] = "cpu"

import numpy as np
import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 8)
PROGRAMS = {}
QUICK = set()
# Programs that a release of JAX, by the beginning of its version, cannot lower itself: its verifier rejects what it has made,
# after which the process may crash.
NOT_LOWERED = {"0.9.": ("nested", "nested_in_three_axes")}
MESH = jax.make_mesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
LINE = jax.make_mesh((8,), ("i",), axis_types=(AxisType.Auto,))
CUBE = jax.make_mesh((2, 2, 2), ("a", "b", "c"), axis_types=(AxisType.Auto,) * 3)


def on(mesh, *spec):
    return NamedSharding(mesh, P(*spec))


def program(*shapes, quick=False, pmap=False, **jit):
    """Registers a function of arrays of these shapes. jit: options of jax.jit."""
    def add(f):
        PROGRAMS[f.__name__] = (jax.pmap(f, axis_name="i") if pmap else jax.jit(f, **jit), shapes)
        if quick:
            QUICK.add(f.__name__)
        return f
    return add


def shmap(mesh, in_specs, out_specs, **more):
    return partial(jax.shard_map, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **more)


# ---- all axes manual ----

@program((8, 6), quick=True)
def psum(x):
    return shmap(MESH, P("x", "y"), P("x", "y"))(lambda a: a / lax.psum(a, "x") + lax.pmean(a, ("x", "y")))(x)


@program((16, 6))
def reductions(x):
    f = lambda a: (lax.pmax(a, "i"), lax.pmin(a.sum(0), "i"), lax.psum(1, "i") * a[:1])
    return shmap(LINE, P("i", None), (P("i", None), P(), P("i", None)), check_vma=False)(f)(x)


@program((8, 6), (6, 4), quick=True)
def tensor_parallel_product(x, w):
    f = lambda a, b: lax.psum(a @ b, "y")
    return shmap(MESH, (P("x", "y"), P("y", None)), P("x", None))(f)(x, w)


@program((16, 8))
def all_gather(x):
    f = lambda a: (lax.all_gather(a, "i", tiled=True) * 2, lax.all_gather(a, "i"))
    return shmap(LINE, P("i"), (P(None), P(None)), check_vma=False)(f)(x)


@program((8, 8, 3), quick=True)
def psum_scatter(x):
    f = lambda a: lax.psum_scatter(a[0], "i", scatter_dimension=0, tiled=True)
    return shmap(LINE, P("i"), P("i"))(f)(x)


@program((16, 24))
def all_to_all(x):
    f = lambda a: lax.all_to_all(a, "i", split_axis=1, concat_axis=0, tiled=True)
    return shmap(LINE, P("i", None), P(None, "i"))(f)(x)


@program((16, 3))
def ppermute_and_index(x):
    def f(a):
        n = lax.axis_index("i")
        return lax.ppermute(a, "i", [(k, (k + 1) % 8) for k in range(8)]) + n
    return shmap(LINE, P("i"), P("i"))(f)(x)


@program((8, 4))
def axis_index_of_three(x):
    def f(a):
        n = lax.axis_index("a") * 100 + lax.axis_index("b") * 10 + lax.axis_index("c")
        return a + n + lax.axis_index(("c", "a"))
    return shmap(CUBE, P(("a", "b"), "c"), P(("a", "b"), "c"))(f)(x)


@program((32, 8), (32, 8), (32, 8), quick=True)
def ring_attention(q, k, v):
    def f(q, k, v):
        def step(_, state):
            k, v, top, total, out = state
            s = q @ k.T / 8 ** 0.5
            new = jnp.maximum(top, s.max(1, keepdims=True))
            e = jnp.exp(s - new)
            scale = jnp.exp(top - new)
            pass_on = partial(lax.ppermute, axis_name="i", perm=[(n, (n + 1) % 8) for n in range(8)])
            return (pass_on(k), pass_on(v), new, total * scale + e.sum(1, keepdims=True), out * scale + e @ v)
        start = (k, v, jnp.full((q.shape[0], 1), -1e9), jnp.zeros((q.shape[0], 1)), jnp.zeros_like(q))
        _, _, _, total, out = lax.fori_loop(0, 8, step, start)
        return out / total
    return shmap(LINE, P("i"), P("i"), check_vma=False)(f)(q, k, v)


@program((8, 4, 6), (8, 6, 6), quick=True)
def pipeline(x, w):
    """8 stages, each with a layer; microbatches travel from one to the next."""
    def f(x, w):
        stage, w = lax.axis_index("i"), w[0]
        def step(state, t):
            fed = jnp.where(stage == 0, x[jnp.clip(t, 0, 7)], state)
            out = jnp.tanh(fed @ w)
            return lax.ppermute(out, "i", [(n, n + 1) for n in range(7)]), out
        _, outs = lax.scan(step, jnp.zeros(x.shape[1:]), jnp.arange(15))
        done = lax.dynamic_slice_in_dim(outs, 7, 8, 0)
        return lax.psum(jnp.where(stage == 7, done, 0), "i")
    return shmap(LINE, (P(), P("i")), P(), check_vma=False)(f)(x, w)


@program((64, 8), (8, 8), (8, 8, 16), quick=True)
def moe_expert_parallel(x, gate, experts):
    def f(x, gate, w):
        scores = jax.nn.softmax(x @ gate)
        best = jnp.argmax(scores, 1)
        to = jax.nn.one_hot(best, 8)                       # tokens, experts
        place = (jnp.cumsum(to, 0) - 1) * to
        room = jax.nn.one_hot(place.sum(1).astype("int32"), 8)
        dispatch = to[:, :, None] * room[:, None, :]       # tokens, experts, room
        sent = jnp.einsum("td,ter->erd", x, dispatch)
        got = lax.all_to_all(sent, "i", 0, 0, tiled=True).reshape(8, 8, -1)
        out = jnp.einsum("srd,df->srf", got, w[0])
        back = lax.all_to_all(out.reshape(8, 8, -1), "i", 0, 0, tiled=True)
        return jnp.einsum("erf,ter->tf", back, dispatch) * scores.max(1, keepdims=True)
    return shmap(LINE, (P("i"), P(), P("i")), P("i"), check_vma=False)(f)(x, gate, experts)


@program((8, 6), (6, 5))
def gradient_through_shard_map(x, w):
    @shmap(MESH, (P("x", "y"), P("y", None)), P("x", None))
    def layer(a, b):
        return jnp.tanh(lax.psum(a @ b, "y"))
    return jax.value_and_grad(lambda w: (layer(x, w) ** 2).sum())(w)


@program((16, 4))
def loop_and_cond_inside(x):
    def f(a):
        def body(c):
            n, v = c
            v = lax.cond(n % 2 == 0, lambda u: lax.psum(u, "i") / 8, lambda u: lax.ppermute(u, "i", [(k, k ^ 1) for k in range(8)]), v)
            return n + 1, v + lax.axis_index("i")
        return lax.while_loop(lambda c: c[0] < 4, body, (0, a))[1]
    return shmap(LINE, P("i"), P("i"), check_vma=False)(f)(x)


@program((8, 6), quick=True)
def constants_inside(x):
    def f(a):
        return a * jnp.arange(3.0)[None] + jnp.ones((2, 3)) * lax.axis_index("y") + lax.psum(jnp.full((), 2.5), "x")
    return shmap(MESH, P("x", "y"), P("x", "y"))(f)(x)


# ---- some axes manual, some automatic ----

@program((8, 6), (6, 4), quick=True, in_shardings=(on(MESH, "x", None), on(MESH, None, "y")), out_shardings=on(MESH, "x", "y"))
def mixed(x, w):
    def f(a, b):
        return a @ b + lax.axis_index("x")
    h = shmap(MESH, (P("x"), P()), P("x"), axis_names={"x"})(f)(jnp.sin(x), w)
    return jnp.cos(h)


@program((8, 6), (6, 8), (8, 6))
def mixed_product_and_reduction(x, u, w):
    def f(a, u, w):
        u = lax.with_sharding_constraint(u, P(None, "y"))
        h = jax.nn.relu(a @ u)
        h = lax.with_sharding_constraint(h, P(None, "y"))
        return lax.psum(h @ w, "x") / 4 + a
    return shmap(MESH, (P("x"), P(), P()), P("x"), axis_names={"x"})(f)(x, u, w)


@program((8, 6))
def mixed_loop(x):
    def f(a):
        def body(n, c):
            return jnp.tanh(lax.ppermute(c, "x", [(k, (k + 1) % 4) for k in range(4)])) + n
        return lax.fori_loop(0, 3, body, a) + lax.all_gather(a, "x", tiled=True).sum(0)
    return shmap(MESH, P("x"), P("x"), axis_names={"x"}, check_vma=False)(f)(x)


@program((8, 6), quick=True)
def nested(x):
    @partial(jax.shard_map, mesh=MESH, in_specs=P("x", None), out_specs=P("x", None), axis_names={"x"})
    def outer(a):
        @partial(jax.shard_map, in_specs=P(None, "y"), out_specs=P(None, "y"), axis_names={"y"})
        def inner(b):
            return lax.ppermute(b, "y", [(0, 1), (1, 0)]) + lax.axis_index("y")
        return inner(a) * 2 + lax.pmean(a, "x") + lax.axis_index("x")
    return outer(x)


@program((8, 6, 4))
def nested_in_three_axes(x):
    @partial(jax.shard_map, mesh=CUBE, in_specs=P("a"), out_specs=P("a"), axis_names={"a"})
    def outer(u):
        @partial(jax.shard_map, in_specs=P(None, "b"), out_specs=P(None, "b"), axis_names={"b"})
        def inner(v):
            return v + lax.psum(v, "b") * lax.axis_index("b")
        return inner(jnp.sin(u)) + lax.psum(u, "a")
    return outer(x) * 2


@program((8, 6), (8, 6))
def two_regions(x, y):
    f = shmap(MESH, P("x", "y"), P("x", "y"))(lambda a: a - lax.pmean(a, "x"))
    g = shmap(MESH, P(("x", "y")), P(("x", "y")))(lambda a: a * lax.axis_index("x"))
    return f(x) @ g(y).T


# ---- automatic ----

@program((16, 6), (6, 8), (8, 3), quick=True, in_shardings=(on(MESH, "x"), on(MESH, None, "y"), on(MESH, "y", None)))
def data_and_tensor(x, u, w):
    loss = lambda p: ((jax.nn.gelu(x @ p[0]) @ p[1]) ** 2).mean()
    return jax.grad(loss)((u, w))


@program((16, 8), (8, 16), (16, 8), in_shardings=(on(LINE, "i"), on(LINE, "i"), on(LINE, "i")))
def fsdp(x, u, w):
    loss = lambda p: (jnp.tanh(x @ p[0]) @ p[1]).sum()
    value, grads = jax.value_and_grad(loss)((u, w))
    return value, jax.tree.map(lambda p, g: lax.with_sharding_constraint(p - 0.1 * g, on(LINE, "i")), (u, w), grads)


@program((2, 16, 8), (8, 8), in_shardings=(on(MESH, None, "x"), on(MESH, None, "y")))
def sequence_parallel(x, w):
    mean = x.mean(-1, keepdims=True)
    h = lax.with_sharding_constraint((x - mean) @ w, on(MESH, None, None, "y"))
    return lax.with_sharding_constraint(jnp.cumsum(h, 1), on(MESH, None, "x"))


@program((8, 12), (12, 12), in_shardings=(on(CUBE, "a", "b"), on(CUBE, "b", "c")))
def unconstrained(x, w):
    y = lax.with_sharding_constraint(x @ w, on(CUBE, P.UNCONSTRAINED, None))
    return lax.sort(y, dimension=1), y.sum(0)


@program((8, 4), (4, 4))
def regions_and_automatic(x, w):
    x = lax.with_sharding_constraint(x, on(MESH, "x", None))
    h = jax.nn.softmax(x @ w)
    h = shmap(MESH, P("x"), P("x"), axis_names={"x", "y"}, check_vma=False)(lambda a: lax.ppermute(a, "x", [(0, 3), (3, 0), (1, 1), (2, 2)]))(h)
    return lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), h)


@program((16,))
def reshapes(x):
    y = lax.with_sharding_constraint(x.reshape(4, 4), on(MESH, "x", "y"))
    return lax.with_sharding_constraint((y * 2).reshape(16), on(MESH, ("x", "y")))


@program((8, 3), quick=True, pmap=True)
def pmap_psum(x):
    return x / lax.psum(x, "i") + lax.axis_index("i")


@program((8, 4, 5), (8, 5), pmap=True)
def pmap_step(x, w):
    g = jax.grad(lambda w: ((x @ w) ** 2).mean())(w)
    return w - 0.1 * lax.pmean(g, "i"), lax.all_gather(g, "i")


def arguments(shapes, seed):
    random = np.random.default_rng(seed)
    return [random.standard_normal(s).astype("float32") for s in shapes]


def dumped(before):
    """The dump of the one large module that was compiled since."""
    names = sorted(set(os.listdir(DUMP.name)) - before)
    found = [n for n in names if n.endswith("before_optimizations.txt")]
    texts = [open(os.path.join(DUMP.name, n)).read() for n in found]
    texts = [t for t in texts if "num_partitions=8" in t]
    return texts[-1] if texts else None


def run(tools, text, args, folder, name):
    """The results of the program in hlo-run, or its complaint."""
    path = os.path.join(folder, f"{name}.hlo")
    open(path, "w").write(text)
    np.savez(f"{path}.args.npz", *args)
    made = subprocess.run([f"{tools}/hlo-run", path, "--partitions=8", f"--args={path}.args.npz", "-o", f"{path}.results.npz",
                           "--no-print-results"], capture_output=True, text=True)
    if made.returncode != 0:
        return f"exit code {made.returncode}: {(made.stdout + made.stderr)[:1500]}"
    with np.load(f"{path}.results.npz") as results:
        return [results[k] for k in results.files]


def check(expected, got):
    if isinstance(got, str):
        return got
    if len(expected) != len(got):
        return f"{len(got)} results, not {len(expected)}"
    for k, (e, g) in enumerate(zip(expected, got)):
        e = np.asarray(e)
        if e.dtype != g.dtype or e.shape != g.shape:
            return f"result {k} is {g.dtype}{g.shape}, not {e.dtype}{e.shape}"
        if not np.allclose(e, g, rtol=2e-4, atol=2e-5):
            return f"result {k} differs by {np.abs(e - g).max():.3g}"
    return ""


def texts_of(function, args, shardy, forms):
    """The texts of a program by form, and with Shardy its results in JAX; without it XLA ends the process on some."""
    jax.config.update("jax_use_shardy_partitioner", shardy)
    jax.clear_caches()
    before = set(os.listdir(DUMP.name))
    lowered = function.lower(*args)
    if not shardy:
        return {"gspmd": lowered.compiler_ir("hlo").as_hlo_text()}, None
    expected = jax.tree.leaves(lowered.compile()(*args))
    texts = {"text": lowered.compiler_ir("hlo").as_hlo_text(), "dump": dumped(before)}
    return {form: text for form, text in texts.items() if form in forms}, expected


def main():
    tools = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(tools) != 1:
        sys.exit(__doc__)
    quick = "quick" in FLAGS
    forms = FLAGS.get("forms", "text,dump" if quick else "text,dump,gspmd").split(",")
    keep = FLAGS.get("keep") or DUMP.name
    os.makedirs(keep, exist_ok=True)
    print(f"jax {jax.__version__}")
    left_out = [name for version, names in NOT_LOWERED.items() if jax.__version__.startswith(version) for name in names]
    passed, failed = 0, []
    for seed, (name, (function, shapes)) in enumerate(PROGRAMS.items()):
        if (quick and name not in QUICK) or not re.search(FLAGS.get("only", ""), name):
            continue
        if name in left_out:
            print(f"{name}: not run, JAX {jax.__version__} cannot lower it")
            continue
        args = arguments(shapes, seed)
        for shardy in (True, False) if "gspmd" in forms else (True,):
            try:
                texts, results = texts_of(function, args, shardy, forms)
            except Exception as e:
                why = f"{name}{'' if shardy else ' without Shardy'}: not lowered: {type(e).__name__}: {str(e)[:100]!r}"
                failed.append(why)
                print(f"FAILED {why}", flush=True)
                if shardy:
                    break
                continue
            expected = results if shardy else expected
            for form, text in texts.items():
                why = check(expected, run(tools[0], text, args, keep, f"{name}.{form}")) if text else "no dump"
                if why:
                    failed.append(f"{name} ({form}): {why}")
                    print(f"FAILED {failed[-1]}", flush=True)
                else:
                    passed += 1
    print(f"{passed} passed, {len(failed)} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
