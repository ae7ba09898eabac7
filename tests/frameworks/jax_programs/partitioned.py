# SPDX-License-Identifier: Apache-2.0
"""25 programs for 8 devices: parallel by data, tensors, weights, sequence, experts and stages, by hand and by constraints.

A program is a function of a generator of random numbers that returns a jitted function and its arguments, and, where JAX's
CPU backend has no implementation of an operation, what it should give.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

PROGRAMS = {}
KEEP = P.UNCONSTRAINED


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def mesh(explicit=False, **axes):
    kind = AxisType.Explicit if explicit else AxisType.Auto
    return jax.make_mesh(tuple(axes.values()), tuple(axes), axis_types=(kind,) * len(axes))


def on(m, *spec):
    return NamedSharding(m, P(*spec))


def held(m, x, *spec):
    return lax.with_sharding_constraint(x, on(m, *spec))


def floats(rng, *shape):
    return (rng.standard_normal(shape) / np.sqrt(shape[-1] if len(shape) > 1 else 1)).astype(np.float32)


def norm(x):
    return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(q, k, v):
    """Causal attention of [batch, heads, tokens, width]."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    n = q.shape[2]
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(np.tri(n, dtype=bool), scores, -1e9)), v)


def heads(x, count):
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def transformer_layer(x, w, count, keep=lambda x: x):
    h = norm(x)
    q, k, v = (heads(h @ w[n], count) for n in ("q", "k", "v"))
    y = attention(q, k, v).transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[1], -1)
    x = keep(x + y @ w["o"])
    return keep(x + jax.nn.gelu(norm(x) @ w["up"]) @ w["down"])


def transformer_weights(rng, width, hidden):
    return {**{n: floats(rng, width, width) for n in ("q", "k", "v", "o")},
            "up": floats(rng, width, hidden), "down": floats(rng, hidden, width)}


def tensor_specs(m, axis, other=None):
    """Weights of a layer: divided by heads and hidden units along `axis`, and the other way along `other`."""
    column, row = on(m, other, axis), on(m, axis, other)
    return {"q": column, "k": column, "v": column, "o": row, "up": column, "down": row}


@program
def data_parallel(rng):
    m = mesh(data=8)
    def step(w, x, y):
        loss = lambda w: jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)
        value, grads = jax.value_and_grad(loss)(w)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, w, grads)
    w = (floats(rng, 16, 32), floats(rng, 32, 8))
    f = jax.jit(step, in_shardings=(on(m), on(m, "data"), on(m, "data")), out_shardings=on(m))
    return f, (w, floats(rng, 64, 16), floats(rng, 64, 8))


@program
def tensor_parallel(rng):
    m = mesh(data=2, model=4)
    def step(x, u, w):
        loss = lambda p: (jax.nn.gelu(x @ p[0]) @ p[1]).var()
        return jax.value_and_grad(loss)((u, w))
    f = jax.jit(step, in_shardings=(on(m, "data"), on(m, None, "model"), on(m, "model")))
    return f, (floats(rng, 32, 16), floats(rng, 16, 64), floats(rng, 64, 16))


@program
def fsdp_adam(rng):
    m = mesh(fsdp=8)
    def step(w, first, second, x):
        grads = jax.grad(lambda w: (jax.nn.relu(x @ w[0]) @ w[1]).var())(w)
        first = jax.tree.map(lambda a, g: 0.9 * a + 0.1 * g, first, grads)
        second = jax.tree.map(lambda a, g: 0.99 * a + 0.01 * g * g, second, grads)
        w = jax.tree.map(lambda p, a, b: p - 0.01 * a / (jnp.sqrt(b) + 1e-3), w, first, second)
        return w, first, second
    w = (floats(rng, 32, 64), floats(rng, 64, 32))
    zeros = tuple(np.zeros_like(p) for p in w)
    s = on(m, "fsdp")
    return jax.jit(step, in_shardings=s, out_shardings=s), (w, zeros, zeros, floats(rng, 64, 32))


@program
def fsdp_transformer(rng):
    m = mesh(fsdp=4, model=2)
    def step(w, x):
        def loss(w):
            keep = lambda h: held(m, h, "fsdp")
            return (transformer_layer(x, w, 4, keep) ** 2).mean()
        return jax.value_and_grad(loss)(w)
    specs = tensor_specs(m, "model", "fsdp")
    f = jax.jit(step, in_shardings=(specs, on(m, "fsdp")), out_shardings=(on(m), specs))
    return f, (transformer_weights(rng, 32, 64), floats(rng, 8, 16, 32))


