# SPDX-License-Identifier: Apache-2.0
"""A guard for devices of type xla. Autograd asks for the guard of each tensor's device, and ends the process where there is
none. Tensors of ours are of another type to PyTorch, but fake ones that torch.export and FakeTensorMode make of them are
"xla". A guard is an object of C++, and PyTorch has no call in Python that registers one for this type: its registrar, which
backends in C++ use, is called here with a copy of the guard of "meta", which does nothing, as is right for tensors without
storage, but names this thread's device where PyTorch asks for the current one: for "xla" without a number.
"""

import ctypes
from typing import Any, List, Optional

import torch

from . import _session

# c10::DeviceType, whose numbers are in saved files.
_XLA, _META = 9, 14
# Virtual functions of c10::impl::DeviceGuardImplInterface, the first of 25 to 30; a device is (type, index), two bytes.
_TYPE, _GET_DEVICE, _MOST_FUNCTIONS = 0, 2, 40

_kept: List[Any] = []  # what PyTorch refers to


@ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_void_p)
def _current_device(this: Any) -> int:
    return _XLA | _session.ordinal_of(None) << 8


def _guard_like(meta: int) -> Optional[int]:
    """The address of an object as that at `meta`, whose current device is this thread's; None if it is not as known."""
    functions = ctypes.c_void_p.from_address(meta).value
    if functions is None:
        return None
    table = (ctypes.c_void_p * _MOST_FUNCTIONS).from_address(functions)
    kind = ctypes.CFUNCTYPE(ctypes.c_int8, ctypes.c_void_p)(table[_TYPE] or 0)
    device = ctypes.CFUNCTYPE(ctypes.c_uint16, ctypes.c_void_p)(table[_GET_DEVICE] or 0)
    if kind(meta) != _META or device(meta) & 0xFF != _META:
        return None
    copy = (ctypes.c_void_p * (2 + _MOST_FUNCTIONS))()  # type information precedes the functions
    ctypes.memmove(copy, functions - 2 * ctypes.sizeof(ctypes.c_void_p), ctypes.sizeof(copy))
    copy[2 + _GET_DEVICE] = ctypes.cast(_current_device, ctypes.c_void_p).value
    guard = ctypes.c_void_p(ctypes.addressof(copy) + 2 * ctypes.sizeof(ctypes.c_void_p))
    _kept.extend((copy, guard))
    return ctypes.addressof(guard)


def register() -> bool:
    """Returns whether there is a guard for xla, torch_xla's or this one."""
    try:
        library = ctypes.CDLL(torch._C.__file__)  # finds what is in the libraries that it depends on, c10 among them
        guards = (ctypes.c_void_p * (_META + 1)).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
        registrar = library["_ZN3c104impl24DeviceGuardImplRegistrarC1ENS_10DeviceTypeEPKNS0_24DeviceGuardImplInterfaceE"]
    except (OSError, ValueError, AttributeError):  # a build without these symbols
        return False
    if guards[_XLA] is None and guards[_META] is not None:
        registrar.argtypes, registrar.restype = (ctypes.c_void_p, ctypes.c_int8, ctypes.c_void_p), None
        guard = _guard_like(guards[_META] or 0) or guards[_META]
        registrar(ctypes.byref(ctypes.c_char()), _XLA, guard)  # its `this` is an empty object
    return guards[_XLA] is not None
