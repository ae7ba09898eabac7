# SPDX-License-Identifier: Apache-2.0
"""Tensors of the device, and how their values come there and to the host."""

import contextlib
import os
from typing import Any, Iterator, List, Optional, Sequence

import torch

import hlokit
from hlokit import _hlokit

from . import _session, _threads
from ._device import NATIVE

_DTYPES = {
    "pred": torch.bool,
    "u8": torch.uint8,
    "s8": torch.int8,
    "s16": torch.int16,
    "s32": torch.int32,
    "s64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
    "c128": torch.complex128,
}
# Types that later versions of PyTorch have.
_LATER = {
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f8e5m2": "float8_e5m2",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2fnuz": "float8_e5m2fnuz",
    "f8e4m3fnuz": "float8_e4m3fnuz",
}
_DTYPES.update({name: getattr(torch, later) for name, later in _LATER.items() if hasattr(torch, later)})

def lazy_of(tensor: Any) -> Any:
    """The tracer's value that a tensor of the device holds; None for any other object."""
    return _hlokit._lazy_of(tensor)


def value_of(tensor: Any) -> Any:
    """lazy_of, with the marks of .conj() and of negated views applied, which the tracer's value does not have: what reads a
    tensor that a program gives takes this one. A write to it does not reach a tensor with marks."""
    if isinstance(tensor, torch.Tensor) and is_marked(tensor):
        with torch.no_grad():
            tensor = tensor.resolve_conj().resolve_neg()
    return _hlokit._lazy_of(tensor)


def is_marked(tensor: torch.Tensor) -> bool:
    """Whether the elements of a tensor are the conjugates of those in its memory, or the negatives."""
    return tensor.is_conj() or tensor.is_neg()


def is_lazy(tensor: Any) -> bool:
    """Whether a tensor is one of the device, neither on the host nor a fake one."""
    return _hlokit._lazy_of(tensor) is not None


def home_of(tensors: Sequence[Any]) -> Optional[Any]:
    """The first value among the tensors."""
    for tensor in tensors:
        lazy = _hlokit._lazy_of(tensor)
        if lazy is not None:
            return lazy
    return None


@contextlib.contextmanager
def of_type(name: str) -> Iterator[None]:
    """Tensors that this thread makes in the block are of devices of this type, "xla" or "tpu"."""
    before = NATIVE.set_type(name)
    try:
        yield
    finally:
        NATIVE.set_type(before)


def wrap(lazy: Any, like: torch.Tensor) -> torch.Tensor:
    """A tensor with the value, of a device of the type of another one's."""
    with of_type(like.device.type):
        return _hlokit._torch_wrap(lazy)  # type: ignore[no-any-return]


def adopt(tensor: torch.Tensor, value: torch.Tensor) -> None:
    """Replaces the value and the sizes of a tensor."""
    NATIVE.adopt(tensor, value)


def bytes_of(tensor: torch.Tensor) -> Any:
    """The elements of a tensor on the host as an array of bytes, not copied if they are contiguous."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return tensor.view(torch.uint8).numpy()


def upload(value: torch.Tensor, session: Any, ordinal: int) -> torch.Tensor:
    """A tensor of the device with the value of one on the host; of a meta tensor, or in a fake session, zeros without
    memory."""
    _session.check_process()
    array = None if session.fake or value.device.type == "meta" else bytes_of(value)
    return _hlokit._torch_wrap(session.upload(ordinal, list(value.size()), value.dtype, array))  # type: ignore[no-any-return]


def fetch(tensor: torch.Tensor, keep: bool = False) -> torch.Tensor:
    """The value on the host. keep: the graph stays, as after .item()."""
    lazy = value_of(tensor)
    session = _hlokit._lazy_session(lazy)
    if session.fake:
        raise RuntimeError("tensors of a fake session have no values")
    if tensor.numel() == 0:
        return torch.empty(tuple(tensor.shape), dtype=tensor.dtype)
    _threads.before_read()
    array = _hlokit._lazy_fetch(lazy, keep)
    return torch.frombuffer(array, dtype=tensor.dtype).reshape(tuple(tensor.shape))


def session_of(tensors: Sequence[Any]) -> Optional[Any]:
    """The session of the first tensor of the device."""
    lazy = home_of(tensors)
    return None if lazy is None else _hlokit._lazy_session(lazy)


def setup(untranslated: Any) -> None:
    """Tells the recorder what it needs of PyTorch."""
    folders: List[str] = []
    for module in (torch, hlokit):
        for path in {os.path.dirname(str(module.__file__)), os.path.dirname(os.path.realpath(str(module.__file__)))}:
            folders.append(path + os.sep)
    folders.append(os.path.dirname(os.path.realpath(__file__)) + os.sep)
    folders.append("<")  # generated code
    _hlokit._torch_before_read(_threads.before_read)
    _hlokit._torch_setup(NATIVE.api(), _DTYPES, untranslated, folders)