@program
def tensor_parallel_transformer(rng):
    m = mesh(data=2, model=4)
    f = jax.jit(lambda w, x: transformer_layer(x, w, 4), in_shardings=(tensor_specs(m, "model"), on(m, "data")))
    return f, (transformer_weights(rng, 32, 64), floats(rng, 4, 16, 32))


@program
def sequence_parallel(rng):
    m = mesh(data=2, model=4)
    keep = lambda h: held(m, h, "data", "model")
    def step(w, x):
        return jax.grad(lambda w: (transformer_layer(keep(x), w, 4, keep) ** 2).mean())(w)
    specs = tensor_specs(m, "model")
    f = jax.jit(step, in_shardings=(specs, on(m, "data", "model")), out_shardings=specs)
    return f, (transformer_weights(rng, 32, 64), floats(rng, 4, 16, 32))


@program
def experts_automatic(rng):
    m = mesh(expert=8)
    def f(x, gate, up, down):
        scores = jax.nn.softmax(x @ gate)                                # groups, tokens, experts
        to = jax.nn.one_hot(scores.argmax(-1), 8)
        room = jax.nn.one_hot(((jnp.cumsum(to, 1) - 1) * to).sum(-1).astype(jnp.int32), 4)
        dispatch = jnp.einsum("gte,gtr->gter", to, room)
        sent = held(m, jnp.einsum("gtd,gter->egrd", x, dispatch), "expert")
        out = jnp.einsum("egrf,efd->egrd", jax.nn.relu(jnp.einsum("egrd,edf->egrf", sent, up)), down)
        return held(m, jnp.einsum("egrd,gter->gtd", held(m, out, "expert"), dispatch), "expert")
    s = on(m, "expert")
    return (jax.jit(f, in_shardings=(s, on(m), s, s)),
            (floats(rng, 8, 16, 32), floats(rng, 32, 8), floats(rng, 8, 32, 16), floats(rng, 8, 16, 32)))


@program
def experts_by_all_to_all(rng):
    m = mesh(expert=8)
    @functools.partial(jax.shard_map, mesh=m, in_specs=(P("expert"), P(), P("expert")), out_specs=P("expert"), check_vma=False)
    def f(x, gate, w):
        to = jax.nn.one_hot(jnp.argmax(x @ gate, 1), 8)
        room = jax.nn.one_hot(((jnp.cumsum(to, 0) - 1) * to).sum(1).astype(jnp.int32), 8)
        dispatch = to[:, :, None] * room[:, None, :]
        sent = jnp.einsum("td,ter->erd", x, dispatch)
        got = lax.all_to_all(sent, "expert", 0, 0, tiled=True)
        out = jnp.einsum("srd,df->srf", got, w[0])
        return jnp.einsum("erf,ter->tf", lax.all_to_all(out, "expert", 0, 0, tiled=True), dispatch)
    return jax.jit(f), (floats(rng, 64, 8), floats(rng, 8, 8), floats(rng, 8, 8, 16))


@program
def pipeline(rng):
    """8 stages; microbatches travel from one to the next, gradients back."""
    m = mesh(stage=8)
    @functools.partial(jax.shard_map, mesh=m, in_specs=(P("stage"), P()), out_specs=P(), check_vma=False)
    def run(w, x):
        stage = lax.axis_index("stage")
        def tick(state, t):
            out = jnp.tanh(jnp.where(stage == 0, x[jnp.clip(t, 0, 3)], state) @ w[0])
            return lax.ppermute(out, "stage", [(n, n + 1) for n in range(7)]), out
        _, outs = lax.scan(tick, jnp.zeros(x.shape[1:]), jnp.arange(11))
        return lax.psum(jnp.where(stage == 7, outs[7:], 0), "stage")
    f = jax.jit(jax.value_and_grad(lambda w, x: (run(w, x) ** 2).sum()), in_shardings=(on(m, "stage"), on(m)))
    return f, (floats(rng, 8, 8, 8), floats(rng, 4, 6, 8))


