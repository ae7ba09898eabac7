# SPDX-License-Identifier: Apache-2.0
"""Linear algebra that the tracer's table does not have, in terms of decompositions that it has."""

from typing import Any, Optional, Tuple

import torch

from ._decompositions import NotRecorded, _Row, decomposes

aten = torch.ops.aten

_permutation_of = _Row("xla::pivots_to_permutation")


def _adjoint(matrix: torch.Tensor) -> torch.Tensor:
    swapped = matrix.transpose(-1, -2)
    return aten.conj_physical.default(swapped) if swapped.is_complex() else swapped  # type: ignore[no-any-return]


def _eye(rows: int, columns: int, like: torch.Tensor) -> torch.Tensor:
    return aten.eye.m(rows, columns, dtype=like.dtype, device=like.device)  # type: ignore[no-any-return]


def _permutation_matrix(pivots: torch.Tensor, rows: int, like: torch.Tensor) -> torch.Tensor:
    """P of A = P L U."""
    order = _permutation_of(pivots, rows)
    places = aten.arange.default(rows, device=like.device)
    return aten.eq.Tensor(places.unsqueeze(-1), order.unsqueeze(-2)).to(like.dtype)  # type: ignore[no-any-return]


@decomposes("lu_unpack")
def _lu_unpack(LU_data: torch.Tensor, LU_pivots: torch.Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    none = aten.new_zeros.default(LU_data, [0])
    P, L, U = none, none, none
    if unpack_pivots:
        P = _permutation_matrix(LU_pivots, m, LU_data)
    if unpack_data:
        L = aten.tril.default(LU_data[..., :k], -1) + _eye(m, k, LU_data)
        U = aten.triu.default(LU_data[..., :k, :])
    return P, L, U


@decomposes("linalg_lu")
def _linalg_lu(A: torch.Tensor, *, pivot: bool = True) -> Any:
    if not pivot:
        raise NotRecorded("LU without pivots")
    LU, pivots, _ = aten.linalg_lu_factor_ex.default(A)
    return _lu_unpack(LU, pivots)


def _triangular(A: torch.Tensor, B: torch.Tensor, upper: bool, unit: bool = False) -> torch.Tensor:
    return aten.linalg_solve_triangular.default(A, B, upper=upper, left=True, unitriangular=unit)  # type: ignore[no-any-return]


@decomposes("linalg_lu_solve")
def _linalg_lu_solve(
    LU: torch.Tensor, pivots: torch.Tensor, B: torch.Tensor, *, left: bool = True, adjoint: bool = False
) -> torch.Tensor:
    if not left:
        return _adjoint(_linalg_lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint))
    P = _permutation_matrix(pivots, LU.shape[-1], LU)
    if not adjoint:
        y = _triangular(LU, aten.matmul.default(P.transpose(-1, -2), B), False, True)
        return _triangular(LU, y, True)
    y = _triangular(_adjoint(LU), B, False)
    return aten.matmul.default(P, _triangular(_adjoint(LU), y, True, True))  # type: ignore[no-any-return]


def _tolerance(A: torch.Tensor, largest: torch.Tensor, atol: Optional[torch.Tensor], rtol: Optional[torch.Tensor]) -> torch.Tensor:
    """How large a singular value must be, for each matrix."""
    default = torch.finfo(A.dtype).eps * max(A.shape[-2:])
    if rtol is None and atol is None:
        return largest * default
    if rtol is None:
        assert atol is not None
        relative = aten.where.ScalarOther(aten.gt.Scalar(atol, 0), aten.zeros_like.default(atol), default)
        return aten.maximum.default(atol.to(largest.dtype), largest * relative.to(largest.dtype))  # type: ignore[no-any-return]
    bound = largest * rtol.to(largest.dtype)
    return bound if atol is None else aten.maximum.default(atol.to(largest.dtype), bound)  # type: ignore[no-any-return]


