# SPDX-License-Identifier: Apache-2.0
"""Loops with the names of torch_xla.experimental. XLA's loop is a While; here the steps are recorded one after the other, with
the same values and derivatives, and graphs that grow with their number."""

from typing import Any, Callable, Iterable, List, Tuple

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from . import _lines

_MANY = 64


def scan(fn: Callable[[Any, Any], Tuple[Any, Any]], init: Any, xs: Any, *, is_fn_pure: bool = True, **kwargs: Any) -> Tuple[Any, Any]:
    """carry, y = fn(carry, x) for each x of xs along their first dimension; returns the last carry and the stacked ys."""
    leaves = [leaf for leaf in tree_flatten(xs)[0] if isinstance(leaf, torch.Tensor)]
    if not leaves:
        raise ValueError("scan: xs has no tensors")
    length = leaves[0].shape[0]
    if any(leaf.shape[0] != length for leaf in leaves):
        raise ValueError(f"scan: xs have {sorted({int(leaf.shape[0]) for leaf in leaves})} elements along their first dimension")
    if length > _MANY:
        _lines.warn_once(f"scan of {length} steps: hlokit.torch records each, where XLA has a loop")
    # fn may write to the carry, which is not the caller's.
    carry = tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, init)
    outputs: List[Any] = []
    for i in range(length):
        carry, y = fn(carry, tree_map(lambda v: v[i] if isinstance(v, torch.Tensor) else v, xs))
        outputs.append(tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, y))
    if not outputs:
        raise ValueError("scan: xs have no elements")
    structure = tree_flatten(outputs[0])[1]
    columns = zip(*(tree_flatten(y)[0] for y in outputs))
    stacked = [torch.stack(c) if isinstance(c[0], torch.Tensor) else c[0] for c in columns]
    return carry, tree_unflatten(stacked, structure)


def scan_layers(layers: Iterable[torch.nn.Module], input_data: Any, partition_fn: Any = None, is_layer_pure: bool = False) -> Any:
    """The layers one after the other."""
    for layer in layers:
        input_data = layer(input_data)
    return input_data


def fori_loop(lower: int, upper: int, body_fun: Callable[[int, Any], Any], init_val: Any) -> Any:
    value = init_val
    for i in range(int(lower), int(upper)):
        value = body_fun(i, value)
    return value