@program
def ring_attention(rng):
    m = mesh(sequence=8)
    ring = [(n, (n + 1) % 8) for n in range(8)]
    @functools.partial(jax.shard_map, mesh=m, in_specs=P("sequence"), out_specs=P("sequence"), check_vma=False)
    def attend(q, k, v):
        def step(state, _):
            k, v, top, total, out = state
            s = q @ k.T / 4
            new = jnp.maximum(top, s.max(1, keepdims=True))
            e, scale = jnp.exp(s - new), jnp.exp(top - new)
            k, v = lax.ppermute((k, v), "sequence", ring)
            return (k, v, new, total * scale + e.sum(1, keepdims=True), out * scale + e @ state[1]), None
        start = (k, v, jnp.full((q.shape[0], 1), -1e9), jnp.zeros((q.shape[0], 1)), jnp.zeros_like(q))
        (_, _, _, total, out), _ = lax.scan(step, start, None, length=8)
        return out / total
    f = jax.jit(jax.grad(lambda q, k, v: (attend(q, k, v) ** 2).sum(), (0, 1, 2)), in_shardings=on(m, "sequence"))
    return f, tuple(floats(rng, 32, 16) for _ in range(3))


@program
def ragged_exchange(rng):
    """Each device sends slices of its rows, of different lengths, to all others. JAX's CPU backend cannot run this."""
    m = mesh(i=8)
    sizes = rng.integers(0, 4, (8, 8)).astype(np.int32)          # from, to
    starts = (np.cumsum(sizes, 1) - sizes).astype(np.int32)      # in the rows of the sender
    places = (np.cumsum(sizes, 0) - sizes).astype(np.int32)      # in those of the receiver
    @functools.partial(jax.shard_map, mesh=m, in_specs=P("i"), out_specs=P("i"), check_vma=False)
    def f(x, starts, sizes, places, received):
        out = jnp.zeros((28, x.shape[1]), x.dtype)
        return lax.ragged_all_to_all(x * 2, out, starts[0], sizes[0], places[0], received[0], axis_name="i") + 1
    x = floats(rng, 8 * 28, 4)
    out = np.zeros((8, 28, 4), np.float32)
    for a in range(8):
        for b in range(8):
            rows = x[28 * a + starts[a, b]:][:sizes[a, b]]
            out[b, places[a, b]:places[a, b] + sizes[a, b]] = rows * 2
    return jax.jit(f), (x, starts, sizes, places, np.ascontiguousarray(sizes.T)), [out.reshape(-1, 4) + 1]


@program
def mixed_regions(rng):
    """Manual along data, automatic along model within."""
    m = mesh(data=4, model=2)
    @functools.partial(jax.shard_map, mesh=m, in_specs=(P("data"), P(), P()), out_specs=(P("data"), P()), axis_names={"data"})
    def layer(x, u, w):
        h = lax.with_sharding_constraint(jax.nn.gelu(x @ u), P(None, "model"))
        y = h @ w
        return y, lax.pmean((y ** 2).mean(), "data")
    def f(x, u, w):
        y, scale = layer(jnp.sin(x), u, w)
        return jnp.cos(y) / scale
    return (jax.jit(f, in_shardings=(on(m, "data"), on(m, None, "model"), on(m, "model"))),
            (floats(rng, 32, 16), floats(rng, 16, 64), floats(rng, 64, 16)))


@program
def mixed_gradient(rng):
    """Data-parallel gradients are rounded and summed by hand; tensors are divided automatically."""
    m = mesh(data=4, model=2)
    @functools.partial(jax.shard_map, mesh=m, in_specs=(P(), P("data")), out_specs=P(), axis_names={"data"}, check_vma=False)
    def gradients(w, x):
        g = jax.grad(lambda w: ((jnp.tanh(x @ w[0]) @ w[1]) ** 2).sum())(w)
        return jax.tree.map(lambda a: lax.psum(a.astype(jnp.bfloat16).astype(jnp.float32), "data"), g)
    specs = (on(m, None, "model"), on(m, "model"))
    f = jax.jit(lambda w, x: jax.tree.map(lambda p, g: p - 0.01 * g, w, gradients(w, x)),
                in_shardings=(specs, on(m, "data")), out_shardings=specs)
    return f, ((floats(rng, 16, 32), floats(rng, 32, 16)), floats(rng, 32, 16))


