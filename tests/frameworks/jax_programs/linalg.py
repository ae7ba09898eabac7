# SPDX-License-Identifier: Apache-2.0
"""jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg."""

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

from . import program


def general(n=5, seed=0):
    return jnp.asarray(np.random.RandomState(seed).randn(n, n).astype("f4"))


def positive(n=5):
    a = general(n)
    return a @ a.T + n * jnp.eye(n)


def symmetric(n=6):
    a = general(n, 3)
    return a + a.T


def complex_matrix(m=4, n=4):
    random = np.random.RandomState(7)
    return jnp.asarray((random.randn(m, n) + 1j * random.randn(m, n)).astype("c8"))


def by_position(values):
    """Sorts complex numbers: eigenvalues have no order."""
    values = np.asarray(values)
    return values[np.lexsort((values.imag.round(3), values.real.round(3)))]


@program
def cholesky():
    return jnp.linalg.cholesky(positive()), jnp.linalg.cholesky(-positive())


@program
def cholesky_of_complex():
    a = complex_matrix()
    return jnp.linalg.cholesky(a @ a.conj().T + 4 * jnp.eye(4))


@program
def gradient_of_cholesky():
    return jax.grad(lambda a: jnp.sum(jnp.linalg.cholesky(a) ** 2))(positive())


@program
def solve_and_inverse():
    a, b = positive(), jnp.arange(10, dtype="f4").reshape(5, 2)
    return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jax.vmap(jnp.linalg.solve)(jnp.stack([a, 2 * a]), jnp.stack([b, b]))


@program
def determinants():
    return jnp.linalg.det(general()), jnp.linalg.slogdet(general())


@program
def qr():
    a = jnp.asarray(np.random.RandomState(1).randn(6, 4).astype("f4"))
    return jnp.linalg.qr(a), jnp.linalg.qr(a, mode="complete"), jnp.linalg.qr(a.T, mode="r")


@program
def qr_of_complex():
    return jnp.linalg.qr(complex_matrix(5, 3)), jnp.linalg.qr(complex_matrix(3, 5), mode="complete")


@program
def pivoted_qr():
    return jsl.qr(general(), pivoting=True)


@program
def svd():
    a = jnp.asarray(np.random.RandomState(2).randn(6, 4).astype("f4"))
    return jnp.linalg.svd(a), jnp.linalg.svd(a, full_matrices=False), jnp.linalg.svd(complex_matrix(), compute_uv=False)


@program
def gradient_of_svd():
    return jax.grad(lambda a: jnp.linalg.svd(a, compute_uv=False)[0])(general())


@program
def eigh():
    a = complex_matrix()
    return jnp.linalg.eigh(symmetric()), jnp.linalg.eigvalsh(a + a.conj().T), jax.vmap(jnp.linalg.eigh)(
        jnp.stack([symmetric(), -symmetric()]))


@program
def gradient_of_eigh():
    return jax.jit(jax.grad(lambda a: jnp.linalg.eigh(a)[0][0]))(symmetric())


@program
def eig():
    values, vectors = jnp.linalg.eig(general())
    return values, vectors, jnp.linalg.eigvals(complex_matrix())


@program
def least_squares():
    a = jnp.asarray(np.random.RandomState(4).randn(7, 3).astype("f4"))
    return jnp.linalg.lstsq(a, jnp.arange(7, dtype="f4"))


@program
def pseudo_inverse_rank_and_condition():
    a = jnp.asarray(np.random.RandomState(5).randn(5, 3).astype("f4"))
    return jnp.linalg.pinv(a), jnp.linalg.matrix_rank(a), jnp.linalg.cond(a), jnp.linalg.norm(a, 2), jnp.linalg.norm(a)


@program
def lu():
    a = general()
    return jsl.lu(a), jsl.lu_solve(jsl.lu_factor(a), jnp.ones(5)), jsl.lu(complex_matrix())


@program
def matrix_functions():
    a = positive() / 10
    return jsl.expm(general() / 3), jsl.sqrtm(a), jnp.linalg.matrix_power(general(), 3), jsl.funm(a, jnp.sin)


@program
def schur():
    return jsl.schur(general()), jsl.schur(general(), output="complex")[0].shape, jsl.rsf2csf(*jsl.schur(general()))


@program
def triangular_and_cholesky_solve():
    a, b = positive(), jnp.ones((5, 2))
    factor = jsl.cho_factor(a, lower=True)
    return (jsl.solve_triangular(jnp.tril(a), b, lower=True), jsl.solve_triangular(jnp.triu(a), b, trans=1),
            jsl.cho_solve(factor, b))


@program
def tridiagonal():
    d = jnp.arange(1.0, 7.0)
    solved = jax.lax.linalg.tridiagonal_solve(jnp.ones(6).at[0].set(0), d + 4, jnp.ones(6).at[-1].set(0), d[:, None])
    return jax.lax.linalg.tridiagonal(symmetric(), lower=True), solved, jsl.eigh_tridiagonal(
        d, jnp.ones(5), eigvals_only=True)


@program
def hessenberg():
    return jsl.hessenberg(general()), jsl.hessenberg(general(), calc_q=True), jax.lax.linalg.hessenberg(complex_matrix())


@program
def updates_of_factors():
    r = jnp.linalg.cholesky(positive(), upper=True)
    return jax.lax.linalg.cholesky_update(r, jnp.ones(5)), jax.lax.linalg.symmetric_product(
        general(), jnp.zeros((5, 5)), symmetrize_output=True)


@program
def polynomials():
    x = jnp.linspace(0, 1, 9)
    return jnp.polyfit(x, x**2 - x, 2), by_position(jnp.roots(jnp.array([1.0, -6.0, 11.0, -6.0]))), jnp.polyval(
        jnp.array([1.0, 2.0]), x)


@program
def block_and_structured_matrices():
    return (jsl.block_diag(jnp.ones((2, 2)), jnp.eye(3)), jsl.toeplitz(jnp.arange(4.0)), jsl.hilbert(3),
            jsl.polar(general())[1], jnp.linalg.multi_dot([general(), general(5, 1), general(5, 2)]))
