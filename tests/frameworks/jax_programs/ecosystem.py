# SPDX-License-Identifier: Apache-2.0
"""Libraries on JAX: optax, flax (nnx, linen), equinox, numpyro."""

import jax
import jax.numpy as jnp
import numpy as np

from . import program

RANDOM = np.random.RandomState(0)
X, Y = RANDOM.randn(32, 8).astype("f4"), RANDOM.randint(0, 4, 32)
IMAGES = RANDOM.randn(4, 8, 8, 3).astype("f4")


def cross_entropy(logits):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.asarray(Y)[:logits.shape[0], None], 1))


@program
def optax_training():
    import optax

    params = {"w": jnp.asarray(np.random.RandomState(1).randn(8, 4).astype("f4")) / 3, "b": jnp.zeros(4)}
    results = []
    schedule = optax.cosine_decay_schedule(0.1, 10)
    for tx in (optax.adamw(1e-2), optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(schedule, momentum=0.9)), optax.lion(1e-3)):

        @jax.jit
        def step(p, state):
            value, grads = jax.value_and_grad(lambda q: cross_entropy(X @ q["w"] + q["b"]))(p)
            updates, state = tx.update(grads, state, p)
            return optax.apply_updates(p, updates), state, value

        p, state = params, tx.init(params)
        for _ in range(5):
            p, state, value = step(p, state)
            results.append(value)
        results.append(p)
    return results


@program
def flax_linen():
    import flax.linen as nn
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train):
            x = nn.Conv(8, (3, 3), use_bias=False)(x)  # a bias before the norm would have a gradient of noise
            x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
            x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
            x = nn.Dropout(0.3, deterministic=not train)(x)
            return nn.Dense(4)(x)

    net = Net()
    variables = net.init(jax.random.key(0), IMAGES, False)
    tx = optax.adam(1e-2)
    params, stats = variables["params"], variables["batch_stats"]
    state = tx.init(params)

    @jax.jit
    def step(params, stats, state, key):
        def loss(p):
            logits, changed = net.apply({"params": p, "batch_stats": stats}, IMAGES, True, mutable=["batch_stats"], rngs={
                "dropout": key})
            return cross_entropy(logits), changed["batch_stats"]

        (value, changed), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, new_state = tx.update(grads, state)
        return optax.apply_updates(params, updates), changed, new_state, value

    values = []
    for i in range(3):
        params, stats, state, value = step(params, stats, state, jax.random.key(i))
        values.append(value)
    return values, stats, net.apply({"params": params, "batch_stats": stats}, IMAGES, False)


@program
def flax_nnx():
    import optax
    from flax import nnx

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first = nnx.Linear(8, 16, rngs=rngs)
            self.norm = nnx.LayerNorm(16, rngs=rngs)
            self.last = nnx.Linear(16, 4, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.gelu(self.norm(self.first(x))))

    net = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)

    @nnx.jit
    def step(net, optimizer):
        value, grads = nnx.value_and_grad(lambda n: cross_entropy(n(jnp.asarray(X))))(net)
        optimizer.update(net, grads)
        return value

    return [step(net, optimizer) for _ in range(5)], net(jnp.asarray(X))


@program
def flax_attention():
    from flax import nnx

    attention = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=nnx.Rngs(1))
    return attention(jnp.asarray(X).reshape(2, 16, 8))


@program
def flax_serialization():
    from flax import serialization

    tree = {"a": jnp.arange(6.0).reshape(2, 3), "b": {"c": jnp.ones(2, "bfloat16")}}
    again = serialization.from_bytes(tree, serialization.to_bytes(tree))
    return again["a"], np.asarray(again["b"]["c"], "f4")


@program
def equinox():
    import equinox as eqx
    import optax

    model = eqx.nn.MLP(8, 4, 16, 2, key=jax.random.key(0))
    tx = optax.adam(1e-2)
    state = tx.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit
    def step(model, state):
        value, grads = eqx.filter_value_and_grad(lambda m: cross_entropy(jax.vmap(m)(jnp.asarray(X))))(model)
        updates, state = tx.update(grads, state, model)
        return eqx.apply_updates(model, updates), state, value

    values = []
    for _ in range(4):
        model, state, value = step(model, state)
        values.append(value)
    checked = eqx.filter_jit(lambda x: eqx.error_if(x, x < 0, "negative"))
    try:
        jax.block_until_ready(checked(jnp.array(-1.0)))
        error = "none"
    except Exception as e:
        error = "negative" in str(e)
    return values, jax.vmap(model)(jnp.asarray(X)), checked(jnp.array(1.0)), error


@program
def numpyro_mcmc():
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    data = jnp.asarray(np.random.RandomState(3).randn(20).astype("f4")) + 2

    def model(observed):
        mean = numpyro.sample("mean", dist.Normal(0.0, 5.0))
        scale = numpyro.sample("scale", dist.HalfNormal(2.0))
        numpyro.sample("observed", dist.Normal(mean, scale), obs=observed)

    mcmc = MCMC(NUTS(model, max_tree_depth=4), num_warmup=10, num_samples=10, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0), data)
    return {name: values[:3] for name, values in mcmc.get_samples().items()}


@program
def numpyro_variational():
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    def model():
        numpyro.sample("x", dist.Normal(numpyro.sample("m", dist.Normal(0.0, 1.0)), 1.0), obs=jnp.array(1.5))

    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(0.05), Trace_ELBO())
    return svi.run(jax.random.PRNGKey(1), 20, progress_bar=False).losses
