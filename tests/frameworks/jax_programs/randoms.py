# SPDX-License-Identifier: Apache-2.0
"""jax.random."""

import jax
import jax.numpy as jnp

from . import program


@program
def first_numbers():
    key = jax.random.PRNGKey(0)
    return jax.random.normal(key, (3,)), jax.random.uniform(key, (2, 3)), jax.random.split(key, 3), jax.random.fold_in(key, 7)


@program
def continuous_distributions():
    r = jax.random
    return jax.jit(lambda key: (r.exponential(key, (5,)), r.gamma(key, 2.0, (5,)), r.beta(key, 2.0, 3.0, (5,)), r.dirichlet(key, jnp.ones(3), (2,)),
            r.cauchy(key, (3,)), r.laplace(key, (3,)), r.gumbel(key, (3,)), r.t(key, 3.0, (3,)), r.truncated_normal(
                key, -1.0, 1.0, (4,)), r.multivariate_normal(key, jnp.zeros(2), jnp.eye(2), (3,))))(r.key(1))


@program
def discrete_distributions():
    r = jax.random
    return jax.jit(lambda key: (r.randint(key, (5,), 0, 10), r.bernoulli(key, 0.3, (8,)), r.categorical(key, jnp.log(jnp.array([0.2, 0.3, 0.5])), shape=(
        6,)), r.poisson(key, 4.0, (5,)), r.binomial(key, 10, 0.4, (5,)), r.geometric(key, 0.3, (4,)), r.rademacher(key, (4,))))(r.key(2))


@program
def permutations_and_choices():
    r = jax.random
    return jax.jit(lambda key: (r.permutation(key, 10), r.choice(key, 10, (4,), replace=False), r.choice(key, jnp.arange(4), (6,), p=jnp.array(
        [0.1, 0.2, 0.3, 0.4])), r.orthogonal(key, 3), r.ball(key, 3), r.bits(key, (3,))))(r.key(3))


@program
def gradient_of_a_sample():
    return jax.grad(lambda a: jax.random.gamma(jax.random.key(0), a, (4,)).sum())(2.0)


@program
def keys_of_rbg_generators():
    key = jax.random.key(4, impl="rbg")
    unsafe = jax.random.key(5, impl="unsafe_rbg")
    return (jax.random.normal(key, (3,)).shape, jax.random.key_data(jax.random.split(key, 2)), str(jax.random.key_impl(key)),
            jnp.all(jnp.isfinite(jax.random.uniform(unsafe, (100,)))))