@decomposes("linalg_pinv.atol_rtol_tensor")
def _linalg_pinv(
    self: torch.Tensor, *, atol: Optional[torch.Tensor] = None, rtol: Optional[torch.Tensor] = None, hermitian: bool = False
) -> torch.Tensor:
    if self.numel() == 0:
        return aten.new_zeros.default(self, [*self.shape[:-2], self.shape[-1], self.shape[-2]])  # type: ignore[no-any-return]
    if hermitian:
        values, Q = aten._linalg_eigh.default(self)
        left, right, sizes = Q, _adjoint(Q), aten.abs.default(values)
    else:
        U, values, Vh = aten._linalg_svd.default(self)
        left, right, sizes = _adjoint(Vh), _adjoint(U), values
    largest = aten.amax.default(sizes, [-1], True)
    bound = _tolerance(self, largest.squeeze(-1), atol, rtol)
    inverse = aten.where.ScalarOther(aten.gt.Tensor(sizes, bound.unsqueeze(-1)), aten.reciprocal.default(values), 0.0)
    return aten.matmul.default(left * inverse.to(self.dtype).unsqueeze(-2), right)  # type: ignore[no-any-return]


@decomposes("linalg_matrix_exp")
def _linalg_matrix_exp(self: torch.Tensor) -> torch.Tensor:
    # A polynomial of the matrix divided by a power of two, as many squarings, of at most 2^24.
    if self.numel() == 0:
        return aten.clone.default(self)  # type: ignore[no-any-return]
    if self.dtype in (torch.float16, torch.bfloat16):
        return _linalg_matrix_exp(self.to(torch.float32)).to(self.dtype)
    squarings, terms = 24, 18
    n = self.shape[-1]
    norm = aten.amax.default(aten.sum.dim_IntList(aten.abs.default(self), [-2]), [-1])
    count = aten.clamp.default(aten.ceil.default(aten.log2.default(norm)), 0, squarings)
    scaled = self * aten.pow.Scalar(2.0, -count).to(self.dtype).unsqueeze(-1).unsqueeze(-1)
    identity = _eye(n, n, self)
    result = identity + scaled / terms
    for k in range(terms - 1, 0, -1):
        result = identity + aten.matmul.default(scaled, result) / k
    most = count.unsqueeze(-1).unsqueeze(-1)
    for k in range(squarings):
        result = aten.where.self(aten.gt.Scalar(most, k), aten.matmul.default(result, result), result)
    return result


@decomposes("linalg_lstsq")
def _linalg_lstsq(self: torch.Tensor, b: torch.Tensor, rcond: Optional[float] = None, *, driver: Optional[str] = None) -> Any:
    if driver not in (None, "gelsy", "gels", "gelss", "gelsd") or self.numel() == 0 or b.numel() == 0:
        raise NotRecorded(f"the driver {driver}")
    m, n = self.shape[-2:]
    vector = b.dim() == 1 or (self.dim() - 1 == b.dim() and tuple(b.shape) == tuple(self.shape[:-1]))
    right = b.unsqueeze(-1) if vector else b
    U, s, Vh = aten._linalg_svd.default(self)
    bound = aten.amax.default(s, [-1], True) * (rcond if rcond is not None else torch.finfo(self.dtype).eps * max(m, n))
    kept = aten.gt.Tensor(s, bound)
    inverse = aten.where.ScalarOther(kept, aten.reciprocal.default(s), 0.0).to(self.dtype).unsqueeze(-1)
    solution = aten.matmul.default(_adjoint(Vh), inverse * aten.matmul.default(_adjoint(U), right))
    rank = aten.sum.dim_IntList(kept, [-1])
    real = s.dtype
    residuals = aten.zeros.default([0], dtype=real, device=self.device)
    # Whether there are residuals is a value, except of gelsy, PyTorch's default on the CPU, which has none: the program waits for it.
    if m > n and driver not in (None, "gelsy") and (driver == "gels" or bool(aten.all.default(aten.eq.Scalar(rank, n)).item())):
        error = aten.abs.default(aten.matmul.default(self, solution) - right)
        residuals = aten.sum.dim_IntList(error * error, [-2])
    values = s if driver in ("gelss", "gelsd") else aten.zeros.default([0], dtype=real, device=self.device)
    if driver == "gels":  # which takes the matrix to have the full rank
        rank = aten.zeros.default([0], dtype=torch.int64, device=self.device)
    return solution.squeeze(-1) if vector else solution, residuals, rank, values


