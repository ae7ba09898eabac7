# SPDX-License-Identifier: Apache-2.0
"""jax.numpy and jax.scipy: order, indexes, windows, types."""

import jax
import jax.numpy as jnp
import jax.scipy.special
import ml_dtypes
import numpy as np

from . import program

DATA = np.random.RandomState(0).randn(6, 8).astype("f4")


@program
def add_and_reduce():
    x = jnp.asarray(DATA)
    return jnp.add(1, 1), jax.jit(lambda v: v * 2)(1.0), x.sum(), x.mean(0), x.std(1), jnp.cumsum(x, 1), x.argmax()


@program
def fourier_transforms():
    x = jnp.asarray(DATA)
    return jnp.fft.fft(x), jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)), jnp.fft.fft2(x), jnp.fft.fftshift(x), jnp.fft.ifft(
        x + 1j)


@program
def order():
    x = jnp.asarray(DATA)
    return (jnp.sort(x), jnp.argsort(x, axis=0), jax.lax.top_k(x, 3), jnp.searchsorted(jnp.sort(x[0]), x[1]), jnp.median(x),
            jnp.percentile(x, 30.0, axis=1), jnp.lexsort((x[0] > 0, x[1])))


@program
def unique_values():
    x = jnp.array([3, 1, 2, 3, 1, 1])
    return jnp.unique(x, return_counts=True), jnp.bincount(x, length=5), jnp.histogram(x, 3), jnp.nonzero(x == 1)


@program
def approximate_top_k():
    x = jnp.asarray(DATA)
    return jax.lax.approx_max_k(x, 3), jax.lax.approx_min_k(x, 2), jax.jit(lambda v: jax.lax.approx_max_k(v, 1))(x[0])


@program
def convolutions():
    x = jnp.asarray(np.random.RandomState(1).randn(2, 8, 8, 4).astype("f4"))
    k = jnp.asarray(np.random.RandomState(2).randn(3, 3, 4, 6).astype("f4"))
    conv = lambda a, b, **o: jax.lax.conv_general_dilated(a, b, dimension_numbers=("NHWC", "HWIO", "NHWC"), **o)
    return (conv(x, k, window_strides=(2, 2), padding="SAME"), conv(x, k, window_strides=(1, 1), padding="VALID",
                                                                    rhs_dilation=(2, 2)),
            conv(x, k[:, :, :2], window_strides=(1, 1), padding="SAME", feature_group_count=2),
            jax.lax.conv_transpose(x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
            jnp.convolve(x[0, 0, :, 0], jnp.ones(3)))


@program
def gradient_of_a_convolution():
    x, k = jnp.ones((1, 6, 6, 2)), jnp.asarray(np.random.RandomState(2).randn(3, 3, 2, 4).astype("f4"))
    return jax.grad(lambda a, b: jnp.sum(jax.lax.conv_general_dilated(
        a, b, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2), (0, 1))(x, k)


@program
def pooling():
    x = jnp.asarray(DATA)[None, :, :, None]
    pool = lambda v: jax.lax.reduce_window(v, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return pool(x), jax.grad(lambda v: pool(v).sum())(x)


@program
def segments():
    x, ids = jnp.asarray(DATA), jnp.array([0, 0, 1, 2, 2, 2])
    return jax.ops.segment_sum(x, ids, 4), jax.ops.segment_max(x, ids, 3), jax.ops.segment_prod(x, ids, 3)


@program
def indexed_updates():
    x = jnp.asarray(DATA)
    return (x.at[1].set(0), x.at[jnp.array([0, 0, 2]), 1].add(2.0), x.at[:, ::2].multiply(3), x.at[0, 1].max(9.0), x[jnp.array([2, 0])],
            jnp.take_along_axis(x, jnp.argsort(x, 1), 1), jnp.where(x > 0, x, 0), x[20], jnp.take(x, 20, axis=0))


@program
def element_types():
    out = []
    for dtype in ("bool", "i1", "i2", "i4", "u1", "u2", "u4", "f2", "f4", "c8", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                  "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4", "float8_e4m3", "int4", "uint4"):
        x = jnp.arange(5).astype(dtype)
        out.append((str(x.dtype), x.astype("f4") if dtype != "c8" else x, x[::-1].astype("i4") if dtype != "c8" else 0))
    return out


@program
def small_floats_round():
    x = jnp.array([0.75, 3.0, 12.0, 5.5, 0.1, 300.0, -2.6])
    types = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e3m4", "bfloat16")
    return [np.asarray(x.astype(t)).view("u1") for t in types]


@program
def products_of_small_types():
    a, b = jnp.arange(12, dtype="i1").reshape(3, 4), jnp.arange(8, dtype="i1").reshape(4, 2)
    f = jnp.asarray(DATA)[:4, :4]
    return (jax.lax.dot(a, b, preferred_element_type=jnp.int32),
            jax.lax.dot(f.astype(ml_dtypes.float8_e4m3fn), f.astype(ml_dtypes.float8_e5m2), preferred_element_type=jnp.float32),
            jnp.dot(f.astype("bfloat16"), f.astype("bfloat16")), jnp.einsum("ij,kj->ik", f, f))


@program
def special_functions():
    s = jax.scipy.special
    return jax.jit(lambda x: (s.gammaln(x), s.erf(x), s.erfinv(x / 4), s.digamma(x), s.betainc(1.5, 2.0, x / 4), s.gammainc(x, 1.0), s.i0(x),
            s.i1e(x), s.zeta(x + 1, 1.0), s.polygamma(1, x), s.logsumexp(x), s.expit(x), s.xlogy(x, x), s.ndtri(x / 4)))(jnp.linspace(0.1, 3, 9))


@program
def images():
    x = jnp.asarray(DATA)[:, :, None]
    return (jax.image.resize(x, (9, 5, 1), "bilinear"), jax.image.resize(x, (3, 4, 1), "cubic"),
            jax.image.resize(x, (12, 16, 1), "nearest"), jax.scipy.ndimage.map_coordinates(x[..., 0], [[1.5], [2.5]], 1))


@program
def interpolation_and_statistics():
    x = jnp.asarray(DATA)
    return (jnp.interp(jnp.array([0.5, 1.5]), jnp.arange(3.0), jnp.arange(3.0) ** 2), jnp.cov(x), jnp.corrcoef(x),
            jax.scipy.stats.norm.logpdf(x), jax.scipy.signal.convolve(x[0], x[1]), jnp.gradient(x[0]))


@program
def double_precision():
    with jax.enable_x64(True):
        x = jnp.arange(5, dtype="f8") / 3
        return x, jnp.exp(x), jnp.linalg.inv(jnp.eye(3) * 3 + jnp.ones((3, 3))), jnp.sum(jnp.arange(10**6) ** 2), str(x.dtype)


@program
def sparse_matrices():
    from jax.experimental import sparse

    dense = jnp.asarray(DATA) * (jnp.asarray(DATA) > 0.5)
    m = sparse.BCOO.fromdense(dense)
    return m @ jnp.ones(8), m.T @ jnp.ones(6), m.todense(), sparse.BCSR.fromdense(dense) @ jnp.ones(8)


@program
def sparse_solve():
    from jax.experimental.sparse import linalg

    data, indices, indptr = jnp.array([4.0, 1, 1, 3, 1, 5]), jnp.array([0, 1, 0, 1, 1, 2]), jnp.array([0, 2, 4, 6])
    return linalg.spsolve(data, indices, indptr, jnp.array([1.0, 2, 3]))
