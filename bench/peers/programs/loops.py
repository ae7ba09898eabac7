# SPDX-License-Identifier: Apache-2.0
"""Programs that are loops: recurrences, simulations, searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Program, array, function, jax_training, normal, training


def _scalar_loop(x: Any) -> Any:
    import jax

    return jax.lax.fori_loop(0, 100_000, lambda i, v: v * 0.999 + 0.5, x)


# --- recurrent networks ---------------------------------------------------------------------------------------------


def _lstm_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    parameters = [array(random, (1024, 256), 0.05), array(random, (1024, 256), 0.05), array(random, (1024,), 0.05)]
    return parameters, array(random, (128, 16, 256))


def _lstm(parameters: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    w, u, b = parameters

    def step(carry: Any, projected: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(projected + h @ u.T, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], 256), x.dtype)
    return jax.lax.scan(step, (zeros, zeros), x @ w.T + b)[1]


def _torch_lstm(parameters: Any, x: Any) -> Any:
    import torch

    w, u, b = parameters
    zeros = x.new_zeros(1, x.shape[1], 256)
    return torch.lstm(x, (zeros, zeros), [w, u, b, torch.zeros_like(b)], True, 1, 0.0, False, False, False)[0]


def _lstm_loss(parameters: Any, x: Any) -> Any:
    return (_lstm(parameters, x) ** 2).mean()


def _torch_lstm_loss(parameters: Any, x: Any) -> Any:
    return (_torch_lstm(parameters, x) ** 2).mean()


def _gru_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    return ([array(random, (768, 256), 0.05), array(random, (768, 256), 0.05), array(random, (768,), 0.05)],
            array(random, (128, 16, 256)))


def _gru_loss(parameters: Any, x: Any) -> Any:
    import jax
    import jax.numpy as jnp

    w, u, b = parameters

    def step(h: Any, projected: Any) -> Any:
        r, z, n = jnp.split(projected, 3, -1)
        hr, hz, hn = jnp.split(h @ u.T, 3, -1)
        z = jax.nn.sigmoid(z + hz)
        n = jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn)
        h = (1 - z) * n + z * h
        return h, h

    return (jax.lax.scan(step, jnp.zeros((x.shape[1], 256), x.dtype), x @ w.T + b)[1] ** 2).mean()


def _torch_gru_loss(parameters: Any, x: Any) -> Any:
    import torch

    w, u, b = parameters
    zeros = x.new_zeros(1, x.shape[1], 256)
    return (torch.gru(x, zeros, [w, u, b, torch.zeros_like(b)], True, 1, 0.0, False, False, False)[0] ** 2).mean()


# --- simulations ----------------------------------------------------------------------------------------------------


def _bodies(position: Any, velocity: Any, mass: Any) -> Any:
    """Ten leapfrog steps of 512 bodies that attract each other."""
    import jax
    import jax.numpy as jnp

    def step(_: Any, state: Any) -> Any:
        x, v = state
        d = x[None, :, :] - x[:, None, :]
        inverse = jax.lax.rsqrt((d * d).sum(-1) + 0.1)
        v = v + 0.001 * (d * (mass * inverse ** 3)[..., None]).sum(1)
        return x + 0.001 * v, v

    return jax.lax.fori_loop(0, 10, step, (position, velocity))


def _torch_bodies(x: Any, v: Any, mass: Any) -> Any:
    for _ in range(10):
        d = x[None, :, :] - x[:, None, :]
        inverse = ((d * d).sum(-1) + 0.1).rsqrt()
        v = v + 0.001 * (d * (mass * inverse ** 3)[..., None]).sum(1)
        x = x + 0.001 * v
    return x, v


def _bodies_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    return array(random, (512, 3)), array(random, (512, 3), 0.1), random.random(512, np.float32)


BOX, PARTICLES = 10.0, 400


def _energy(x: Any) -> Any:
    """Lennard-Jones in a periodic box, cut at 2.5."""
    import jax.numpy as jnp

    d = x[None, :, :] - x[:, None, :]
    d = d - BOX * jnp.round(d / BOX)
    r2 = (d * d).sum(-1) + jnp.eye(PARTICLES) * 100
    s6 = jnp.where(r2 < 6.25, 1 / (r2 + 0.3) ** 3, 0)
    return 2 * (s6 * s6 - s6).sum()


def _molecules(x: Any, v: Any) -> Any:
    """Five velocity Verlet steps; forces are the gradient of the energy."""
    import jax

    force = jax.grad(lambda x: -_energy(x))

    def step(_: Any, state: Any) -> Any:
        x, v, f = state
        v = v + 0.0005 * f
        x = x + 0.001 * v
        f = force(x)
        return x, v + 0.0005 * f, f

    return jax.lax.fori_loop(0, 5, step, (x, v, force(x)))[:2]


def _molecules_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    lattice = np.stack(np.meshgrid(*[np.arange(8)] * 3), -1).reshape(-1, 3)[:PARTICLES] * (BOX / 8)
    return (lattice + array(random, (PARTICLES, 3), 0.05)).astype(np.float32), array(random, (PARTICLES, 3), 0.5)


def _oscillators(y: Any) -> Any:
    """Van der Pol's equation from 1,000 starts, 500 steps of Runge and Kutta."""
    import jax
    import jax.numpy as jnp

    def rate(y: Any) -> Any:
        return jnp.stack([y[1], 2 * (1 - y[0] ** 2) * y[1] - y[0]])

    def step(_: Any, y: Any) -> Any:
        a = rate(y)
        b = rate(y + 0.005 * a)
        c = rate(y + 0.005 * b)
        d = rate(y + 0.01 * c)
        return y + 0.01 / 6 * (a + 2 * b + 2 * c + d)

    return jax.lax.fori_loop(0, 500, step, y)