@program
def nested_regions(rng):
    m = mesh(a=2, b=2, c=2)
    @functools.partial(jax.shard_map, mesh=m, in_specs=(P("a"), P()), out_specs=P("a"), axis_names={"a"})
    def outer(x, w):
        @functools.partial(jax.shard_map, in_specs=(P(None, "b"), P("b")), out_specs=P(), axis_names={"b"})
        def product(x, w):
            return lax.psum(x @ w, "b")
        h = product(jnp.sin(x), w)
        return h - lax.pmean(h, "a")
    return (jax.jit(outer, in_shardings=(on(m, ("a", "c")), on(m, "b", "c"))), (floats(rng, 16, 8), floats(rng, 8, 8)))


@program
def vocabulary(rng):
    """Embeddings and logits divided by words, with the gradient of the loss."""
    m = mesh(data=2, model=4)
    def loss(table, tokens, targets):
        logits = held(m, jnp.tanh(table[tokens]) @ table.T, "data", None, "model")
        top = logits - logits.max(-1, keepdims=True)
        picked = (top * jax.nn.one_hot(targets, 64)).sum(-1)
        return (jnp.log(jnp.exp(top).sum(-1)) - picked).mean()
    f = jax.jit(jax.value_and_grad(loss), in_shardings=(on(m, "model"), on(m, "data"), on(m, "data")))
    return f, (floats(rng, 64, 16), *(rng.integers(0, 64, (4, 8)).astype(np.int32) for _ in range(2)))


@program
def decoding(rng):
    """Tokens one after the other, with a cache that is divided by requests and heads."""
    m = mesh(data=2, model=4)
    def f(w, x, keys, values):
        def step(state, t):
            x, keys, values = state
            q, k, v = (heads((x @ w[n])[:, None], 4) for n in ("q", "k", "v"))
            keys = lax.dynamic_update_slice(keys, k, (0, 0, t, 0))
            values = lax.dynamic_update_slice(values, v, (0, 0, t, 0))
            s = jnp.where(jnp.arange(8) <= t, jnp.einsum("bhqd,bhkd->bhqk", q, keys), -1e9)
            y = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(s), values).transpose(0, 2, 1, 3).reshape(x.shape)
            x = norm(x + y @ w["o"])
            return (x, keys, values), x
        return lax.scan(step, (x, keys, values), jnp.arange(8))
    w = {n: p for n, p in transformer_weights(rng, 32, 32).items() if n in "qkvo"}
    specs = {n: s for n, s in tensor_specs(m, "model").items() if n in "qkvo"}
    cache = on(m, "data", "model")
    return (jax.jit(f, in_shardings=(specs, on(m, "data"), cache, cache)),
            (w, floats(rng, 4, 32), np.zeros((4, 4, 8, 8), np.float32), np.zeros((4, 4, 8, 8), np.float32)))


