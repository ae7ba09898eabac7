# SPDX-License-Identifier: Apache-2.0
"""Programs that jax.export wrote with symbolic dimensions, at three sizes each, and the linear algebra of JAX's CPU
backend, in hlo-run against JAX.

    /path/to/venv/bin/python tests/frameworks/jax_exports.py build/release/bin [--only=NAME]

prints a line for each value that differs and `N passed, N failed`, and exits with 1 if one failed.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax

# Name: function, specifications of float arguments ("#n": an integer array), constraints, sizes.
SYMBOLIC: dict[str, tuple[Callable[..., Any], tuple[str, ...], tuple[str, ...], list[dict[str, int]]]] = {}
# Name: function of arrays of one type, shapes, and what makes the first argument of a random matrix.
LINEAR: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], Callable[[Any], Any] | None]] = {}
ONE = [{"b": 1}, {"b": 3}, {"b": 8}]
TWO = [{"b": 2, "c": 3}, {"b": 5, "c": 1}, {"b": 4, "c": 7}]


def symbolic(*specs: str, constraints: tuple[str, ...] = (), sizes: list[dict[str, int]] = ONE) -> Any:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        SYMBOLIC[f.__name__] = (f, specs, constraints, sizes)
        return f

    return add


def linear(*shapes: tuple[int, ...], first: Callable[[Any], Any] | None = None) -> Any:
    def add(f: Callable[..., Any]) -> Callable[..., Any]:
        LINEAR[f.__name__] = (f, shapes, first)
        return f

    return add


# ---- symbolic dimensions ----


@symbolic("b, 4")
def product_of_dimensions(x: Any) -> Any:
    return jnp.concatenate([x.reshape(-1), jnp.sin(x).reshape(-1)]).reshape(-1, 2)


@symbolic("b, 6", "#")
def slice_at_an_argument(x: Any, i: Any) -> Any:
    return lax.dynamic_slice(x, (i, 2), (x.shape[0], 3))


@symbolic("b, 6")
def counted(x: Any) -> Any:
    return x + jnp.arange(x.shape[0], dtype=jnp.float32)[:, None] * jnp.arange(6)


@symbolic("b", "c", sizes=TWO)
def outer(x: Any, y: Any) -> Any:
    return x[:, None] * y[None, :] + jnp.ones((x.shape[0], y.shape[0]))


@symbolic("b, 3")
def padded(x: Any) -> Any:
    return jnp.pad(x, ((1, x.shape[0]), (0, 2)), constant_values=2.0)


@symbolic("b, 3", "#c", sizes=TWO)
def rows(x: Any, i: Any) -> Any:
    return x[i % x.shape[0]]


@symbolic("b, 4")
def running_sum(x: Any) -> Any:
    return jnp.cumsum(x, axis=0)


@symbolic("b")
def loop_of_symbolic_count(x: Any) -> Any:
    return lax.while_loop(lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, c[1] + x[c[0]] * c[0]), (0, 0.0))[1]


@symbolic("b, 4")
def updated_in_a_loop(x: Any) -> Any:
    return lax.fori_loop(0, x.shape[0], lambda i, a: a.at[i].set(a[i] * 2 + a[x.shape[0] - 1 - i]), x)


@symbolic("2*b, 3")
def halves(x: Any) -> Any:
    return x[: x.shape[0] // 2] + x[x.shape[0] // 2 :]


@symbolic("b, 3", constraints=("mod(b, 2) == 0", "b >= 2", "b <= 16"), sizes=[{"b": 2}, {"b": 4}, {"b": 10}])
def divisible(x: Any) -> Any:
    return x.reshape(2, x.shape[0] // 2, 3).sum(0)


@symbolic("b, h, w, 3", sizes=[{"b": 1, "h": 8, "w": 8}, {"b": 2, "h": 9, "w": 12}, {"b": 3, "h": 16, "w": 7}])
def windows(x: Any) -> Any:
    kernel = jnp.ones((3, 3, 3, 4)) * 0.1
    y = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@symbolic("b, 5", "5, c", sizes=TWO)
def mapped_dot(x: Any, y: Any) -> Any:
    return jax.vmap(lambda r: jnp.dot(r, y))(x)


@symbolic("b, t, 8", sizes=[{"b": 1, "t": 4}, {"b": 2, "t": 5}, {"b": 3, "t": 16}])
def attention(x: Any) -> Any:
    q = x.reshape(x.shape[0], x.shape[1], 2, 4)
    s = jnp.einsum("bthd,bshd->bhts", q, q)
    s = jnp.where(jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)), s, -1e9)
    return jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(s), q).reshape(x.shape)


@symbolic("b, 4")
def sorted_rows(x: Any) -> Any:
    return jnp.sort(x, axis=0), jnp.argmax(x, axis=0), jnp.argsort(x, axis=1)


@symbolic("b, 4")
def gradient(x: Any) -> Any:
    return jax.grad(lambda x: jnp.mean(jnp.tanh(x) ** 2) * x.shape[0])(x)


@symbolic("b")
def scanned(x: Any) -> Any:
    return lax.scan(lambda c, a: (c * 0.5 + a, c), 0.0, x)


@symbolic("b, 4", "#c", sizes=TWO)
def added_rows(x: Any, i: Any) -> Any:
    return x.at[i % x.shape[0]].add(1.5)


@symbolic("b, b, 2")
def diagonals(x: Any) -> Any:
    return jnp.eye(x.shape[0])[..., None] * x, jnp.trace(x)


@symbolic("b", constraints=("b >= 3",), sizes=[{"b": 3}, {"b": 8}, {"b": 5}])
def largest(x: Any) -> Any:
    return lax.top_k(x, 3)


@symbolic("b, 4")
def size_as_a_value(x: Any) -> Any:
    return x * jnp.float32(x.shape[0]) + (x.shape[0] * 3 + 1) // 2 - x.shape[0] % 3


@symbolic("b")
def repeated(x: Any) -> Any:
    return jnp.repeat(x, 3), jnp.tile(x, (2, 2)), jnp.flip(x), jnp.roll(x, 1)


@symbolic("b, 4")
def random_numbers(x: Any) -> Any:
    return jax.random.normal(jax.random.key(0), x.shape) + x


@symbolic("b")
def branches(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda a: jnp.outer(a, a), lambda a: jnp.zeros((a.shape[0], a.shape[0])), x)


# ---- linear algebra ----


def adjoint(a: Any) -> Any:
    return jnp.conj(jnp.swapaxes(a, -1, -2))


def positive(a: Any) -> Any:
    return a @ np.conj(np.swapaxes(a, -1, -2)) + 3 * np.eye(a.shape[-1])


def hermitian(a: Any) -> Any:
    return a + np.conj(np.swapaxes(a, -1, -2))


@linear((3, 4, 4), first=positive)
def cholesky(a: Any) -> Any:
    return jnp.linalg.cholesky(a), jnp.linalg.cholesky(a, upper=True)


@linear((2, 5, 4))
def lu(a: Any) -> Any:
    return lax.linalg.lu(a)


@linear((2, 5, 4))
def qr(a: Any) -> Any:
    return jnp.linalg.qr(a)


@linear((5, 3))
def complete_qr(a: Any) -> Any:
    q, r = jnp.linalg.qr(a, mode="complete")
    return q @ r, adjoint(q) @ q


@linear((5, 4))
def pivoted_qr(a: Any) -> Any:
    return jax.scipy.linalg.qr(a, pivoting=True)


@linear((2, 4, 4), first=hermitian)
def eigenvalues_of_hermitian(a: Any) -> Any:
    w, v = jnp.linalg.eigh(a)
    return w, (v * w[..., None, :]) @ adjoint(v), adjoint(v) @ v


@linear((2, 5, 3))
def singular_values(a: Any) -> Any:
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return s, (u * s[..., None, :]) @ vh, adjoint(u) @ u


@linear((3, 5))
def all_singular_vectors(a: Any) -> Any:
    u, s, vh = jnp.linalg.svd(a, full_matrices=True)
    return s, (u * s) @ vh[:3], vh @ adjoint(vh), jnp.linalg.svd(a, compute_uv=False)


@linear((2, 4, 4), (2, 4, 3))
def triangular_left(a: Any, b: Any) -> Any:
    return lax.linalg.triangular_solve(a, b, left_side=True, lower=True)


@linear((4, 4), (3, 4))
def triangular_right(a: Any, b: Any) -> Any:
    solve = lax.linalg.triangular_solve
    return solve(a, b, transpose_a=True, conjugate_a=True), solve(a, b, lower=True, unit_diagonal=True)


@linear((4, 4), (4, 3))
def solved(a: Any, b: Any) -> Any:
    return jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.slogdet(a)


@linear((2, 5, 5))
def eigenvalues(a: Any) -> Any:
    w, v = jnp.linalg.eig(a)
    norm = jnp.linalg.norm(v, axis=-2)
    order = jnp.argsort(jnp.round(w.real, 3) * 100 + jnp.round(w.imag, 3), axis=-1)
    return jnp.take_along_axis(w, order, -1), a @ v - v * w[..., None, :], norm


@linear((5, 5))
def left_eigenvectors(a: Any) -> Any:
    w, vl, vr = lax.linalg.eig(a)
    return adjoint(vl) @ a - w[:, None] * adjoint(vl), a @ vr - vr * w


@linear((5, 5))
def schur(a: Any) -> Any:
    t, z = jax.scipy.linalg.schur(a)
    return z @ t @ adjoint(z), adjoint(z) @ z, jnp.tril(t, -2)


@linear((5, 5))
def hessenberg(a: Any) -> Any:
    h, q = jax.scipy.linalg.hessenberg(a, calc_q=True)
    return h, q


@linear((5, 5), first=hermitian)
def tridiagonal(a: Any) -> Any:
    return lax.linalg.tridiagonal(a)


@linear((5,), (5,), (5,), (5, 2), first=lambda a: a)
def tridiagonal_system(below: Any, diagonal: Any, above: Any, b: Any) -> Any:
    return lax.linalg.tridiagonal_solve(below.at[0].set(0), diagonal, above.at[-1].set(0), b)


@linear((5, 3), (3,))
def reflections(a: Any, taus: Any) -> Any:
    return lax.linalg.householder_product(a, taus)


@linear((6, 3), (6,))
def least_squares(a: Any, b: Any) -> Any:
    return jnp.linalg.lstsq(a, b)[0]


# ---- comparison ----


def differs(tool: pathlib.Path, program: pathlib.Path, flags: list[str], values: list[Any], expected: Any, bound: float) -> str:
    """Why the results of hlo-run are others than JAX's; "" if they are not."""
    folder = program.parent
    np.savez(folder / "in.npz", **{f"arg{i}": value for i, value in enumerate(values)})
    command = [tool, program, *flags, f"--args={folder}/in.npz", "-o", folder / "out.npz"]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        return run.stderr.strip()[:300]
    found = np.load(folder / "out.npz")
    for i, leaf in enumerate(jax.tree.leaves(expected)):
        want, got = np.asarray(leaf), found[f"result{i}"]
        if want.shape != got.shape or want.dtype != got.dtype:
            return f"result {i} is {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        if not np.allclose(want, got, rtol=bound, atol=bound):
            return f"result {i} is off by {np.abs(want - got).max()}"
    return ""


