# SPDX-License-Identifier: Apache-2.0
"""Histograms of one and of several dimensions: of each element the last bin whose edge it has reached."""

import math
from typing import Any, List, Optional, Sequence, Tuple

import torch

from ._decompositions import decomposes

aten = torch.ops.aten


def _edges(values: torch.Tensor, bins: int, given: Optional[Sequence[float]]) -> torch.Tensor:
    """Edges of equal bins over a range, or over that of the values."""
    if given is None and values.numel():
        low, high = aten.amin.default(values), aten.amax.default(values)
    else:
        low, high = [aten.scalar_tensor.default(v, dtype=values.dtype, device=values.device) for v in (given or (0.0, 1.0))]
    same = aten.eq.Tensor(low, high)
    low, high = aten.where.self(same, low - 0.5, low), aten.where.self(same, high + 0.5, high)
    # From both ends, so that both are exact.
    places = aten.arange.default(bins + 1, device=values.device)
    step = (high - low) / bins
    from_left = low + step * places.to(values.dtype)
    from_right = high - step * (bins - places).to(values.dtype)
    return aten.where.self(aten.lt.Scalar(places, (bins + 1) // 2), from_left, from_right)  # type: ignore[no-any-return]


def _places(values: torch.Tensor, edges: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
    """The bin of each value, and whether it has one."""
    bins = edges.shape[0] - 1
    place = aten.searchsorted.Tensor(edges, values.contiguous(), right=True) - 1
    last = aten.eq.Tensor(values, edges[bins])
    inside = aten.logical_and.default(aten.ge.Tensor(values, edges[0]), aten.le.Tensor(values, edges[bins]))
    return aten.clamp.default(aten.where.ScalarOther(aten.logical_not.default(last), place, bins - 1), 0, bins - 1), inside


def _count(points: torch.Tensor, edges: Sequence[torch.Tensor], weight: Optional[torch.Tensor], density: bool) -> torch.Tensor:
    """The histogram of points [n, dimensions]."""
    sizes = [e.shape[0] - 1 for e in edges]
    count = points.shape[0]
    flat = aten.zeros.default([count], dtype=torch.int64, device=points.device)
    inside = aten.ones.default([count], dtype=torch.bool, device=points.device)
    for d, of in enumerate(edges):
        place, has_one = _places(aten.select.int(points, 1, d), of)
        flat, inside = flat * sizes[d] + place, aten.logical_and.default(inside, has_one)
    added = aten.ones.default([count], dtype=points.dtype, device=points.device) if weight is None else weight.reshape(-1)
    added = aten.where.ScalarOther(inside, added, 0.0)
    hist = aten.zeros.default([math.prod(sizes)], dtype=points.dtype, device=points.device)
    hist = aten.index_add.default(hist, 0, flat, added).reshape(sizes)
    if density:
        hist = hist / aten.sum.default(hist)
        for d, of in enumerate(edges):
            line = [1] * len(sizes)
            line[d] = sizes[d]
            hist = hist / (of[1:] - of[:-1]).reshape(line)
    return hist


def _range_of(given: Optional[Sequence[float]], d: int) -> Optional[Sequence[float]]:
    return None if given is None else list(given)[2 * d : 2 * d + 2]


@decomposes("histogram.bin_ct")
def _histogram(
    self: torch.Tensor, bins: int = 100, *, range: Any = None, weight: Optional[torch.Tensor] = None, density: bool = False
) -> Tuple[torch.Tensor, torch.Tensor]:
    edges = _edges(self, bins, range)
    return _count(self.reshape(-1, 1), [edges], weight, density), edges


@decomposes("histogram.bins_tensor")
def _histogram_of(
    self: torch.Tensor, bins: torch.Tensor, *, weight: Optional[torch.Tensor] = None, density: bool = False
) -> Tuple[torch.Tensor, torch.Tensor]:
    return _count(self.reshape(-1, 1), [bins], weight, density), aten.clone.default(bins)


def _points(self: torch.Tensor) -> torch.Tensor:
    return self.reshape(math.prod(self.shape[:-1]), self.shape[-1])


@decomposes("_histogramdd_bin_edges")
def _histogramdd_bin_edges(
    self: torch.Tensor, bins: Sequence[int], *, range: Any = None, weight: Optional[torch.Tensor] = None, density: bool = False
) -> List[torch.Tensor]:
    points = _points(self)
    return [_edges(aten.select.int(points, 1, d), count, _range_of(range, d)) for d, count in enumerate(bins)]


@decomposes("_histogramdd_from_bin_cts")
def _histogramdd_from_bin_cts(
    self: torch.Tensor, bins: Sequence[int], *, range: Any = None, weight: Optional[torch.Tensor] = None, density: bool = False
) -> torch.Tensor:
    return _count(_points(self), _histogramdd_bin_edges(self, bins, range=range), weight, density)


@decomposes("_histogramdd_from_bin_tensors")
def _histogramdd_from_bin_tensors(
    self: torch.Tensor, bins: Sequence[torch.Tensor], *, weight: Optional[torch.Tensor] = None, density: bool = False
) -> torch.Tensor:
    return _count(_points(self), list(bins), weight, density)
