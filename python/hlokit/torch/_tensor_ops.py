# SPDX-License-Identifier: Apache-2.0
"""Comparisons, places and elementwise functions that the tracer's table does not have, in terms of ops that it has."""

import math
from typing import Any, List, Optional, Sequence

import torch

from ._complex_numbers import RETRIES
from ._decompositions import DECOMPOSITIONS, NotRecorded, decomposes

aten = torch.ops.aten


def _arange(count: int, like: torch.Tensor) -> torch.Tensor:
    return aten.arange.default(count, device=like.device)  # type: ignore[no-any-return]


# ---- results that are Python's: the program waits for them ----


@decomposes("equal")
def _equal(self: torch.Tensor, other: torch.Tensor) -> bool:
    if self.shape != other.shape:
        return False
    return bool(aten.all.default(aten.eq.Tensor(self, other)).item())


@decomposes("allclose")
def _allclose(self: torch.Tensor, other: torch.Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    return bool(aten.all.default(aten.isclose.default(self, other, rtol, atol, equal_nan)).item())


# ---- variances whose correction is not a whole number ----


def _variance(self: torch.Tensor, dim: Any, correction: Any, keepdim: bool) -> torch.Tensor:
    dims = [d % max(self.dim(), 1) for d in dim] if dim else list(range(self.dim()))
    count = math.prod(self.shape[d] for d in dims) if self.dim() else 1
    biased = aten.var.correction(self, dim, correction=0, keepdim=keepdim)
    rest = max(count - (1.0 if correction is None else float(correction)), 0.0)
    return biased * count / rest  # type: ignore[no-any-return]


def _variances(name: str, root: bool, mean: bool) -> None:
    func = getattr(getattr(aten, name, None), "correction", None)
    if func is None:
        return

    def retry(self: torch.Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
        if not isinstance(correction, float):
            return NotImplemented
        value = _variance(self, dim, correction, keepdim)
        value = aten.sqrt.default(value) if root else value
        dims = list(dim) if dim else list(range(self.dim()))
        return (value, aten.mean.dim(self, dims, keepdim)) if mean else value

    RETRIES[func] = retry


_variances("var", False, False)
_variances("std", True, False)
_variances("var_mean", False, True)
_variances("std_mean", True, True)


# ---- places of elements ----


@decomposes("nonzero_static")
def _nonzero_static(self: torch.Tensor, *, size: int, fill_value: int = -1) -> torch.Tensor:
    count = self.numel()
    if self.dim() == 0 or count == 0 or size == 0:
        return aten.full.default([size, self.dim()], fill_value, dtype=torch.int64, device=self.device)  # type: ignore[no-any-return]
    found = aten.ne.Scalar(self, 0).reshape(-1)
    places = aten.where.ScalarOther(found, _arange(count, self), count)
    first = aten.sort.default(places)[0][:size]
    if size > count:
        first = aten.constant_pad_nd.default(first, [0, size - count], count)
    columns: List[torch.Tensor] = []
    rest = first
    for extent in reversed(self.shape):
        columns.append(aten.remainder.Scalar(rest, extent))
        rest = aten.div.Scalar_mode(rest, extent, rounding_mode="floor")
    indices = aten.stack.default(columns[::-1], 1)
    return aten.where.ScalarOther(aten.lt.Scalar(first, count).unsqueeze(1), indices, fill_value)  # type: ignore[no-any-return]


@decomposes("repeat_interleave.Tensor")
def _repeat_interleave(repeats: torch.Tensor, *, output_size: Optional[int] = None) -> torch.Tensor:
    ends = aten.cumsum.default(repeats, 0, dtype=torch.int64)
    if output_size is None:  # the program waits for the sum
        output_size = int(ends[-1].item()) if repeats.numel() else 0
    places = aten.searchsorted.Tensor(ends, _arange(output_size, repeats), right=True)
    return places.to(repeats.dtype)


def _source_places(mask: torch.Tensor) -> torch.Tensor:
    """For each element of a mask how many before it are true."""
    flat = mask.reshape(-1).to(torch.int64)
    return aten.cumsum.default(flat, 0) - flat  # type: ignore[no-any-return]


@decomposes("masked_scatter")
def _masked_scatter(self: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    sizes = torch.broadcast_shapes(self.shape, mask.shape)
    target, mask = self.expand(sizes), mask.expand(sizes)
    if source.dtype != self.dtype:
        raise NotRecorded("masked_scatter: expected self and source to have the same type")
    if source.numel() == 0 or target.numel() == 0:
        return aten.clone.default(target)  # type: ignore[no-any-return]
    places = aten.clamp.default(_source_places(mask), 0, source.numel() - 1)
    taken = aten.index_select.default(source.reshape(-1), 0, places).reshape(sizes)
    return aten.where.self(aten.ne.Scalar(mask, 0), taken, target)  # type: ignore[no-any-return]


@decomposes("masked_scatter_")
def _masked_scatter_(self: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    return aten.copy_.default(self, _masked_scatter(self, mask, source))  # type: ignore[no-any-return]


@decomposes("masked_scatter_backward")
def _masked_scatter_backward(grad_output: torch.Tensor, mask: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    count = math.prod(sizes)
    mask = mask.expand(grad_output.shape)
    places = aten.clamp.default(_source_places(mask), 0, count)
    places = aten.where.ScalarOther(aten.ne.Scalar(mask.reshape(-1), 0), places, count)
    result = aten.new_zeros.default(grad_output, [count + 1])
    return aten.scatter.src(result, 0, places, grad_output.reshape(-1))[:count].reshape(list(sizes))  # type: ignore[no-any-return]


# ---- elementwise ----


@decomposes("frexp.Tensor")
def _frexp(self: torch.Tensor) -> Any:
    wide = self.to(torch.float32) if self.dtype in (torch.float16, torch.bfloat16) else self
    size = aten.abs.default(wide)
    ordinary = aten.logical_and.default(aten.gt.Scalar(size, 0), aten.isfinite.default(wide))
    size = aten.where.ScalarOther(ordinary, size, 0.5)
    exponent = aten.floor.default(aten.log2.default(size)) + 1

    def power(of: torch.Tensor) -> torch.Tensor:
        return aten.pow.Scalar(2.0, of)  # type: ignore[no-any-return]

    def mantissa(of: torch.Tensor) -> torch.Tensor:
        # In two factors, neither of which is out of range.
        half = aten.floor.default(of * 0.5)
        return size * power(-half) * power(half - of)

    # The logarithm is rounded: it may be off by one.
    m = mantissa(exponent)
    exponent = aten.where.self(aten.ge.Scalar(m, 1), exponent + 1, aten.where.self(aten.lt.Scalar(m, 0.5), exponent - 1, exponent))
    m = mantissa(exponent)
    signed = aten.where.self(aten.signbit.default(wide), -m, m)
    exponent = aten.where.ScalarOther(ordinary, exponent, 0)
    return aten.where.self(ordinary, signed, wide).to(self.dtype), exponent.to(torch.int32)


@decomposes("special_ndtri")
def _special_ndtri(self: torch.Tensor) -> torch.Tensor:
    dtype = self.dtype if self.is_floating_point() else torch.get_default_dtype()
    p = self.to(dtype if dtype in (torch.float32, torch.float64) else torch.float32)
    tail = aten.where.self(aten.gt.Scalar(p, 0.5), 1 - p, p)
    inside = aten.logical_and.default(aten.gt.Scalar(tail, 0), aten.le.Scalar(tail, 0.5))
    q = aten.where.ScalarOther(inside, tail, 0.25)
    # Halley's method for the logarithm of the distribution, from its asymptotic value in the tail.
    far = aten.sqrt.default(-2 * aten.log.default(q))
    x = aten.where.self(aten.lt.Scalar(q, 0.02), -(far - (aten.log.default(far) + 0.9189385332046727) / far),
                        aten.erfinv.default(2 * q - 1) * math.sqrt(2))
    target = aten.log.default(q)
    for _ in range(4):
        z = -x / math.sqrt(2)
        scaled = aten.special_erfcx.default(z)
        value = aten.log.default(scaled * 0.5) - z * z  # log of the distribution at x
        ratio = math.sqrt(2 / math.pi) / scaled  # its derivative
        step = (value - target) / ratio
        x = x - step / (1 + 0.5 * step * (x + ratio))
    result = aten.where.self(aten.gt.Scalar(p, 0.5), -x, x)
    result = aten.where.ScalarOther(inside, result, math.nan)
    result = aten.where.ScalarOther(aten.ne.Scalar(p, 0), result, -math.inf)
    return aten.where.ScalarOther(aten.ne.Scalar(p, 1), result, math.inf).to(dtype)  # type: ignore[no-any-return]


@decomposes("special_spherical_bessel_j0")
def _special_spherical_bessel_j0(x: torch.Tensor) -> torch.Tensor:
    dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    y = x.to(dtype if dtype in (torch.float32, torch.float64) else torch.float32)
    ratio = aten.where.ScalarOther(aten.ne.Scalar(y, 0), aten.div.Tensor(aten.sin.default(y), y), 1.0)
    return aten.where.ScalarOther(aten.logical_not.default(aten.isinf.default(y)), ratio, 0.0).to(dtype)  # type: ignore[no-any-return]


@decomposes("special_modified_bessel_i0")
def _special_modified_bessel_i0(self: torch.Tensor) -> torch.Tensor:
    return aten.i0.default(self)  # type: ignore[no-any-return]


@decomposes("special_modified_bessel_i1")
def _special_modified_bessel_i1(self: torch.Tensor) -> torch.Tensor:
    return aten.special_i1.default(self)  # type: ignore[no-any-return]


def _with_numbers() -> None:
    """Overloads of special functions with a number for one of two tensors."""
    kinds = ("chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
             "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
             "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
             "legendre_polynomial_p")

    def register(name: str, first: str, second: str) -> None:
        func: Any = getattr(getattr(aten, name, None), "default", None)

        def tensor_of(value: Any, like: torch.Tensor) -> torch.Tensor:
            dtype = like.dtype if like.is_floating_point() else None
            if dtype is None and not isinstance(value, float):
                dtype = like.dtype
            return aten.scalar_tensor.default(value, dtype=dtype or torch.get_default_dtype(), device=like.device)  # type: ignore[no-any-return]

        decomposes(f"{name}.{first}")(lambda x, n: func(tensor_of(x, n), n))
        decomposes(f"{name}.{second}")(lambda x, n: func(x, tensor_of(n, x)))

    for kind in kinds:
        register(f"special_{kind}", "x_scalar", "n_scalar")
    register("special_zeta", "self_scalar", "other_scalar")


_with_numbers()


@decomposes("squeeze.dims")
def _squeeze(self: torch.Tensor, dim: Sequence[int]) -> torch.Tensor:
    rank = max(self.dim(), 1)
    if not dim:
        return aten.alias.default(self)  # type: ignore[no-any-return]
    for d in sorted((d % rank for d in dim), reverse=True):
        self = aten.squeeze.dim(self, d)
    return self


@decomposes("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def _fake_quantize(
    self: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, fake_quant_enabled: torch.Tensor, quant_min: int, quant_max: int
) -> Any:
    # Whether it is enabled is a value: the program does not wait for it.
    zero = zero_point.to(torch.float32)
    number = aten.add.Tensor(aten.round.default(aten.mul.Tensor(self.to(torch.float32), aten.reciprocal.default(scale))), zero)
    inside = aten.logical_and.default(aten.ge.Scalar(number, quant_min), aten.le.Scalar(number, quant_max))
    value = aten.mul.Tensor(aten.sub.Tensor(aten.clamp.default(number, quant_min, quant_max), zero), scale).to(self.dtype)
    on = aten.ge.Scalar(fake_quant_enabled, 1)
    return aten.where.self(on, value, self), aten.logical_or.default(inside, aten.logical_not.default(on))


# Ops of PyTorch's own decompositions.
if hasattr(torch.ops.prims, "squeeze"):
    DECOMPOSITIONS[torch.ops.prims.squeeze.default] = lambda a, dimensions: aten.squeeze.dims(a, list(dimensions))
if hasattr(torch.ops.prims, "view_of"):
    DECOMPOSITIONS[torch.ops.prims.view_of.default] = lambda a: aten.alias.default(a)