def symbolic_cases(tool: pathlib.Path, folder: pathlib.Path, only: str) -> list[tuple[str, str]]:
    found = []
    for name, (function, specs, constraints, sizes) in SYMBOLIC.items():
        if only not in name:
            continue
        scope = export.SymbolicScope(constraints)
        arguments = []
        for spec in specs:
            text = spec.removeprefix("#")
            dims = export.symbolic_shape(text, scope=scope) if text else ()
            arguments.append(jax.ShapeDtypeStruct(dims, jnp.int32 if spec.startswith("#") else jnp.float32))
        exported = export.export(jax.jit(function))(*arguments)
        programs = {".bin": bytes(exported.serialize()), ".mlirbc": exported.mlir_module_serialized,
                    ".mlir": str(exported.mlir_module()).encode()}
        for k, (size, (suffix, program)) in enumerate(zip(sizes, programs.items())):
            random = np.random.default_rng(k)
            values = []
            for spec in specs:
                dims = tuple(int(eval(d, {}, dict(size))) for d in spec.removeprefix("#").split(",") if d.strip())
                is_index = spec.startswith("#")
                values.append(random.integers(0, 20, dims).astype(np.int32) if is_index else random.normal(size=dims).astype(np.float32))
            path = folder / f"program{suffix}"
            path.write_bytes(program)
            # Sizes of dimension variables, or those of the arguments.
            flags = [f"--shape={','.join(f'{n}={s}' for n, s in size.items())}"] if k == 0 else []
            found.append((f"{name}, {size}", differs(tool, path, flags, values, jax.jit(function)(*values), 1e-5)))
    return found


