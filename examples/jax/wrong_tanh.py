#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A layer whose values differ after one pass of its compilation: a rewrite replaces tanh by a quotient of polynomials,
which is near it for small arguments only. Its dumps are in examples/jax_dump; docs/tutorials/which-pass-broke-it.md
finds the pass in them.
"""
import jax
import numpy as np

import hlokit
import hlokit.jax


@hlokit.rewrite("tanh(%x)")
def fast_tanh(match):
    """x (27 + x²) / (27 + 9 x²)."""
    builder, x = hlokit.Builder(match.root), match["x"]

    def number(value):
        return builder.add("broadcast", builder.constant(value, "f32[]"), shape=x.shape, dimensions=[])

    def add(opcode, *operands):
        return builder.add(opcode, *operands, shape=x.shape)

    square = add("multiply", x, x)
    above = add("multiply", x, add("add", number(27.0), square))
    return add("divide", above, add("add", number(27.0), add("multiply", number(9.0), square)))


@jax.jit
def layer(x, w1, w2):
    hidden = jax.nn.gelu(x @ w1) @ w2
    hidden = hidden - hidden.mean(-1, keepdims=True)
    return x + hidden * jax.lax.rsqrt(hidden.var(-1, keepdims=True) + 1e-5)


def main():
    x, w1, w2 = (np.random.default_rng(k).normal(size=shape).astype(np.float32)
                 for k, shape in enumerate([(4, 8), (8, 16), (16, 8)]))
    expected = layer(x, w1, w2)
    with hlokit.jax.transform("fast-tanh", modules="jit_layer"):
        got = layer(x, w1, w2)
    print(f"largest difference {np.abs(got - expected).max():.2g}")


if __name__ == "__main__":
    main()
