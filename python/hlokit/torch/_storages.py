# SPDX-License-Identifier: Apache-2.0
"""Ops that see the storage of a tensor: strides that count in it, sizes that it grows for, tensors that take another's."""

import math
from typing import Any, List, Optional, Sequence

import torch

from hlokit import _hlokit

from . import _session
from ._decompositions import _Row
from ._device import NATIVE, TPU
from ._tensor import adopt, is_lazy, lazy_of, upload

aten = torch.ops.aten

_strided = _Row("aten::as_strided")
_view = _Row("aten::view")
_view_dtype = _Row("aten::view.dtype")


def contiguous_strides(sizes: Sequence[int]) -> List[int]:
    """The strides of a new tensor."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return strides[::-1]


def _bytes_of(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage().nbytes())


def _strides_of(tensor: torch.Tensor) -> List[int]:
    """Those of the elements in the storage; on xla, where PyTorch/XLA has none, as if they were one after another."""
    return list(tensor.stride()) if tensor.device.type == TPU else contiguous_strides(tensor.shape)


def _base_of(tensor: torch.Tensor) -> Optional[Any]:
    """The value of the whole storage, in order; None where nothing keeps it."""
    place = (list(tensor.shape), _strides_of(tensor), tensor.storage_offset())
    return _hlokit._lazy_base(lazy_of(tensor), *place, _bytes_of(tensor), tensor.element_size())


def _in_line(base: Any, dtype: torch.dtype) -> torch.Tensor:
    """A view of a storage's value as a line of elements of a type."""
    whole = _view(_hlokit._torch_wrap(base), [-1])
    return whole if whole.dtype == dtype else _view_dtype(whole, dtype)  # type: ignore[no-any-return]


def as_strided(func: Any, args: Any, kwargs: Any) -> Any:
    """The tracer's op counts from the first element of its operand, which has no gaps; PyTorch's counts in the storage."""
    tensor, size, stride = args[:3]
    offset = args[3] if len(args) > 3 else kwargs.get("storage_offset")
    if not is_lazy(tensor):
        return NotImplemented
    place = tensor.storage_offset() if offset is None else offset
    if any(value < 0 for value in (*size, *stride, place)):
        raise RuntimeError(f"as_strided: sizes, strides and the offset cannot be negative: {size}, {stride}, {place}")
    if tensor.device.type == TPU:
        base = _base_of(tensor)
        if base is not None:
            return _strided(_in_line(base, tensor.dtype), list(size), list(stride), place)
    for whole in (tensor, tensor._base):
        if whole is not None and is_lazy(whole) and whole.is_contiguous():
            return _strided(whole, list(size), list(stride), place - whole.storage_offset())
    raise NotImplementedError(
        f"as_strided of a view on {tensor.device} of a tensor that is no longer there: keep that one, and view it"
    )


def resize_(func: Any, args: Any, kwargs: Any) -> Any:
    """Keeps the storage, which grows where it is too small; what is new is zero."""
    target, sizes = args[0], list(args[1])
    if list(target.shape) == sizes:
        return target
    width, offset, count = target.element_size(), target.storage_offset(), math.prod(sizes)
    base = _base_of(target)
    if base is None:  # nothing else sees the storage
        flat = target.detach().reshape(-1)
        flat = flat[:count].clone() if count <= flat.numel() else torch.nn.functional.pad(flat, (0, count - flat.numel()))
        adopt(target, flat.reshape(sizes))
        return target
    needed = (offset + count) * width
    if needed > _bytes_of(target):
        unit = _hlokit._torch_wrap(base).element_size()
        elements = -(-needed // unit)
        base = _hlokit._lazy_grow(base, elements)
        NATIVE.resize_storage(target, elements * unit)
    adopt(target, _strided(_in_line(base, target.dtype), sizes, contiguous_strides(sizes), offset))
    return target


def set_source(func: Any, args: Any, kwargs: Any) -> Any:
    """Both tensors then have one storage."""
    NATIVE.become(args[0], args[1])
    return args[0]


def set_storage(func: Any, args: Any, kwargs: Any) -> Any:
    """Of a storage with bytes on the host: one that was loaded."""
    target, storage, *place = args
    host = NATIVE.host_storage(storage)
    if host is None:
        raise NotImplementedError(f"a storage of {storage.device} has no bytes that a tensor could be made of")
    value = torch.empty(0, dtype=target.dtype).set_(host, *place)
    adopt(target, upload(value, _session.current(), _hlokit._lazy_ordinal(lazy_of(target))))
    return target


# ---- views that tensors become ----

_VIEWS_IN_PLACE = {
    "t_.default": "t.default", "transpose_.default": "transpose.int", "squeeze_.default": "squeeze.default",
    "squeeze_.dim": "squeeze.dim", "squeeze_.dims": "squeeze.dims", "unsqueeze_.default": "unsqueeze.default",
    "as_strided_.default": "as_strided.default",
}


def _overload(name: str) -> Any:
    packet, _, overload = name.partition(".")
    return getattr(getattr(aten, packet, None), overload, None)


def _view_in_place(function: Any) -> Any:
    def become(func: Any, args: Any, kwargs: Any) -> Any:
        if not is_lazy(args[0]):
            return NotImplemented
        adopt(args[0], function(*args, **kwargs))
        return args[0]

    return become


def special_ops() -> Any:
    """What runs in place of the tracer's ops, by overload."""
    found = {
        aten.as_strided.default: as_strided,
        aten.resize_.default: resize_,
        aten.set_.source_Tensor: set_source,
        aten.set_.source_Storage_storage_offset: set_storage,
    }
    for name, view in _VIEWS_IN_PLACE.items():
        in_place = _overload(name)
        if in_place is not None:
            found[in_place] = _view_in_place(_overload(view))
    return found