def linear_cases(tool: pathlib.Path, folder: pathlib.Path, only: str) -> list[tuple[str, str]]:
    found = []
    for name, (function, shapes, first) in LINEAR.items():
        for dtype in (np.float32, np.float64, np.complex64, np.complex128):
            if only not in name:
                continue
            random = np.random.default_rng(len(found))
            values: list[Any] = []
            for shape in shapes:
                value = random.normal(size=shape)
                if np.issubdtype(dtype, np.complexfloating):
                    value = value + 1j * random.normal(size=shape)
                values.append((first(value) if first and not values else value).astype(dtype))
            path = folder / "program.hlo"
            path.write_text(jax.jit(function).lower(*values).compiler_ir("hlo").as_hlo_text())
            bound = 2e-4 if dtype in (np.float32, np.complex64) else 1e-9
            found.append((f"{name}, {np.dtype(dtype)}", differs(tool, path, [], values, jax.jit(function)(*values), bound)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    jax.config.update("jax_platforms", "cpu")
    with tempfile.TemporaryDirectory() as folder:
        cases = symbolic_cases(args.bin.resolve() / "hlo-run", pathlib.Path(folder), args.only)
        jax.config.update("jax_enable_x64", True)
        cases += linear_cases(args.bin.resolve() / "hlo-run", pathlib.Path(folder), args.only)
    for name, why in cases:
        if why:
            print(f"{name}: {why}")
    failed = sum(why != "" for _, why in cases)
    print(f"{len(cases) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
