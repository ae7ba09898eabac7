#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model on the text of this file, or says what training a large one would take on a TPU.

    python3 examples/jax/train.py                         # on what JAX has
    JAX_PLATFORMS=hlokit python3 examples/jax/train.py    # on hlokit; with HLOKIT_DEVICE=cpu:8 on eight devices
    python3 examples/jax/train.py --estimate=v6e:4x4      # a step of a model of 1.1 billion parameters on 16 chips

The batch is divided over the axis `data` of the mesh, the weights over the axis `model`.
"""

import argparse
import dataclasses
import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


@dataclasses.dataclass(frozen=True)
class Config:
    vocabulary: int = 256  # bytes
    width: int = 64
    layers: int = 2
    heads: int = 4
    length: int = 64
    batch: int = 16
    dtype: str = "float32"


LARGE = Config(vocabulary=32768, width=2048, layers=20, heads=16, length=2048, batch=64, dtype="bfloat16")

# How weights are divided; the first axis of those of layers is the layer.
SPECS = {"embed": P("model", None), "qkv": P(None, None, None, "model", None), "out": P(None, "model", None, None),
         "up": P(None, None, "model"), "down": P(None, "model", None)}


def parameters(config, key):
    d, h, n = config.width, config.heads, config.layers
    shapes = {"embed": (config.vocabulary, d), "qkv": (n, 3, d, h, d // h), "out": (n, h, d // h, d), "up": (n, d, 4 * d),
              "down": (n, 4 * d, d)}
    keys = jax.random.split(key, len(shapes))
    return {name: (jax.random.normal(k, shape) * 0.02).astype(config.dtype) for k, (name, shape) in zip(keys, shapes.items())}


def normalize(x):
    y = x.astype(jnp.float32)
    return (y * jax.lax.rsqrt(jnp.mean(y * y, axis=-1, keepdims=True) + 1e-6)).astype(x.dtype)


def layer(x, weights):
    q, k, v = jnp.einsum("bld,cdhe->cbhle", normalize(x), weights["qkv"])
    scores = jnp.einsum("bhle,bhme->bhlm", q, k, preferred_element_type=jnp.float32) / np.sqrt(q.shape[-1])
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    attention = jax.nn.softmax(jnp.where(causal, scores, -1e30)).astype(x.dtype)
    x = x + jnp.einsum("bhlm,bhme,hed->bld", attention, v, weights["out"])
    return x + jax.nn.gelu(normalize(x) @ weights["up"]) @ weights["down"], None


def loss_of(params, tokens):
    layers = {name: w for name, w in params.items() if name != "embed"}
    x, _ = jax.lax.scan(jax.checkpoint(layer), params["embed"][tokens[:, :-1]], layers)
    logits = jnp.einsum("bld,vd->blv", normalize(x), params["embed"], preferred_element_type=jnp.float32)
    log_p = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_p, tokens[:, 1:, None], axis=-1))


def train_step(state, tokens):
    """One step of Adam."""
    loss, grads = jax.value_and_grad(loss_of)(state["params"], tokens)
    t = state["t"] + 1
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], grads)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, state["square"], grads)

    def update(p, m, s):
        step = (m / (1 - 0.9**t)) / (jnp.sqrt(s / (1 - 0.99**t)) + 1e-8)
        return (p - 3e-3 * step).astype(p.dtype)

    return {"params": jax.tree.map(update, state["params"], mean, square), "mean": mean, "square": square, "t": t}, loss


def initial_state(config):
    params = parameters(config, jax.random.key(0))
    zeros = lambda: jax.tree.map(lambda p: jnp.zeros(p.shape, jnp.float32), params)
    return {"params": params, "mean": zeros(), "square": zeros(), "t": jnp.float32(0)}


def compiled_step(mesh):
    """The step, with the shardings of its state and batch on a mesh."""
    weights = {name: NamedSharding(mesh, spec) for name, spec in SPECS.items()}
    whole = NamedSharding(mesh, P())
    state = {"params": weights, "mean": weights, "square": weights, "t": whole}
    return jax.jit(train_step, in_shardings=(state, NamedSharding(mesh, P("data"))), out_shardings=(state, whole),
                   donate_argnums=0)


def train(config, steps):
    mesh = jax.make_mesh((jax.device_count(), 1), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    step = compiled_step(mesh)
    state = initial_state(config)
    text = np.frombuffer(pathlib.Path(__file__).read_bytes(), np.uint8).astype(np.int32)
    random = np.random.default_rng(0)
    for number in range(1, steps + 1):
        starts = random.integers(0, len(text) - config.length - 1, config.batch)
        state, loss = step(state, np.stack([text[s:s + config.length + 1] for s in starts]))
        if number == 1 or number % 10 == 0:
            print(f"step {number:3}  loss {loss:.4f}", flush=True)


def estimate(config, device, data, model):
    import hlokit.jax

    mesh = jax.sharding.AbstractMesh((data, model), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state = jax.eval_shape(functools.partial(initial_state, config))
    tokens = jax.ShapeDtypeStruct((config.batch, config.length + 1), jnp.int32)
    return hlokit.jax.estimate(compiled_step(mesh), state, tokens, device=device)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--estimate", metavar="DEVICE", help="a simulated TPU, such as v6e:4x4")
    parser.add_argument("--mesh", default="4x4", help="devices along `data` and `model` for --estimate")
    parser.add_argument("--report", action="store_true", help="print the whole report")
    options = parser.parse_args()
    if options.estimate is None:
        train(Config(), options.steps)
        return
    data, model = map(int, options.mesh.split("x"))
    result = estimate(LARGE, options.estimate, data, model)
    print(result.report if options.report else result)


if __name__ == "__main__":
    main()
