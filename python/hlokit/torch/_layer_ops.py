# SPDX-License-Identifier: Apache-2.0
"""Layers and their derivatives that the tracer's table does not have, in terms of ops that it has."""

import math
from typing import Any, Callable, List, Optional, Sequence, Tuple

import torch

from hlokit import _hlokit

from ._decompositions import NotRecorded, decomposes
from ._tensor import lazy_of, upload

aten = torch.ops.aten


def _near(value: torch.Tensor, like: Any) -> torch.Tensor:
    """A tensor of the host on the device of another."""
    return upload(value, _hlokit._lazy_session(lazy_of(like)), _hlokit._lazy_ordinal(lazy_of(like)))


# ---- bags of embeddings ----


def _bags(indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """The number of the bag of each index."""
    places = aten.arange.default(indices.shape[0], device=indices.device)
    return aten.searchsorted.Tensor(offsets.to(torch.int64), places, right=True) - 1  # type: ignore[no-any-return]


@decomposes("_embedding_bag_backward")
def _embedding_bag_backward(
    grad: torch.Tensor,
    indices: torch.Tensor,
    offsets: torch.Tensor,
    offset2bag: torch.Tensor,
    bag_size: torch.Tensor,
    maximum: torch.Tensor,
    count: int,
    by_frequency: bool,
    mode: int,
    sparse: bool,
    weights: Optional[torch.Tensor],
    padding: int = -1,
) -> torch.Tensor:
    if sparse:
        raise NotRecorded("sparse gradients")
    bags = _bags(indices, offsets[: grad.shape[0]])
    return _bag_gradient(grad, indices, bags, maximum, count, by_frequency, mode, weights, padding)


@decomposes("_embedding_bag_dense_backward")
def _embedding_bag_dense_backward(
    grad: torch.Tensor,
    indices: torch.Tensor,
    offset2bag: torch.Tensor,
    bag_size: torch.Tensor,
    maximum: torch.Tensor,
    count: int,
    by_frequency: bool,
    mode: int,
    weights: Optional[torch.Tensor],
    padding: int = -1,
) -> torch.Tensor:
    if offset2bag.numel() != indices.numel():
        raise NotRecorded("no bags of indices")
    return _bag_gradient(grad, indices, offset2bag, maximum, count, by_frequency, mode, weights, padding)


def _bag_gradient(
    grad: torch.Tensor, indices: torch.Tensor, bags: torch.Tensor, maximum: torch.Tensor, count: int, by_frequency: bool, mode: int,
    weights: Optional[torch.Tensor], padding: int
) -> torch.Tensor:
    """The gradient of the table, given the bag of each index."""
    result = aten.new_zeros.default(grad, [count, grad.shape[1]])
    if grad.numel() == 0 or indices.numel() == 0:
        return result  # type: ignore[no-any-return]
    bags = bags.to(torch.int64)
    if mode == 2:
        used = aten.ge.Scalar(maximum, 0)
        places = aten.where.ScalarOther(used, maximum, 0).to(torch.int64)
        # An empty bag has no largest element.
        sizes = aten.gt.Scalar(_counts(bags, grad.shape[0]), 0).unsqueeze(1)
        added = aten.where.ScalarOther(aten.logical_and.default(used, sizes), grad, 0.0)
        return aten.scatter_add.default(result, 0, places, added)  # type: ignore[no-any-return]
    added = aten.index_select.default(grad, 0, bags)
    if weights is not None:
        added = added * weights.unsqueeze(1)
    used = aten.ne.Scalar(indices, padding) if padding >= 0 else aten.ge.Scalar(indices, 0)
    if mode == 1:
        sizes = aten.scatter_add.default(aten.new_zeros.default(bags, [grad.shape[0]]), 0, bags, used.to(bags.dtype))
        added = added / aten.index_select.default(aten.clamp.default(sizes, 1), 0, bags).to(grad.dtype).unsqueeze(1)
    if by_frequency:
        numbers = aten.index_select.default(_counts(indices.to(torch.int64), count), 0, indices)
        added = added / numbers.to(grad.dtype).unsqueeze(1)
    added = aten.where.ScalarOther(used.unsqueeze(1), added, 0.0)
    return aten.index_add.default(result, 0, indices, added)  # type: ignore[no-any-return]


def _counts(places: torch.Tensor, count: int) -> torch.Tensor:
    """How often each place occurs."""
    return aten.scatter_add.default(aten.new_zeros.default(places, [count]), 0, places, aten.ones_like.default(places))  # type: ignore[no-any-return]


@decomposes("_embedding_bag_per_sample_weights_backward")
def _embedding_bag_per_sample_weights_backward(
    grad: torch.Tensor, weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor, offset2bag: torch.Tensor,
    mode: int, padding_idx: int = -1
) -> torch.Tensor:
    if indices.numel() == 0:
        return aten.new_zeros.default(grad, [0])  # type: ignore[no-any-return]
    bags = _bags(indices, offsets[: grad.shape[0]])
    products = aten.index_select.default(grad, 0, bags) * aten.index_select.default(weight, 0, indices)
    result = aten.sum.dim_IntList(products, [1])
    return aten.where.ScalarOther(aten.ne.Scalar(indices, padding_idx), result, 0.0)  # type: ignore[no-any-return]


@decomposes("embedding_renorm")
def _embedding_renorm(self: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float) -> torch.Tensor:
    norms = aten.linalg_vector_norm.default(self, norm_type, [1], True)
    used = aten.gt.Scalar(_counts(indices.reshape(-1).to(torch.int64), self.shape[0]), 0).unsqueeze(1)
    larger = aten.logical_and.default(used, aten.gt.Scalar(norms, max_norm))
    factor = aten.where.ScalarOther(larger, max_norm / (norms + 1e-7), 1.0)
    return self * factor


@decomposes("embedding_renorm_")
def _embedding_renorm_(self: torch.Tensor, indices: torch.Tensor, max_norm: float, norm_type: float) -> torch.Tensor:
    return aten.copy_.default(self, _embedding_renorm(self, indices, max_norm, norm_type))  # type: ignore[no-any-return]


# ---- resizing with a filter as wide as a pixel of the smaller image ----


def _triangle(x: torch.Tensor) -> torch.Tensor:
    return (1 - x.abs()).clamp(min=0)


def _cubic(x: torch.Tensor) -> torch.Tensor:
    a, x = -0.5, x.abs()
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = (((x - 5) * x + 8) * x - 4) * a
    return torch.where(x < 1, inner, torch.where(x < 2, outer, torch.zeros_like(x)))


def _lanczos(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x.abs() < 3, torch.sinc(x) * torch.sinc(x / 3), torch.zeros_like(x))


def _filter_matrix(
    size: int, result: int, corners: bool, scale: Optional[float], shape: Callable[[torch.Tensor], torch.Tensor], width: int,
    dtype: torch.dtype
) -> torch.Tensor:
    """The weight of each of `size` pixels in each of `result` ones, on the host."""
    if corners:
        step = (size - 1) / (result - 1) if result > 1 else 0.0
    else:
        step = 1 / scale if scale is not None and scale > 0 else size / result
    support = width / 2 * max(step, 1.0)
    inverse = 1 / step if step >= 1 else 1.0
    centers = step * (torch.arange(result, dtype=torch.float64) + 0.5)
    low = (centers - support + 0.5).to(torch.int64).clamp(min=0)
    high = (centers + support + 0.5).to(torch.int64).clamp(max=size)
    places = torch.arange(size)
    weights = shape((places + 0.5 - centers.unsqueeze(1)) * inverse)
    used = (places >= low.unsqueeze(1)) & (places < high.unsqueeze(1))
    weights = torch.where(used, weights, torch.zeros_like(weights))
    total = weights.sum(1, keepdim=True)
    return (weights / torch.where(total != 0, total, torch.ones_like(total))).to(dtype)


def _filters(name: str, shape: Callable[[torch.Tensor], torch.Tensor], width: int) -> None:
    def matrices(like: torch.Tensor, given: Sequence[int], wanted: Sequence[int], corners: bool, scales: Sequence[Any]) -> Any:
        if not like.is_floating_point():
            raise NotRecorded("integers are rounded at each step")
        wide = torch.float64 if like.dtype == torch.float64 else torch.float32
        return wide, [_near(_filter_matrix(n, m, corners, s, shape, width, wide), like) for n, m, s in zip(given, wanted, scales)]

    def forward(
        self: torch.Tensor, output_size: Sequence[int], align_corners: bool, scales_h: Any = None, scales_w: Any = None
    ) -> torch.Tensor:
        wide, (rows, columns) = matrices(self, self.shape[2:], output_size, align_corners, (scales_h, scales_w))
        middle = aten.matmul.default(self.to(wide), columns.transpose(0, 1))
        return aten.matmul.default(rows, middle).to(self.dtype)  # type: ignore[no-any-return]

    def backward(
        grad: torch.Tensor, output_size: Sequence[int], input_size: Sequence[int], align_corners: bool, scales_h: Any = None,
        scales_w: Any = None
    ) -> torch.Tensor:
        wide, (rows, columns) = matrices(grad, input_size[2:], output_size, align_corners, (scales_h, scales_w))
        middle = aten.matmul.default(grad.to(wide), columns)
        return aten.matmul.default(rows.transpose(0, 1), middle).to(grad.dtype)  # type: ignore[no-any-return]

    def by_factors(input: torch.Tensor, output_size: Any, align_corners: bool, scale_factors: Any) -> torch.Tensor:
        scales: List[Any] = [None, None]
        if output_size is None:
            scales = list(scale_factors)
            output_size = [int(math.floor(n * s)) for n, s in zip(input.shape[2:], scales)]
        return forward(input, output_size, align_corners, *scales)

    decomposes(f"_upsample_{name}2d_aa")(forward)
    decomposes(f"_upsample_{name}2d_aa.vec")(by_factors)
    decomposes(f"_upsample_{name}2d_aa_backward")(backward)


_filters("bilinear", _triangle, 2)
_filters("bicubic", _cubic, 4)
_filters("lanczos", _lanczos, 6)


# ---- pools of windows at random places ----


def _starts(samples: torch.Tensor, size: int, count: int, window: int) -> torch.Tensor:
    """Where each of `count` windows begins, for samples of any sizes: [..., count]."""
    last = size - window
    if count == 1:
        return aten.full.default([*samples.shape, 1], last, dtype=torch.int64, device=samples.device)  # type: ignore[no-any-return]
    alpha = last / (count - 1)
    numbers = aten.arange.default(count, device=samples.device)
    line = samples.unsqueeze(-1)
    alpha = float(torch.tensor(alpha, dtype=samples.dtype)) if samples.dtype in (torch.float32, torch.float64) else alpha
    places = ((numbers.to(samples.dtype) + line) * alpha).to(torch.int64) - (line * alpha).to(torch.int64)
    return aten.where.ScalarOther(aten.lt.Scalar(numbers, count - 1), places, last)  # type: ignore[no-any-return]


@decomposes("fractional_max_pool3d")
def _fractional_max_pool3d(
    self: torch.Tensor, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor]:
    batched = self.dim() == 5
    x = self if batched else self.unsqueeze(0)
    windows, sizes = [list(v) * 3 if len(v) == 1 else list(v) for v in (kernel_size, output_size)]
    extent = list(x.shape[2:])
    if x.numel() == 0 or 0 in sizes:
        raise NotRecorded("no elements")
    samples = random_samples
    places = aten.zeros.default([*x.shape[:2], 1, 1, 1, 1, 1, 1], dtype=torch.int64, device=x.device)
    for d in range(3):
        begin = _starts(samples[:, :, d], extent[d], sizes[d], windows[d])
        offsets = aten.arange.default(windows[d], device=x.device)
        at = begin.unsqueeze(-1) + offsets
        line = [*x.shape[:2], 1, 1, 1, 1, 1, 1]
        line[2 + d], line[5 + d] = sizes[d], windows[d]
        places = places * extent[d] + at.reshape(line)
    flat = places.reshape(*x.shape[:2], math.prod(sizes), math.prod(windows))
    values = aten.gather.default(x.flatten(2), 2, flat.flatten(2)).reshape(list(flat.shape))
    best, where = aten.max.dim(values, -1)
    indices = aten.gather.default(flat, -1, where.unsqueeze(-1)).squeeze(-1)
    shape = [*x.shape[:2], *sizes]
    best, indices = best.reshape(shape), indices.reshape(shape)
    return (best, indices) if batched else (best.squeeze(0), indices.squeeze(0))


def _pool_gradient(spatial: int) -> Callable[..., torch.Tensor]:
    def backward(
        grad_output: torch.Tensor, self: torch.Tensor, kernel_size: Sequence[int], output_size: Sequence[int], indices: torch.Tensor
    ) -> torch.Tensor:
        leading = list(self.shape[:-spatial])
        flat = aten.new_zeros.default(grad_output, [*leading, math.prod(self.shape[-spatial:])])
        if grad_output.numel() == 0:
            return flat.reshape(list(self.shape))  # type: ignore[no-any-return]
        sizes = [*leading, math.prod(indices.shape[-spatial:])]
        added = aten.scatter_add.default(flat, -1, indices.reshape(sizes), grad_output.reshape(sizes))
        return added.reshape(list(self.shape))  # type: ignore[no-any-return]

    return backward


decomposes("fractional_max_pool2d_backward")(_pool_gradient(2))
decomposes("fractional_max_pool3d_backward")(_pool_gradient(3))


# ---- lengths of sequences in tensors determine sizes: the program waits for them ----


def _numbers(lengths: torch.Tensor) -> List[int]:
    return [int(n) for n in lengths.cpu().tolist()]


@decomposes("_ctc_loss.Tensor")
def _ctc_loss(
    log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor, blank: int = 0,
    zero_infinity: bool = False
) -> Any:
    return aten._ctc_loss.default(log_probs, targets, _numbers(input_lengths), _numbers(target_lengths), blank, zero_infinity)


@decomposes("_ctc_loss_backward.Tensor")
def _ctc_loss_backward(
    grad: torch.Tensor, log_probs: torch.Tensor, targets: torch.Tensor, input_lengths: torch.Tensor, target_lengths: torch.Tensor,
    neg_log_likelihood: torch.Tensor, log_alpha: torch.Tensor, blank: int, zero_infinity: bool = False
) -> Any:
    lengths = _numbers(input_lengths), _numbers(target_lengths)
    return aten._ctc_loss_backward.default(
        grad, log_probs, targets, *lengths, neg_log_likelihood, log_alpha, blank, zero_infinity)


# ---- attention ----


@decomposes("_scaled_dot_product_flash_attention_for_cpu_backward")
def _attention_backward(
    grad_out: torch.Tensor, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, out: torch.Tensor, logsumexp: torch.Tensor,
    dropout_p: float, is_causal: bool, *, attn_mask: Optional[torch.Tensor] = None, scale: Optional[float] = None
) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if dropout_p > 0:
        raise NotRecorded("dropout")
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    g, q, k, v, o = (t.to(wide) for t in (grad_out, query, key, value, out))
    scores = aten.matmul.default(q, k.transpose(-1, -2)) * scale
    if attn_mask is not None:
        mask = attn_mask.to(wide) if attn_mask.dtype != torch.bool else aten.where.ScalarOther(
            attn_mask, aten.zeros_like.default(attn_mask, dtype=wide), -math.inf)
        scores = scores + mask
    probability = aten.exp.default(scores - logsumexp.to(wide).unsqueeze(-1))
    if is_causal:
        probability = aten.tril.default(probability)
    # A query whose keys are all masked attends to nothing.
    probability = aten.where.ScalarOther(aten.isfinite.default(probability), probability, 0.0)
    slopes = aten.matmul.default(g, v.transpose(-1, -2)) - aten.sum.dim_IntList(g * o, [-1], True)
    slopes = probability * slopes * scale
    grads = (aten.matmul.default(slopes, k), aten.matmul.default(slopes.transpose(-1, -2), q),
             aten.matmul.default(probability.transpose(-1, -2), g))
    return tuple(t.to(query.dtype) for t in grads)  # type: ignore[return-value]