@program
def convolutions(rng):
    """Images divided by number and by rows."""
    m = mesh(data=2, rows=4)
    def step(w, x):
        def loss(w):
            h = jax.nn.relu(lax.conv_general_dilated(x, w[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
            h = lax.conv_general_dilated(h, w[1], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            return (lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") ** 2).mean()
        return jax.value_and_grad(loss)(w)
    f = jax.jit(step, in_shardings=(on(m), on(m, "data", "rows")), out_shardings=on(m))
    return f, ((floats(rng, 3, 3, 4, 8), floats(rng, 3, 3, 8, 8)), floats(rng, 4, 32, 16, 4))


@program
def batch_statistics(rng):
    m = mesh(data=8)
    def step(w, scale, x):
        def loss(p):
            h = lax.conv_general_dilated(x, p[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            h = (h - h.mean((0, 1, 2))) * lax.rsqrt(h.var((0, 1, 2)) + 1e-3) * p[1]
            return jax.nn.relu(h).mean((1, 2)).var()
        return jax.value_and_grad(loss)((w, scale))
    f = jax.jit(step, in_shardings=(on(m), on(m), on(m, "data")), out_shardings=on(m))
    return f, (floats(rng, 3, 3, 4, 8), np.ones(8, np.float32), floats(rng, 16, 8, 8, 4))


@program
def sampling(rng):
    """The best of a vocabulary that is divided, and their probabilities."""
    m = mesh(data=2, model=4)
    def f(x, w, noise):
        logits = held(m, x @ w, "data", "model")
        values, words = lax.top_k(logits, 5)
        p = jax.nn.softmax(values)
        return words, p, jnp.argmax(p + noise, -1), jnp.argmax(logits, -1)
    return (jax.jit(f, in_shardings=(on(m, "data"), on(m, None, "model"), on(m, "data"))),
            (floats(rng, 8, 16), floats(rng, 16, 256), floats(rng, 8, 5)))


@program
def spectral(rng):
    """Fourier transforms along both dimensions of a grid that is divided by rows."""
    m = mesh(rows=8)
    def f(x):
        s = jnp.fft.fft(x, axis=1)
        s = jnp.fft.fft(held(m, s, None, "rows"), axis=0)
        s = s * jnp.exp(-jnp.arange(32.0))[:, None]
        return held(m, jnp.fft.ifft2(s).real, "rows")
    return jax.jit(f, in_shardings=on(m, "rows")), (floats(rng, 32, 16),)


@program
def collective_matmul(rng):
    """Parts of the left side travel around the ring while products are computed."""
    m = mesh(i=8)
    @functools.partial(jax.shard_map, mesh=m, in_specs=(P("i"), P(None, "i")), out_specs=P(None, "i"), check_vma=False)
    def f(x, w):
        n = lax.axis_index("i")
        def step(k, state):
            part, out = state
            out = lax.dynamic_update_slice_in_dim(out, part @ w, (n + k) % 8 * part.shape[0], 0)
            return lax.ppermute(part, "i", [(d, (d - 1) % 8) for d in range(8)]), out
        return lax.fori_loop(0, 8, step, (x, jnp.zeros((x.shape[0] * 8, w.shape[1]))))[1]
    return jax.jit(f), (floats(rng, 32, 16), floats(rng, 16, 64))


@program
def explicit_types(rng):
    """Shardings are in the types of arrays."""
    m = mesh(explicit=True, data=2, model=4)
    def f(x, u, w):
        h = jax.nn.relu(x @ u)
        y = jnp.einsum("bh,hd->bd", h, w, out_sharding=on(m, "data", None))
        return jax.sharding.reshard(y, on(m, None, "model")), y.sum()
    args = (jax.device_put(floats(rng, 16, 16), on(m, "data")), jax.device_put(floats(rng, 16, 32), on(m, None, "model")),
            jax.device_put(floats(rng, 32, 16), on(m, "model")))
    return jax.jit(f), args


@program
def layers_by_scan(rng):
    """Layers that are scanned and computed again for gradients, with weights divided along both axes."""
    m = mesh(data=4, model=2)
    def step(w, x):
        @jax.checkpoint
        def layer(h, w):
            return held(m, h + jnp.tanh(h @ w[0]) @ w[1], "data", None), None
        loss = lambda w: (lax.scan(layer, x, w)[0] ** 2).mean()
        return jax.value_and_grad(loss)(w)
    specs = (on(m, None, "data", "model"), on(m, None, "model", "data"))
    f = jax.jit(step, in_shardings=(specs, on(m, "data")), out_shardings=(on(m), specs))
    return f, ((floats(rng, 3, 16, 32), floats(rng, 3, 32, 16)), floats(rng, 32, 16))


@program
def accumulated_gradients(rng):
    m = mesh(data=8)
    def step(w, x):
        def body(total, part):
            g = jax.grad(lambda w: (jnp.tanh(held(m, part, "data") @ w) ** 2).mean())(w)
            return total + g, None
        total, _ = lax.scan(body, jnp.zeros_like(w), x.reshape(4, 16, 16))
        return w - 0.1 * held(m, total, "data")
    return jax.jit(step, in_shardings=(on(m), on(m, "data"))), (floats(rng, 16, 8), floats(rng, 64, 16))


@program
def graph_network(rng):
    """Messages along edges: rows are looked up, and summed by node."""
    m = mesh(edges=8)
    def f(nodes, w, source, target):
        messages = jnp.tanh(nodes[source] @ w)
        total = jax.ops.segment_sum(messages, target, num_segments=32)
        order = jnp.argsort(total[:, 0])
        return held(m, nodes + total, "edges"), order
    s = on(m, "edges")
    edges = (rng.integers(0, 32, 128).astype(np.int32) for _ in range(2))
    return jax.jit(f, in_shardings=(on(m), on(m), s, s)), (floats(rng, 32, 8), floats(rng, 8, 8), *edges)
