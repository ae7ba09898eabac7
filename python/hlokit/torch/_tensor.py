# SPDX-License-Identifier: Apache-2.0
"""The class of lazy tensors, and how values come to the host and to the device."""

import os
from typing import Any, List, Optional, Sequence

import torch

import hlokit
from hlokit import _hlokit

from . import _session

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

_Base: Any = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase  # before 2.1


class XlaTensor(torch.Tensor):
    """A tensor whose value is recorded, and computed when something reads it or a step is marked.

    Autograd, modules and optimizers of PyTorch run on it unchanged.
    """

    __slots__ = ("_lazy",)
    __torch_function__ = torch._C._disabled_torch_function_impl
    __torch_dispatch__ = _hlokit._torch_dispatch

    _lazy: Any

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return _session.XLA_DEVICES[_hlokit._lazy_ordinal(self._lazy)]

    @property
    def is_xla(self) -> bool:  # type: ignore[override]
        return True

    @property
    def data(self) -> "XlaTensor":  # type: ignore[override]
        return self.detach()  # type: ignore[return-value]

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        adopt(self, value)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        if args and (isinstance(args[0], (str, torch.device))):
            args = (_inner(args[0]), *args[1:])
        if isinstance(kwargs.get("device"), (str, torch.device)):
            kwargs["device"] = _inner(kwargs["device"])
        if args and isinstance(args[0], XlaTensor):
            args = (INNER(args[0]), args[0].dtype, *args[1:])
        return _Base.to(self, *args, **kwargs)

    def numpy(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")

    def __array__(self, dtype: Any = None) -> Any:
        return self.numpy()

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.dim() == 0 else object.__format__(self, spec)

    def tolist(self) -> Any:
        return self.detach().cpu().tolist()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return (_rebuild, (self.detach().cpu(), str(self.device), self.requires_grad, isinstance(self, torch.nn.Parameter)))

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol at the moment")
        with torch.no_grad():
            copy = self.detach().clone().requires_grad_(self.requires_grad)
        if isinstance(self, torch.nn.Parameter):
            copy._is_param = True
        memo[id(self)] = copy
        return copy


def _inner(device: Any) -> Any:
    device = torch.device(device)
    return _session.INNER_DEVICES[_session.ordinal_of(device)] if device.type == "xla" else device


def INNER(tensor: XlaTensor) -> torch.device:
    """What PyTorch takes for the device of the tensor."""
    return _session.INNER_DEVICES[_hlokit._lazy_ordinal(tensor._lazy)]


def _rebuild(value: torch.Tensor, device: str, requires_grad: bool, parameter: bool) -> torch.Tensor:
    result = value.to(device)
    if parameter:
        return torch.nn.Parameter(result, requires_grad)
    return result.requires_grad_(requires_grad)


def adopt(tensor: XlaTensor, value: torch.Tensor) -> None:
    """Replaces the value and the sizes of a tensor."""
    if not isinstance(value, XlaTensor):
        raise RuntimeError(f"the data of a tensor of {tensor.device} cannot be one of {value.device}")
    _Base.data.__set__(tensor, value)
    tensor._lazy = value._lazy


def bytes_of(tensor: torch.Tensor) -> Any:
    """The elements of a tensor on the host as an array of bytes, not copied if they are contiguous."""
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return tensor.view(torch.uint8).numpy()


def upload(value: torch.Tensor, session: Any, ordinal: int) -> XlaTensor:
    """A lazy tensor with the value of one on the host; of a meta tensor, or in a fake session, zeros without memory."""
    array = None if session.fake or value.device.type == "meta" else bytes_of(value)
    return _hlokit._torch_wrap(session.upload(ordinal, list(value.shape), value.dtype, array))  # type: ignore[no-any-return]


def fetch(tensor: XlaTensor, keep: bool = False) -> torch.Tensor:
    """The value on the host. keep: the graph stays, as after .item()."""
    session = _hlokit._lazy_session(tensor._lazy)
    if session.fake:
        raise RuntimeError("tensors of a fake session have no values")
    if tensor.numel() == 0:
        return torch.empty(tuple(tensor.shape), dtype=tensor.dtype)
    array = _hlokit._lazy_fetch(tensor._lazy, keep)
    return torch.frombuffer(array, dtype=tensor.dtype).reshape(tuple(tensor.shape))


def session_of(tensors: Sequence[Any]) -> Optional[Any]:
    for tensor in tensors:
        if isinstance(tensor, XlaTensor):
            return _hlokit._lazy_session(tensor._lazy)
    return None


def setup(untranslated: Any) -> None:
    """Tells the recorder PyTorch's classes."""
    folders: List[str] = []
    for module in (torch, hlokit):
        for path in {os.path.dirname(str(module.__file__)), os.path.dirname(os.path.realpath(str(module.__file__)))}:
            folders.append(path + os.sep)
    folders.append(os.path.dirname(os.path.realpath(__file__)) + os.sep)
    folders.append("<")  # generated code
    make = torch.Tensor._make_wrapper_subclass
    _hlokit._torch_setup(XlaTensor, make, _DTYPES, _session.INNER_DEVICES, untranslated, folders)
