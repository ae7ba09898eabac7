#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rewrite of one's own within XLA, in a JAX program: x @ v + x @ w becomes x @ (v + w), with half of the work.

XLA does not do this, since it changes the rounding. Prints the times of both programs, which take turns.
"""
import time

import jax
import jax.numpy as jnp

import hlokit
import hlokit.jax


def form_of(instruction):
    """Returns how a matrix product takes its operands, None if it is none. XLA's CPU puts them into fusions of their own."""
    called = instruction.called_computations
    product = called[0].root if len(called) == 1 else instruction
    order = [operand.parameter_number for operand in product.operands] if called else [0, 1]
    return (product.attributes, order) if product.opcode == "dot" and sorted(map(str, order)) == ["0", "1"] else None


@hlokit.rewrite("add(fusion|dot(%x, %v), fusion|dot(%x, %w))", tolerance=1e-5)
def one_product(match):
    """Adds two matrices before they are multiplied by a third one, instead of their products."""
    left, right = match.root.operands
    form = form_of(left)
    if form is None or form != form_of(right) or match["v"].shape.dims != match["w"].shape.dims:
        return None
    total = hlokit.Builder(match.root).add("add", match["v"], match["w"], shape=match["v"].shape)
    return left.clone([match["x"], total])


@jax.jit
def f(x, v, w):
    return x @ v + x @ w


@hlokit.jax.transform("defuse,one-product,dce", modules="jit_f")
def rewritten(x, v, w):
    return f(x, v, w)


def main():
    x, v, w = (jax.random.normal(key, (512, 512)) for key in jax.random.split(jax.random.key(0), 3))
    print(f"largest difference {jnp.abs(f(x, v, w) - rewritten(x, v, w)).max():.1e}")
    seconds = {f: [], rewritten: []}
    for _ in range(40):
        for function, times in seconds.items():
            begin = time.perf_counter()
            function(x, v, w).block_until_ready()
            times.append(time.perf_counter() - begin)
    usual, ours = (min(times) for times in seconds.values())
    print(f"XLA {1e3 * usual:.2f} ms, with the rewrite {1e3 * ours:.2f} ms: {usual / ours:.2f} times as fast")


if __name__ == "__main__":
    main()
