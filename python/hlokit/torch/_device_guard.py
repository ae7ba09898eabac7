# SPDX-License-Identifier: Apache-2.0
"""A guard for devices of type xla. Autograd asks for the guard of each tensor's device, and ends the process where there is
none. Tensors of ours are of another type to PyTorch, but fake ones that torch.export and FakeTensorMode make of them are
"xla". A guard is an object of C++, and PyTorch has no call in Python that registers one for this type: its registrar, which
backends in C++ use, is called here with the guard of "meta", which does nothing, as is right for tensors without storage.
"""

import ctypes

import torch

# c10::DeviceType, whose numbers are in saved files.
_XLA, _META = 9, 14


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
        registrar(ctypes.byref(ctypes.c_char()), _XLA, guards[_META])  # its `this` is an empty object
    return guards[_XLA] is not None
