# SPDX-License-Identifier: Apache-2.0
"""Derivatives, vmap, control flow, solvers."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from . import program


@program
def vmap_of_scan():
    cell = lambda c, x: (jnp.tanh(c + x), c * x)
    return jax.vmap(lambda c, xs: lax.scan(cell, c, xs))(jnp.arange(3.0), jnp.ones((3, 5)))


@program
def loops():
    return (lax.while_loop(lambda s: s[0] < 10, lambda s: (s[0] + 1, s[1] * 2), (0, 1.0)), lax.fori_loop(
        0, 5, lambda i, x: x + i, 0), lax.map(lambda x: x**2, jnp.arange(4.0)), lax.associative_scan(jnp.add, jnp.arange(8.0)))


@program
def branches():
    f = jax.jit(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * 2], x))
    return [f(i, 1.0) for i in range(3)], lax.cond(True, lambda x: x + 1, lambda x: x - 1, 2.0), jax.vmap(f, (0, None))(
        jnp.arange(3), 0.5)


@program
def vmap_of_while():
    return jax.vmap(lambda n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] + s[0]), (0, 0)))(jnp.arange(5))


@program
def custom_derivatives():
    @jax.custom_vjp
    def f(x):
        return x * 2

    f.defvjp(lambda x: (x * 2, x), lambda x, g: (g * x * 10,))

    @jax.custom_jvp
    def g(x):
        return jnp.sin(x)

    g.defjvp(lambda p, t: (g(p[0]), 5 * t[0]))
    return jax.grad(f)(3.0), jax.grad(g)(1.0), jax.jvp(g, (1.0,), (2.0,))


@program
def higher_derivatives():
    f = lambda x: jnp.sum(jnp.sin(x) * x**2)
    x = jnp.arange(3.0)
    return jax.hessian(f)(x), jax.jacfwd(jnp.cumsum)(x), jax.jacrev(jnp.cumprod)(x + 1), jax.value_and_grad(f)(x)


@program
def checkpoint_and_linearize():
    f = jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))
    y, linear = jax.linearize(jnp.exp, 1.0)
    return jax.grad(f)(1.0), y, linear(2.0), jax.linear_transpose(lambda x: 3 * x, 1.0)(1.0)


@program
def differential_equation():
    from jax.experimental.ode import odeint

    f = lambda y, t, k: jnp.stack([y[1], -k * y[0]])
    times = jnp.linspace(0, 1, 5)
    return odeint(f, jnp.array([1.0, 0.0]), times, 2.0), jax.grad(lambda k: odeint(f, jnp.array([1.0, 0.0]), times, k)[-1, 0])(2.0)


@program
def minimize():
    from jax.scipy.optimize import minimize as bfgs

    result = bfgs(lambda x: jnp.sum((x - jnp.array([1.0, 2.0])) ** 2), jnp.zeros(2), method="BFGS")
    return result.x, result.success


@program
def iterative_solvers():
    a = jnp.asarray(np.diag(np.arange(1, 6)).astype("f4")) + 0.1
    s = jax.scipy.sparse.linalg
    return s.cg(a, jnp.ones(5))[0], s.bicgstab(a, jnp.ones(5))[0], s.gmres(a, jnp.ones(5))[0]


@program
def newton_with_implicit_derivative():
    root = lambda c: lax.custom_root(lambda x: x**2 - c, 1.0, lambda f, x: lax.fori_loop(
        0, 20, lambda i, v: v - f(v) / (2 * v), x), lambda g, y: y / g(1.0))
    return root(2.0), jax.grad(root)(2.0)


@program
def attention():
    q, k, v = (jnp.asarray(np.random.RandomState(i).randn(2, 8, 4, 16).astype("f4")) for i in range(3))
    f = lambda *a: jax.nn.dot_product_attention(*a, is_causal=True)
    return f(q, k, v), jax.grad(lambda a: jnp.sum(f(a, k, v)))(q), jax.nn.softmax(q[0, 0]), jax.nn.gelu(q[0, 0])


@program
def ragged_products():
    x, w = jnp.ones((6, 4)), jnp.asarray(np.random.RandomState(0).randn(3, 4, 5).astype("f4"))
    return lax.ragged_dot(x, w, jnp.array([2, 3, 1])), jax.grad(lambda a: lax.ragged_dot(x, a, jnp.array([1, 1, 4])).sum())(w)


@program
def train_a_network():
    random = np.random.RandomState(0)
    x, y = jnp.asarray(random.randn(16, 8).astype("f4")), jnp.asarray(random.randint(0, 4, 16))
    params = [jnp.asarray(random.randn(8, 16).astype("f4") / 3), jnp.zeros(16), jnp.asarray(random.randn(16, 4).astype("f4") / 4)]

    def loss(p):
        h = jax.nn.relu(x @ p[0] + p[1])
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(h @ p[2]), y[:, None], 1))

    step = jax.jit(lambda p: jax.tree.map(lambda a, g: a - 0.3 * g, p, jax.grad(loss)(p)))
    losses = []
    for _ in range(5):
        losses.append(loss(params))
        params = step(params)
    return losses, params
