# SPDX-License-Identifier: Apache-2.0
"""Profiles five steps of a program of two jitted functions, sharded over all devices: jax_profile.py LOGDIR

Run by a Python with JAX and the plugin, for example with HLOKIT_DEVICE=v5p:2x2x1; xprof_tools.py --jax-profile opens the result.
"""
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def main():
    mesh = Mesh(np.array(jax.devices()), ("x",))

    def sharding(*axes):
        return NamedSharding(mesh, PartitionSpec(*axes))

    rows, whole = sharding("x", None), sharding(None, None)
    forward = jax.jit(lambda x, w: jnp.tanh(x @ w).sum(axis=1), in_shardings=(rows, whole), out_shardings=sharding("x"))
    gradient = jax.jit(jax.grad(lambda w, x: (jnp.tanh(x @ w) ** 2).sum()), in_shardings=(whole, rows), out_shardings=whole)
    x = np.ones((256, 256), np.float32)
    w = np.ones((256, 256), np.float32)
    jax.block_until_ready((forward(x, w), gradient(w, x)))
    with jax.profiler.trace(sys.argv[1]):
        for step in range(5):
            with jax.profiler.StepTraceAnnotation("train", step_num=step):
                jax.block_until_ready((forward(x, w), gradient(w, x)))


main()
