# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of Orbax over eight devices, and models of Keras that its distributions divide."""

import os
import pathlib
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from . import program

DATA = np.arange(64, dtype="f4").reshape(8, 8) / 7


def mesh(*shape):
    return jax.make_mesh(shape, ("x", "y")[:len(shape)], (jax.sharding.AxisType.Auto,) * len(shape))


def described(tree):
    """Values and how they lie on devices."""
    return [(leaf, str(leaf.sharding.spec), [s.data.shape for s in leaf.addressable_shards]) for leaf in jax.tree.leaves(tree)]


@program
def sharded_arrays_saved_and_restored():
    import orbax.checkpoint as ocp

    m = mesh(4, 2)
    tree = {
        "a": jax.device_put(DATA, NamedSharding(m, P("x", "y"))),
        "b": {"c": jax.device_put(jnp.arange(16, dtype="bfloat16"), NamedSharding(m, P(("y", "x")))),
              "d": jax.device_put(jnp.int32(7), NamedSharding(m, P()))},
        "e": jax.device_put(jnp.arange(8) % 3 == 0, NamedSharding(m, P("x"))),
    }
    other = mesh(2, 4)
    specs = {"a": P(None, "y"), "b": {"c": P("x"), "d": P()}, "e": P()}
    targets = jax.tree.map(lambda x, spec: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=NamedSharding(other, spec)), tree, specs)
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        path = pathlib.Path(folder) / "tree"
        checkpointer.save(path, tree)
        checkpointer.wait_until_finished()
        same = checkpointer.restore(path, jax.tree.map(ocp.utils.to_shape_dtype_struct, tree))
        divided_otherwise = checkpointer.restore(path, targets)
    return described(same), described(divided_otherwise)


@program
def training_continued_from_a_checkpoint():
    import optax
    import orbax.checkpoint as ocp

    m = mesh(8)
    x = jax.device_put(np.random.RandomState(0).randn(32, 8).astype("f4"), NamedSharding(m, P("x")))
    params = {"w": jax.device_put(jnp.ones((8, 8)) / 8, NamedSharding(m, P(None, "x")))}
    tx = optax.adam(1e-2, eps=1e-3)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(lambda p: jnp.mean((jnp.tanh(x @ p["w"]) - x[:, :1]) ** 2))(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, value

    state = tx.init(params)
    values = []
    with tempfile.TemporaryDirectory() as folder:
        options = ocp.CheckpointManagerOptions(max_to_keep=2)
        with ocp.CheckpointManager(folder, options=options) as manager:
            for number in range(3):
                params, state, value = step(params, state)
                values.append(value)
                manager.save(number, args=ocp.args.StandardSave({"params": params, "state": state}))
            manager.wait_until_finished()
            steps = manager.all_steps()
            last = manager.restore(2, args=ocp.args.StandardRestore({"params": params, "state": state}))
    again, _, value = step(last["params"], last["state"])
    return values, steps, value, step(params, state)[2], described(again)


@program
def keras_model_divided_by_batches():
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    keras.utils.set_random_seed(1)
    devices = [f"{device.platform}:{device.id}" for device in jax.devices()]
    keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices, auto_shard_dataset=False))
    try:
        model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(8)])
        model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
        history = model.fit(np.tile(DATA, (4, 1)), np.tile(DATA.T, (4, 1)), batch_size=16, epochs=2, shuffle=False, verbose=0)
        return history.history["loss"], model.get_weights(), len(model.weights[0].value.sharding.device_set)
    finally:
        keras.distribution.set_distribution(None)
