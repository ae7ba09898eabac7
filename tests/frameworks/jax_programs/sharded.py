# SPDX-License-Identifier: Apache-2.0
"""Programs on eight devices: jit with shardings, shard_map, pmap."""

import functools
import threading

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from . import program, program_since


def mesh(*shape, names=("x", "y")):
    return Mesh(np.array(jax.devices()[:int(np.prod(shape))]).reshape(shape), names[:len(shape)])


DATA = np.arange(64, dtype="f4").reshape(8, 8) / 7


@program
def sharded_product():
    m = mesh(4, 2)
    a = jax.device_put(DATA, NamedSharding(m, P("x", "y")))
    f = jax.jit(lambda v: jnp.sin(v @ v.T), out_shardings=NamedSharding(m, P("x", None)))
    y = f(a)
    return y, [s.data.shape for s in y.addressable_shards], len(y.sharding.device_set)


@program
def sharded_reduction_and_gradient():
    m = mesh(8)
    a = jax.device_put(DATA, NamedSharding(m, P("x")))
    return jax.jit(jax.value_and_grad(lambda v: jnp.mean(jnp.tanh(v @ v) ** 2)))(a), jnp.sort(a, 0), jax.random.normal(
        jax.random.key(0), (8,)) + a[:, 0]


@program
def sharding_constraint():
    m = mesh(2, 4)

    @jax.jit
    def f(v):
        v = lax.with_sharding_constraint(v * 2, NamedSharding(m, P("x", "y")))
        return lax.with_sharding_constraint(v.T @ v, NamedSharding(m, P("y", None)))

    return f(DATA)


@program
def shard_map_with_collectives():
    m = mesh(4, 2)

    @functools.partial(jax.shard_map, mesh=m, in_specs=P("x", "y"), out_specs=P("x", "y"))
    def f(v):
        total = lax.psum(v, "x")
        return total + lax.ppermute(v, "y", [(0, 1), (1, 0)]) + lax.axis_index("x")

    return jax.jit(f)(DATA), f(DATA)


@program
def shard_map_gather_and_scatter():
    m = mesh(8)
    gather = jax.shard_map(lambda v: lax.all_gather(v, "x", tiled=True).sum(0, keepdims=True) * v, mesh=m, in_specs=P("x"),
                           out_specs=P("x"))
    scatter = jax.shard_map(lambda v: lax.psum_scatter(v[0], "x", tiled=True), mesh=m, in_specs=P("x", None), out_specs=P("x"))
    exchange = jax.shard_map(lambda v: lax.all_to_all(v, "x", 1, 1, tiled=True), mesh=m, in_specs=P("x"), out_specs=P("x"))
    return gather(DATA), scatter(DATA), exchange(DATA)


@program
def gradient_of_shard_map():
    m = mesh(8)
    f = jax.shard_map(lambda w, v: lax.pmean(jnp.sum((v @ w) ** 2), "x"), mesh=m, in_specs=(P(), P("x")), out_specs=P())
    return jax.jit(jax.value_and_grad(f))(jnp.ones((8, 3)), DATA)


@program
def pmap():
    n = jax.device_count()
    return jax.pmap(lambda v: v + lax.psum(v, "i"), axis_name="i")(jnp.arange(float(n))), jax.pmap(jnp.dot, in_axes=(0, None))(
        DATA, jnp.ones(8))


@program
def data_parallel_training():
    m = mesh(8)
    random = np.random.RandomState(0)
    x = jax.device_put(random.randn(32, 4).astype("f4"), NamedSharding(m, P("x")))
    y = jax.device_put(random.randn(32).astype("f4"), NamedSharding(m, P("x")))
    w = jax.device_put(jnp.zeros(4), NamedSharding(m, P()))
    step = jax.jit(lambda w: w - 0.1 * jax.grad(lambda v: jnp.mean((x @ v - y) ** 2))(w), donate_argnums=0)
    for _ in range(4):
        w = step(w)
    return w, w.sharding.is_fully_replicated


