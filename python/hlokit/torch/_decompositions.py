# SPDX-License-Identifier: Apache-2.0
"""Ops that the tracer's table does not have, in terms of those that it has."""

from typing import Any, Callable, Dict, List, Optional, Sequence

import torch

from hlokit import _hlokit

from . import _plans
from ._tensor import fetch, is_lazy, lazy_of, upload

aten = torch.ops.aten

# By overload; in place of PyTorch's own decompositions.
DECOMPOSITIONS: Dict[Any, Callable[..., Any]] = {}


def decomposes(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function for overloads, "aminmax" or "count_nonzero.dim_IntList", that this PyTorch has."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            base, _, overload = name.partition(".")
            func = getattr(getattr(aten, base, None), overload or "default", None)
            if func is not None:
                DECOMPOSITIONS[func] = function
        return function

    return register


class NotRecorded(Exception):
    """The tracer does not take a call that a decomposition makes."""


class _Row:
    """A row of the tracer's table as a function of positional arguments."""

    def __init__(self, name: str):
        row = _plans.ROWS[name]
        count = len(row.arguments)
        returns_list = row.list
        _hlokit._torch_plan(self, row.number, 0, list(range(count)), [], [], returns_list, row.view)
        self.name = name

    def __call__(self, *args: Any) -> Any:
        value, reason = _hlokit._torch_try(self, args, {})
        if reason is not None:
            raise NotRecorded(f"{self.name}: {reason}")
        return value


# Derivatives solve with the factors that these ops save beside their results: those of the matrix or, in some versions for
# some ops, of its transpose if it is contiguous, as lazy tensors always are, and not complex. PyTorch's own kernels on the
# CPU do what its derivatives expect.


def _saves_transposed(func: Any, place: int, *args: Any) -> bool:
    """Whether the result at a place, the factors of a real contiguous matrix on the CPU, is that of its transpose."""
    try:
        factors = func(torch.tensor([[1.0, 2.0], [4.0, 3.0]]), *args)[place]
    except RuntimeError:  # built without LAPACK: the derivatives do not run either
        return False
    return float(factors[0, 0]) == 2.0  # the largest of its first column


def _transposed(matrix: torch.Tensor) -> torch.Tensor:
    return matrix if matrix.is_complex() else matrix.transpose(-1, -2)


_det = _Row("aten::_linalg_det")
_slogdet = _Row("aten::_linalg_slogdet")
_solve_ex = _Row("aten::_linalg_solve_ex")
_lu_factor_ex = _Row("aten::linalg_lu_factor_ex")


def _factors_of_transposed() -> None:
    """Registers ops whose rows in the table return the factors of the matrix where PyTorch expects others."""
    if hasattr(aten, "_linalg_det") and _saves_transposed(aten._linalg_det.default, 1):
        DECOMPOSITIONS[aten._linalg_det.default] = lambda A: _det(_transposed(A))
    if hasattr(aten, "_linalg_slogdet") and _saves_transposed(aten._linalg_slogdet.default, 2):
        DECOMPOSITIONS[aten._linalg_slogdet.default] = lambda A: _slogdet(_transposed(A))
    if hasattr(aten, "_linalg_solve_ex") and _saves_transposed(aten._linalg_solve_ex.default, 1, torch.eye(2)):
        DECOMPOSITIONS[aten._linalg_solve_ex.default] = _linalg_solve_ex


def _linalg_solve_ex(A: torch.Tensor, B: torch.Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    result, _, _, info = _solve_ex(A, B, left, check_errors)
    factors, pivots, _ = _lu_factor_ex(_transposed(A))
    return result, factors, pivots, info


_factors_of_transposed()


@decomposes("rrelu_with_noise")
def _rrelu_with_noise(
    self: torch.Tensor, noise: torch.Tensor, lower: Any = 0.125, upper: Any = 1 / 3, training: bool = False, generator: Any = None
) -> torch.Tensor:
    # The derivative reads the slopes from `noise`, which not every version declares as written.
    if not training:
        return aten.leaky_relu.default(self, (lower + upper) / 2)  # type: ignore[no-any-return]
    drawn = aten.uniform_.default(aten.empty_like.default(self), lower, upper)
    slopes = aten.where.self(aten.le.Scalar(self, 0), drawn, aten.ones_like.default(self))
    noise.copy_(slopes)
    return self * slopes


@decomposes("aminmax")
def _aminmax(self: torch.Tensor, *, dim: Optional[int] = None, keepdim: bool = False) -> Any:
    dims = [] if dim is None else [dim]
    return aten.amin.default(self, dims, keepdim), aten.amax.default(self, dims, keepdim)


@decomposes("count_nonzero.dim_IntList")
def _count_nonzero(self: torch.Tensor, dim: Sequence[int]) -> torch.Tensor:
    return aten.sum.dim_IntList(aten.ne.Scalar(self, 0), list(dim))


@decomposes("squeeze.dims")
def _squeeze(self: torch.Tensor, dim: Sequence[int]) -> torch.Tensor:
    for place in sorted((d % max(self.dim(), 1) for d in dim), reverse=True):
        self = aten.squeeze.dim(self, place)
    return self if dim else aten.alias.default(self)


@decomposes("vdot")
def _vdot(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return aten.dot.default(aten.conj_physical.default(self) if self.is_complex() else self, other)


_conjugate = _Row("aten::conj_physical")


@decomposes("_conj_physical")
def _conj_physical(self: torch.Tensor) -> torch.Tensor:
    return _conjugate(self)  # type: ignore[no-any-return]


@decomposes("narrow_copy")
def _narrow_copy(self: torch.Tensor, dim: int, start: int, length: int) -> torch.Tensor:
    return aten.clone.default(aten.slice.Tensor(self, dim, start, start + length))


@decomposes("_trilinear")
def _trilinear(
    i1: torch.Tensor,
    i2: torch.Tensor,
    i3: torch.Tensor,
    expand1: List[int],
    expand2: List[int],
    expand3: List[int],
    sumdim: List[int],
    unroll_dim: int = 1,
) -> torch.Tensor:
    factors = []
    for factor, dims in ((i1, expand1), (i2, expand2), (i3, expand3)):
        for dim in sorted(dims):
            factor = factor.unsqueeze(dim)
        factors.append(factor)
    product = factors[0] * factors[1] * factors[2]
    return aten.sum.dim_IntList(product, list(sumdim), dtype=product.dtype) if sumdim else product


@decomposes("unfold_backward")
def _unfold_backward(grad_in: torch.Tensor, input_sizes: Any, dim: int, size: int, step: int) -> torch.Tensor:
    dim = dim % max(len(input_sizes), 1)
    result = aten.new_zeros.default(grad_in, list(input_sizes))
    if not input_sizes:
        return result + grad_in.sum()
    windows = grad_in.shape[dim]
    device = result.device
    places = torch.arange(windows, device=device).unsqueeze(1) * step + torch.arange(size, device=device)
    values = grad_in.movedim(-1, dim + 1).flatten(dim, dim + 1)
    return result.index_add(dim, places.flatten(), values)


def _upsample(name: str, aligned: bool) -> None:
    """The overload with lists of sizes and factors is the one with numbers."""
    base: Any = getattr(aten, name, None)
    if base is None or not hasattr(base, "vec"):
        return

    def backward(grad: torch.Tensor, output_size: Any, input_size: Any, *rest: Any) -> torch.Tensor:
        spatial = list(grad.shape[2:])
        factors = rest[-1] if output_size is None and rest[-1] is not None else [None] * len(spatial)
        corners = [rest[0]] if aligned else []
        return base.default(grad, spatial, list(input_size), *corners, *factors)  # type: ignore[no-any-return]

    DECOMPOSITIONS[base.vec] = backward


for _dims in ("1d", "2d", "3d"):
    _upsample(f"upsample_nearest{_dims}_backward", False)
    _upsample(f"_upsample_nearest_exact{_dims}_backward", False)
for _name in ("linear1d", "bilinear2d", "bicubic2d", "trilinear3d"):
    _upsample(f"upsample_{_name}_backward", True)


@decomposes("_foreach_zero_")
def _foreach_zero_(self: Sequence[torch.Tensor]) -> None:
    for tensor in self:
        aten.zero_.default(tensor)


@decomposes("_foreach_lerp_.Scalar")
def _foreach_lerp_(self: Sequence[torch.Tensor], tensors1: Sequence[torch.Tensor], weight: Any) -> None:
    for tensor, end in zip(self, tensors1):
        aten.lerp_.Scalar(tensor, end, weight)


@decomposes("_foreach_copy_")
def _foreach_copy_(self: Sequence[torch.Tensor], src: Sequence[torch.Tensor], non_blocking: bool = False) -> None:
    for tensor, value in zip(self, src):
        aten.copy_.default(tensor, value)


@decomposes("resize_as_")
def _resize_as_(self: torch.Tensor, the_template: torch.Tensor, *, memory_format: Any = None) -> torch.Tensor:
    return aten.resize_.default(self, list(the_template.shape))  # type: ignore[no-any-return]


# The ops of SyncBatchNorm. Statistics are of dimension 1.


def _others(input: torch.Tensor) -> List[int]:
    return [dim for dim in range(input.dim()) if dim != 1]


def _along_channels(value: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    return value.reshape([-1 if dim == 1 else 1 for dim in range(input.dim())])


@decomposes("batch_norm_stats")
def _batch_norm_stats(input: torch.Tensor, eps: float) -> Any:
    values, dims = input.float(), _others(input)
    mean = values.mean(dims)
    variance = (values - _along_channels(mean, input)).square().mean(dims)
    return mean, (variance + eps).rsqrt()


@decomposes("batch_norm_gather_stats_with_counts")
def _batch_norm_gather_stats_with_counts(
    input: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    running_mean: Optional[torch.Tensor],
    running_var: Optional[torch.Tensor],
    momentum: float,
    eps: float,
    counts: torch.Tensor,
) -> Any:
    total = counts.sum()
    weights = (counts / total).reshape(-1, 1)
    whole = (mean * weights).sum(0)
    variance = ((invstd.square().reciprocal() - eps + (mean - whole).square()) * weights).sum(0)
    if running_mean is not None:
        running_mean.copy_(running_mean * (1 - momentum) + whole * momentum)
    if running_var is not None:
        running_var.copy_(running_var * (1 - momentum) + variance * (total / (total - 1)) * momentum)
    return whole, (variance + eps).rsqrt()


@decomposes("batch_norm_elemt")
def _batch_norm_elemt(
    input: torch.Tensor,
    weight: Optional[torch.Tensor],
    bias: Optional[torch.Tensor],
    mean: torch.Tensor,
    invstd: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    scale = invstd if weight is None else invstd * weight
    result = (input - _along_channels(mean, input)) * _along_channels(scale, input)
    return (result if bias is None else result + _along_channels(bias, input)).to(input.dtype)


@decomposes("batch_norm_backward_reduce")
def _batch_norm_backward_reduce(
    grad_out: torch.Tensor,
    input: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: Optional[torch.Tensor],
    input_g: bool,
    weight_g: bool,
    bias_g: bool,
) -> Any:
    gradient, dims = grad_out.float(), _others(input)
    sum_dy = gradient.sum(dims)
    sum_dy_xmu = (gradient * (input - _along_channels(mean, input))).sum(dims)
    like = sum_dy.dtype if weight is None else weight.dtype
    return sum_dy, sum_dy_xmu, (sum_dy_xmu * invstd).to(like), sum_dy.to(like)


@decomposes("batch_norm_backward_elemt")
def _batch_norm_backward_elemt(
    grad_out: torch.Tensor,
    input: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: Optional[torch.Tensor],
    sum_dy: torch.Tensor,
    sum_dy_xmu: torch.Tensor,
    count: torch.Tensor,
) -> torch.Tensor:
    total = count.sum()
    centered = (input - _along_channels(mean, input)) * _along_channels(invstd.square() * sum_dy_xmu / total, input)
    scale = invstd if weight is None else invstd * weight
    result = (grad_out - _along_channels(sum_dy / total, input) - centered) * _along_channels(scale, input)
    return result.to(input.dtype)


def _parts(self: torch.Tensor, sizes: Sequence[int], dim: int) -> List[torch.Tensor]:
    result, start = [], 0
    for size in sizes:
        result.append(aten.clone.default(aten.slice.Tensor(self, dim, start, start + size)))
        start += size
    return result


# Parts that PyTorch does not know for views: LSTMs write to them in place.


@decomposes("unsafe_split.Tensor")
def _unsafe_split(self: torch.Tensor, split_size: int, dim: int = 0) -> List[torch.Tensor]:
    count = self.shape[dim]
    return _parts(self, [min(split_size, count - at) for at in range(0, count, split_size)] or [0], dim)


@decomposes("unsafe_split_with_sizes")
def _unsafe_split_with_sizes(self: torch.Tensor, split_sizes: Sequence[int], dim: int = 0) -> List[torch.Tensor]:
    return _parts(self, split_sizes, dim)


@decomposes("_pack_padded_sequence")
def _pack_padded_sequence(input: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> Any:
    if is_lazy(lengths):
        lengths = fetch(lengths)
    if not is_lazy(input):
        return aten._pack_padded_sequence.default(input, lengths, batch_first)
    # The numbers of sequences at each place are on the host, where PyTorch reads them: it packs the places of elements.
    places = torch.arange(input.shape[0] * input.shape[1]).reshape(tuple(input.shape[:2]))
    packed, batch_sizes = aten._pack_padded_sequence.default(places, lengths, batch_first)
    indices = upload(packed, _hlokit._lazy_session(lazy_of(input)), _hlokit._lazy_ordinal(lazy_of(input)))
    return aten.index_select.default(input.flatten(0, 1), 0, indices), batch_sizes
