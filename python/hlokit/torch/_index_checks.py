# SPDX-License-Identifier: Apache-2.0
"""Indices out of range, which the device takes for the nearest that is in range, or writes nothing for: errors of the eager mode
"debug", in which values of indices are read."""

from typing import Any, Iterator, List, Optional, Tuple

import torch

from ._tensor import fetch, is_lazy

# Ops with a dimension and indices in it, and whether negative ones count from the end.
_ALONG = {
    "gather": False, "scatter": False, "scatter_": False, "scatter_add": False, "scatter_add_": False, "scatter_reduce": False,
    "scatter_reduce_": False, "index_select": False, "index_add": False, "index_add_": False, "index_copy": False,
    "index_copy_": False, "index_fill": True, "index_fill_": True,
}
_IN_LIST = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index")
_IN_ALL = ("take", "put", "put_")

Used = Tuple[Any, int, int, bool, Optional[int]]  # indices, dimension, its size, whether negative ones count, one that is ignored


def _used(name: str, args: Any) -> Iterator[Used]:
    if name in _ALONG:
        tensor, dim, index = args[:3]
        dim = dim % max(tensor.dim(), 1)
        yield index, dim, tensor.shape[dim] if tensor.dim() else 1, _ALONG[name], None
    elif name in _IN_LIST:
        dim = 0
        for index in args[1]:
            mask = index is not None and index.dtype in (torch.bool, torch.uint8)
            if index is not None and not mask:
                yield index, dim, args[0].shape[dim], True, None
            dim += index.dim() if mask else 1
    elif name in _IN_ALL:
        yield args[1], 0, args[0].numel(), True, None
    elif name == "embedding":
        yield args[1], 0, args[0].shape[0], False, None
    elif name in ("nll_loss_forward", "nll_loss2d_forward"):
        ignored = args[4] if len(args) > 4 else -100
        yield args[1], 1, args[0].shape[1 if args[0].dim() > 1 else 0], False, ignored


def check(func: Any, args: Any) -> None:
    """Raises IndexError for indices of a call that are out of range."""
    name = func._schema.name.partition("::")[2]
    for index, dim, size, negative, ignored in _used(name, args):
        if not isinstance(index, torch.Tensor) or index.numel() == 0:
            continue
        values = fetch(index) if is_lazy(index) else index
        outside = (values >= size) | (values < (-size if negative else 0))
        if ignored is not None:
            outside &= values != ignored
        found: List[int] = values[outside].tolist()
        if found:
            raise IndexError(f"{name}: index {found[0]} is out of bounds for dimension {dim} with size {size}")