@program
def mesh_of_one_device():
    m = mesh(1)
    a = jax.device_put(DATA, NamedSharding(m, P("x")))
    return jax.jit(lambda v: v * 2)(a), jax.shard_map(lambda v: lax.psum(v, "x"), mesh=m, in_specs=P("x"), out_specs=P())(a)


@program
def callbacks_of_devices():
    m = mesh(4)
    seen = []
    f = jax.shard_map(lambda v: (jax.debug.callback(lambda s: seen.append(float(s)), v.sum()), v * 2)[1], mesh=m,
                      in_specs=P("x"), out_specs=P("x"))
    result = jax.block_until_ready(jax.jit(f)(DATA))
    jax.effects_barrier()
    a = jax.device_put(DATA, NamedSharding(m, P("x")))
    sines = jax.jit(lambda v: jax.pure_callback(lambda u: np.sin(u), jax.ShapeDtypeStruct(v.shape, v.dtype), v))(a)
    return result, sorted(round(s, 3) for s in seen), sines


@program
def reshard_between_meshes():
    a = jax.device_put(DATA, NamedSharding(mesh(8), P("x")))
    b = jax.device_put(a, NamedSharding(mesh(2, 4), P("y", "x")))
    return b, b + jax.device_put(a, b.sharding), jax.device_put(b, jax.devices()[3]).sum()


@program_since(0, 10)
def callbacks_run_on_one_device():
    from jax.experimental import io_callback

    seen = []

    @jax.jit
    def f(x):
        io_callback(lambda v: seen.append(float(np.sum(v))), None, x, ordered=True)
        y = io_callback(lambda v: (seen.append(1.0), v * 2)[1], jax.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True)
        return x + y, y.sum()

    result = f(jax.device_put(DATA, NamedSharding(mesh(8), P("x"))))
    jax.effects_barrier()
    return result, seen


@program
def reversed_arrays():
    """Arrays that are reversed along a divided dimension are divided over the axes of the mesh, as others are."""
    x = jax.device_put(DATA, NamedSharding(mesh(4, 2), P("x", "y")))
    results = []
    for f in (lambda a: jnp.flip(a, 0) + 1, jnp.rot90, lambda a: a[::-1, ::-1], lambda a: (a[::-1].T * 2, a.sum())):
        y = jax.jit(f)(x)
        results += [(leaf.sharding.spec, leaf, leaf + 1) for leaf in jax.tree.leaves(y)]
    return [(str(spec), value, more) for spec, value, more in results]


@program
def callbacks_that_wait_for_each_other():
    """Each device's callback goes on when all have come to it."""
    barrier = threading.Barrier(8, timeout=20)

    def meet(v):
        barrier.wait()
        return v * 2

    m = mesh(8)
    f = jax.jit(jax.shard_map(lambda v: jax.pure_callback(meet, jax.ShapeDtypeStruct(v.shape, v.dtype), v) + 1, mesh=m,
                              in_specs=P("x"), out_specs=P("x")))
    x = jax.device_put(DATA, NamedSharding(m, P("x")))
    return f(x), f(x)


@program
def function_with_a_partitioner_of_its_own():
    from jax.experimental.custom_partitioning import custom_partitioning

    @custom_partitioning
    def normalized(v, w):
        return v / jnp.sum(v, -1, keepdims=True) + w

    # The rows of v stay where they are; every device has whole rows, and all of w.
    def partition(m, arguments, result):
        rows = NamedSharding(m, P(arguments[0].sharding.spec[0], None))

        def on_device(v, w):
            return v / jnp.sum(v, -1, keepdims=True) + w

        return m, on_device, rows, (rows, NamedSharding(m, P(None)))

    normalized.def_partition(partition, sharding_rule="i j, j -> i j", need_replication_factors=("j",))
    m = mesh(4, 2)
    v = jax.device_put(DATA + 1, NamedSharding(m, P("x", "y")))
    w = jax.device_put(DATA[0], NamedSharding(m, P("y")))
    with m:
        y = jax.jit(lambda v, w: normalized(v, w) * 2, out_shardings=NamedSharding(m, P("x", None)))(v, w)
    return y, [s.data.shape for s in y.addressable_shards]