def _kalman(observations: Any, transition: Any, noise: Any) -> Any:
    """A filter of 8 states over 1,000 observations of 4, with the gain solved in each step."""
    import jax
    import jax.numpy as jnp

    observe = jnp.eye(4, 8)

    def step(carry: Any, z: Any) -> Any:
        x, p = carry
        x, p = transition @ x, transition @ p @ transition.T + noise
        s = observe @ p @ observe.T + 0.5 * jnp.eye(4)
        gain = jnp.linalg.solve(s, observe @ p).T
        return (x + gain @ (z - observe @ x), p - gain @ observe @ p), x

    return jax.lax.scan(step, (jnp.zeros(8), jnp.eye(8)), observations)[1]


def _kalman_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    transition = 0.9 * np.eye(8, dtype=np.float32) + array(random, (8, 8), 0.02)
    return array(random, (1000, 4)), transition, 0.1 * np.eye(8, dtype=np.float32)


def _chains(x: Any, scale: Any) -> Any:
    """Twenty steps of Hamiltonian Monte Carlo, four leapfrogs each, for 256 chains of 64 numbers."""
    import jax
    import jax.numpy as jnp

    def potential(x: Any) -> Any:
        return 0.5 * ((x * scale) ** 2).sum(-1) + jnp.log1p((x ** 2).sum(-1))

    force = jax.grad(lambda x: potential(x).sum())

    def step(carry: Any, key: Any) -> Any:
        x = carry
        k1, k2 = jax.random.split(key)
        p = start = jax.random.normal(k1, x.shape)
        y = x
        for _ in range(4):
            p = p - 0.05 * force(y)
            y = y + 0.1 * p
            p = p - 0.05 * force(y)
        change = potential(x) - potential(y) + 0.5 * (start ** 2).sum(-1) - 0.5 * (p ** 2).sum(-1)
        accepted = jnp.log(jax.random.uniform(k2, change.shape)) < change
        x = jnp.where(accepted[:, None], y, x)
        return x, accepted.mean()

    return jax.lax.scan(step, x, jax.random.split(jax.random.key(3), 20))


