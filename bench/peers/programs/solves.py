# SPDX-License-Identifier: Apache-2.0
"""Factorizations and solves."""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Program, array, function


def _definite(random: np.random.Generator, batch: int, n: int, columns: int) -> tuple[Any, ...]:
    a = array(random, (batch, n, n), 1 / np.sqrt(n))
    return a @ a.transpose(0, 2, 1) + np.eye(n, dtype=np.float32), array(random, (batch, n, columns))


def _cholesky(a: Any, b: Any) -> Any:
    import jax

    factor = jax.lax.linalg.cholesky(a, symmetrize_input=False)
    y = jax.lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)
    return jax.lax.linalg.triangular_solve(factor, y, left_side=True, lower=True, transpose_a=True)


def _torch_cholesky(a: Any, b: Any) -> Any:
    import torch

    return torch.cholesky_solve(b, torch.linalg.cholesky(a))


def _solve(a: Any, b: Any) -> Any:
    import jax.numpy as jnp

    return jnp.linalg.solve(a, b)


def _torch_solve(a: Any, b: Any) -> Any:
    import torch

    return torch.linalg.solve(a, b)


PROGRAMS = [
    Program("Cholesky and solve 512", lambda random: tuple(x[0] for x in _definite(random, 1, 512, 32)), _cholesky,
            function(_torch_cholesky), 1e-3),
    Program("1000 solves of 16", lambda random: _definite(random, 1000, 16, 1), _solve, function(_torch_solve), 1e-3),
]
