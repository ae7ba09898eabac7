# SPDX-License-Identifier: Apache-2.0
"""Programs with explicit shardings on several devices: partial results, and shardings of results that the program says.

What a release of JAX does not have is left out."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from . import program


def mesh(*shape, names=("x", "y")):
    devices = np.array(jax.devices()[:int(np.prod(shape))]).reshape(shape)
    return Mesh(devices, names[:len(shape)], axis_types=(jax.sharding.AxisType.Explicit,) * len(shape))


def parts(array):
    return [np.asarray(shard.data) for shard in array.addressable_shards]


try:
    P(unreduced={"x"})
    HAS_PARTIAL = hasattr(jax, "reshard")
except TypeError:
    HAS_PARTIAL = False
HAS_KINDS = hasattr(jax.sharding, "UnreducedKind")
DATA = np.arange(48, dtype="f4").reshape(8, 6)


@program
def result_sharding_of_an_argument():
    m = mesh(4, 2)
    whole, divided = NamedSharding(m, P()), NamedSharding(m, P("x", "y"))
    f = jax.jit(lambda v: v, in_shardings=whole, out_shardings=divided)
    g = jax.jit(lambda v: lax.with_sharding_constraint(v * 2, whole), in_shardings=divided, out_shardings=divided)
    return parts(f(DATA)), parts(g(DATA)), [s.data.shape for s in f(DATA).addressable_shards]


@program
def types_of_divided_arrays():
    m = mesh(4)
    results = []
    for dtype in (jnp.complex64, jnp.bfloat16, jnp.float8_e4m3fn, jnp.int4, jnp.bool_):
        with jax.set_mesh(m):
            a = jax.device_put((np.arange(8) % 5).astype(dtype), P("x"))
            results.append(jax.jit(lambda v: jax.sharding.reshard(v, P()).astype(jnp.complex64) * 2)(a))
    return results


if HAS_PARTIAL:

    @program
    def values_become_partial():
        with jax.set_mesh(mesh(4)):
            whole, divided = jax.device_put(DATA, P()), jax.device_put(DATA, P("x"))
            results = [jax.jit(lambda v: v, out_shardings=P(unreduced={"x"}))(v) for v in (whole, divided)]
            return [parts(r) for r in results], [jax.reshard(r, P()) for r in results]

    @program
    def partial_results_of_scatters():
        with jax.set_mesh(mesh(4)):
            values = jax.device_put(np.arange(8, dtype="i4"), P("x"))
            segments = jax.device_put(np.array([0, 0, 1, 1, 1, 2, 2, 3]), P("x"))

            def f(v, s, out):
                return jax.ops.segment_sum(v, s, num_segments=4, out_sharding=out)

            partial = jax.jit(lambda v, s: f(v, s, P(unreduced={"x"})))(values, segments)
            return parts(partial), jax.reshard(partial, P()), jax.jit(lambda v, s: f(v, s, P()))(values, segments)

    @program
    def gradients_are_summed_once():
        with jax.set_mesh(mesh(2)):
            weights = [jax.device_put(np.full((6, 6), 0.1 * k, "f4"), P(reduced={"x"})) for k in (1, 2, 3)]
            batches = jax.device_put(np.arange(48, dtype="f4").reshape(2, 4, 6) / 9, P(None, "x", None))

            def loss(ws, batch):
                for w in ws:
                    batch = jnp.tanh(batch @ w)
                return batch.sum()

            @jax.jit
            def step(ws, xs):
                sums = jax.reshard([jnp.zeros_like(w) for w in ws], P(unreduced={"x"}))
                sums, _ = lax.scan(lambda s, x: (jax.tree.map(jnp.add, s, jax.grad(loss)(ws, x)), None), sums, xs)
                return [jax.reshard(w, P()) - 0.1 * jax.reshard(s, P()) for w, s in zip(ws, sums)]

            return step(weights, batches), step.lower(weights, batches).compile().as_text().count(" all-reduce(")


if HAS_PARTIAL and HAS_KINDS:

    @program
    def partial_maxima():
        results = []
        with jax.set_mesh(mesh(2, 2)):
            a = jax.device_put(DATA, P("x", "y"))
            for kind, reduce in ((jax.sharding.UnreducedKind.max, lax.reduce_max), (jax.sharding.UnreducedKind.min, lax.reduce_min)):
                partial = jax.jit(
                    lambda v: reduce(v, axes=(0,), out_sharding=P("y", unreduced={"x"}, unreduced_kind=kind)))(a)
                results.append((parts(partial), jax.reshard(partial, P("y"))))
        return results


@program
def batches_of_matrices():
    m = Mesh(np.array(jax.devices()[:2]), ("b",))
    random = np.random.RandomState(0)
    batch = jax.device_put(random.randn(4, 5, 5).astype("f4"), NamedSharding(m, P("b")))
    results = []
    for f in (jnp.linalg.qr, jnp.linalg.svd, jax.scipy.linalg.lu_factor, lambda v: jnp.linalg.eigvalsh(v @ v.mT)):
        compiled = jax.jit(f).lower(batch).compile()
        results.append((jax.tree.map(jnp.abs, compiled(batch)), "all-gather" in compiled.as_text(),
                        [str(r.sharding.spec) for r in jax.tree.leaves(compiled(batch))]))
    return results


@program
def function_with_custom_partitioning():
    try:
        from jax.experimental.custom_partitioning import custom_partitioning
    except ImportError:
        return None
    m = Mesh(np.array(jax.devices()[:4]), ("x",))

    @custom_partitioning
    def scaled(v):
        return jnp.tanh(v) * 3

    def partition(mesh, args, result):
        return mesh, lambda v: jnp.tanh(v) * 3, args[0].sharding, (args[0].sharding,)

    scaled.def_partition(partition=partition, sharding_rule="i j -> i j")
    a = jax.device_put(DATA, NamedSharding(m, P("x")))
    return jax.jit(lambda v: scaled(v) + v)(a), jax.jit(scaled)(a)