# --- searches -------------------------------------------------------------------------------------------------------


def _means(x: Any, centres: Any) -> Any:
    """Ten rounds of Lloyd's algorithm: 20,000 points of 16 numbers, 64 centres."""
    import jax
    import jax.numpy as jnp

    def step(_: Any, c: Any) -> Any:
        nearest = ((c * c).sum(-1) - 2 * x @ c.T).argmin(-1)
        sums = jax.ops.segment_sum(x, nearest, 64)
        counts = jax.ops.segment_sum(jnp.ones(len(x)), nearest, 64)
        return jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], c)

    return jax.lax.fori_loop(0, 10, step, centres)


def _torch_means(x: Any, c: Any) -> Any:
    import torch

    for _ in range(10):
        nearest = ((c * c).sum(-1) - 2 * x @ c.T).argmin(-1)
        sums = torch.zeros(64, 16).index_add_(0, nearest, x)
        counts = torch.zeros(64).index_add_(0, nearest, torch.ones(len(x)))
        c = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], c)
    return c


def _beam(table: Any, start: Any) -> Any:
    """Beam search: 16 beams, 32 steps over 4,096 words whose scores depend on the last word."""
    import jax
    import jax.numpy as jnp

    def step(carry: Any, _: Any) -> Any:
        scores, last = carry
        total = scores[:, None] + jax.nn.log_softmax(table[last % 512])
        scores, chosen = jax.lax.top_k(total.reshape(-1), 16)
        beam, word = chosen // 4096, chosen % 4096
        return (scores, word), (beam, word)

    return jax.lax.scan(step, (jnp.where(jnp.arange(16) == 0, 0.0, -jnp.inf), start), None, 32)


def _torch_beam(table: Any, last: Any) -> Any:
    import torch

    scores = torch.where(torch.arange(16) == 0, 0.0, -torch.inf)
    beams, words = [], []
    for _ in range(32):
        total = scores[:, None] + table[last % 512].log_softmax(-1)
        scores, chosen = total.reshape(-1).topk(16)
        beam, last = chosen // 4096, chosen % 4096
        beams.append(beam)
        words.append(last)
    return (scores, last), (torch.stack(beams), torch.stack(words))


def _beam_inputs(random: np.random.Generator) -> tuple[Any, ...]:
    return array(random, (512, 4096), 2), np.zeros(16, np.int32)


PROGRAMS = [
    Program("scalar loop of 100k", lambda random: (np.asarray(1, np.float32),), _scalar_loop, None),
    Program("LSTM by scan 128x16x256", _lstm_inputs, _lstm, function(_torch_lstm)),
    Program("LSTM 128x16x256, training", _lstm_inputs, jax_training(_lstm_loss, 0.1), training(_torch_lstm_loss, 0.1),
            1e-3),
    Program("GRU 128x16x256, training", _gru_inputs, jax_training(_gru_loss, 0.1), training(_torch_gru_loss, 0.1),
            1e-3),
    Program("512 bodies, 10 steps", _bodies_inputs, _bodies, function(_torch_bodies), 1e-3),
    Program("molecular dynamics, 400 particles", _molecules_inputs, _molecules, None, 1e-3),
    Program("ODE, 1000 starts, 500 steps", normal((2, 1000)), _oscillators, None, 1e-3),
    Program("Kalman filter, 1000 steps", _kalman_inputs, _kalman, None, 1e-3),
    Program("Hamiltonian Monte Carlo, 256 chains", normal((256, 64), (64,)), _chains, None, 1e-2),
    Program("k-means 20k x 16, 64 centres", lambda random: (array(random, (20_000, 16)), array(random, (64, 16))),
            _means, function(_torch_means), 1e-3),
    Program("beam search, 16 beams, 32 steps", _beam_inputs, _beam, function(_torch_beam), 1e-3),
]