@decomposes("linalg_polar")
def _linalg_polar(A: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    if A.numel() == 0 or A.shape[-2] < A.shape[-1]:
        raise NotRecorded("more columns than rows")
    U, s, Vh = aten._linalg_svd.default(A)
    V = _adjoint(Vh)
    return aten.matmul.default(U, Vh), aten.matmul.default(V * s.to(A.dtype).unsqueeze(-2), Vh)


@decomposes("linalg_matrix_sqrth")
def _linalg_matrix_sqrth(self: torch.Tensor) -> torch.Tensor:
    if self.numel() == 0:
        return aten.clone.default(self)  # type: ignore[no-any-return]
    values, Q = aten._linalg_eigh.default(self)
    return aten.matmul.default(Q * aten.sqrt.default(values).to(self.dtype).unsqueeze(-2), _adjoint(Q))  # type: ignore[no-any-return]


@decomposes("ormqr")
def _ormqr(
    self: torch.Tensor, input2: torch.Tensor, input3: torch.Tensor, left: bool = True, transpose: bool = False
) -> torch.Tensor:
    # All columns of Q, by reflectors that do nothing.
    rows, count = self.shape[-2], input2.shape[-1]
    if input3.numel() == 0 or count == 0:
        return aten.clone.default(input3)  # type: ignore[no-any-return]
    if count > min(self.shape[-2:]):
        raise NotRecorded("more factors than reflectors")
    reflectors = aten.constant_pad_nd.default(self[..., :count], [0, rows - count])
    Q = aten.linalg_householder_product.default(reflectors, input2)
    Q = _adjoint(Q) if transpose else Q
    return aten.matmul.default(Q, input3) if left else aten.matmul.default(input3, Q)  # type: ignore[no-any-return]


# ---- products of floats of 8 bits ----


@decomposes("_scaled_mm")
def _scaled_mm(
    self: torch.Tensor, mat2: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, bias: Optional[torch.Tensor] = None,
    scale_result: Optional[torch.Tensor] = None, out_dtype: Optional[torch.dtype] = None, use_fast_accum: bool = False
) -> torch.Tensor:
    rows, columns = self.shape[0], mat2.shape[1]
    for scale, whole in ((scale_a, [rows, 1]), (scale_b, [1, columns])):
        if scale.numel() != 1 and list(scale.shape) != whole:
            raise NotRecorded("scales of blocks")
    if scale_result is not None and out_dtype is not None and out_dtype.itemsize == 1:
        raise NotRecorded("a scaled result of 8 bits")
    factors = [s.reshape([]) if s.numel() == 1 else s for s in (scale_a, scale_b)]
    product = aten.mm.default(self.to(torch.float32), mat2.to(torch.float32)) * factors[0] * factors[1]
    if bias is not None:
        product = product + bias.to(torch.float32)
    dtype = out_dtype or self.dtype
    if dtype.itemsize == 1 and dtype != torch.float8_e5m2:  # types without infinity
        product = aten.clamp.default(product, -torch.finfo(dtype).max, torch.finfo(dtype).max)
    return product.to(dtype)


@decomposes("_scaled_mm_v2")
def _scaled_mm_v2(
    self: torch.Tensor, mat2: torch.Tensor, scale_a: Any, recipe_a: Any, swizzle_a: Any, scale_b: Any, recipe_b: Any, swizzle_b: Any,
    bias: Optional[torch.Tensor], out_dtype: Optional[torch.dtype], contraction_dim: Any = (), use_fast_accum: bool = False
) -> torch.Tensor:
    # Recipes 0 and 1 are of the whole matrix and of its rows.
    plain = all(len(s) == 1 and list(map(int, r)) in ([0], [1]) and set(map(int, z)) <= {0}
                for s, r, z in ((scale_a, recipe_a, swizzle_a), (scale_b, recipe_b, swizzle_b)))
    if not plain or len(contraction_dim):
        raise NotRecorded("scales of blocks")
    return _scaled_mm(self, mat2, scale_a[0], scale_b[0], bias, None, out_dtype, use_fast_accum)


# ---- products with integers ----


@decomposes("_int_mm")
def _int_mm(self: torch.Tensor, mat2: torch.Tensor) -> torch.Tensor:
    if self.dtype != torch.int8 or mat2.dtype not in (torch.int8, torch.uint8):
        raise NotRecorded("_int_mm: expected 8-bit integers")
    return aten.mm.default(self.to(torch.int32), mat2.to(torch.int32))  # type: ignore[no-any-return]


@decomposes("_weight_int8pack_mm")
def _weight_int8pack_mm(self: torch.Tensor, mat2: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    if mat2.dtype != torch.int8:
        raise NotRecorded("_weight_int8pack_mm: expected weights of 8-bit integers")
    product = aten.mm.default(self.float(), mat2.float().t())
    return aten.mul.Tensor(product, scales.float()).to(self.dtype)  # type: ignore[no-any-return]
