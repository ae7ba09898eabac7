# SPDX-License-Identifier: Apache-2.0
"""Products of groups of rows with a matrix each, as experts have them. PyTorch's own decomposition reads the ends of the groups,
so that the program would wait for them; here each group's matrix is multiplied with all rows, of which its own are taken: as
many times the work as there are groups."""

from typing import Optional

import torch

from ._decompositions import decomposes

aten = torch.ops.aten


def _of_groups(ends: torch.Tensor, count: int) -> torch.Tensor:
    """Whether each of `count` places is in each group: [groups, places]. Those behind the last end are in none."""
    places = aten.arange.default(count, dtype=ends.dtype, device=ends.device)
    below = aten.lt.Tensor(aten.unsqueeze.default(places, 0), aten.unsqueeze.default(ends, 1))
    first = aten.slice.Tensor(below, 0, 0, 1)
    others = aten.logical_and.default(
        aten.slice.Tensor(below, 0, 1), aten.logical_not.default(aten.slice.Tensor(below, 0, 0, ends.shape[0] - 1))
    )
    return aten.cat.default([first, others])  # type: ignore[no-any-return]


def _taken(products: torch.Tensor, groups: torch.Tensor, dim: int) -> torch.Tensor:
    """Of the products of all groups those of each row's, or column's, own: [rows, columns]. dim: that the mask lacks."""
    return aten.sum.dim_IntList(  # type: ignore[no-any-return]
        aten.where.ScalarOther(aten.unsqueeze.default(groups, dim), products, 0), [0]
    )


def _each(value: torch.Tensor, groups: torch.Tensor, dim: int) -> torch.Tensor:
    """The matrix for each group, with zeros where columns (dim 1) or rows (dim 2) are of others: [groups, rows, columns]."""
    mask = aten.unsqueeze.default(groups, dim)
    return aten.where.ScalarOther(mask, aten.unsqueeze.default(value, 0), 0)  # type: ignore[no-any-return]


@decomposes("_grouped_mm")
def _grouped_mm(
    self: torch.Tensor,
    mat2: torch.Tensor,
    offs: Optional[torch.Tensor] = None,
    bias: Optional[torch.Tensor] = None,
    out_dtype: Optional[torch.dtype] = None,
) -> torch.Tensor:
    if self.dim() == 3 and mat2.dim() == 3:
        result = aten.bmm.default(self, mat2)
    else:
        assert offs is not None  # PyTorch has checked it
        if self.dim() == 2 and mat2.dim() == 3:  # rows of the first are divided
            groups = _of_groups(offs, self.shape[0])
            rows = aten.expand.default(aten.unsqueeze.default(self, 0), [offs.shape[0], *self.shape])
            result = _taken(aten.bmm.default(rows, mat2), groups, 2)
        elif self.dim() == 3:  # columns of the second are
            groups = _of_groups(offs, mat2.shape[1])
            columns = aten.expand.default(aten.unsqueeze.default(mat2, 0), [offs.shape[0], *mat2.shape])
            result = _taken(aten.bmm.default(self, columns), groups, 1)
        else:  # the dimension that is summed is: a product for each group
            groups = _of_groups(offs, self.shape[1])
            result = aten.bmm.default(_each(self, groups, 1), _each(mat2, groups, 2))
    if bias is not None:
        result = aten.add.Tensor(result, bias)
    return result if out_dtype is None else aten._to_copy.default(result, dtype=out_dtype)  # type: ignore[no-any-return]
