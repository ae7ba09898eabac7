# SPDX-License-Identifier: Apache-2.0
"""The table of a loaded plugin, its extensions and its errors, and the extension for estimates.

The structs are those of the C interfaces, pjrt/c_api/types.h and simulation_args.h; each begins with its size.
"""

from __future__ import annotations

import ctypes
from typing import Any

_API_ERROR_DESTROY, _API_ERROR_MESSAGE = 40, 48  # offsets in PJRT_Api
_EXTENSION_SIMULATION = 0x686C6B01  # PJRT_Extension_Type


class Extension(ctypes.Structure):
    pass


Extension._fields_ = [("struct_size", ctypes.c_size_t), ("type", ctypes.c_int), ("next", ctypes.POINTER(Extension))]


class _Api(ctypes.Structure):  # PJRT_Api
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.POINTER(Extension))]


class _ErrorArgs(ctypes.Structure):  # PJRT_Error_Destroy_Args, with the fields of PJRT_Error_Message_Args
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("error", ctypes.c_void_p),
                ("message", ctypes.POINTER(ctypes.c_char)), ("message_size", ctypes.c_size_t)]


class Api:
    """The PJRT_Api at an address."""

    def __init__(self, address: int):
        self._address = address

    @classmethod
    def of_library(cls, path: str) -> Api:
        """Loads the library. Raises OSError if it cannot be loaded."""
        get_api = ctypes.CDLL(path).GetPjrtApi
        get_api.restype = ctypes.c_void_p
        return cls(get_api())

    def extension(self, number: int) -> int | None:
        """Returns the address of the extension of a type, None if the plugin has none."""
        extension = _Api.from_address(self._address).extension_start
        while extension and extension.contents.type != number:
            extension = extension.contents.next
        return ctypes.addressof(extension.contents) if extension else None

    def take_message(self, error: int) -> str:
        """Returns the message of a PJRT_Error, and ends the error."""
        function = ctypes.CFUNCTYPE(None, ctypes.POINTER(_ErrorArgs))
        message, destroy = (function(ctypes.c_void_p.from_address(self._address + offset).value or 0)
                            for offset in (_API_ERROR_MESSAGE, _API_ERROR_DESTROY))
        args = _ErrorArgs(ctypes.sizeof(_ErrorArgs), None, error)
        message(ctypes.byref(args))
        text = ctypes.string_at(args.message, args.message_size).decode(errors="replace")
        destroy(ctypes.byref(_ErrorArgs(_ErrorArgs.message.offset, None, error)))
        return text


_Chars = ctypes.POINTER(ctypes.c_char)


class _Program(ctypes.Structure):  # PJRT_Program
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("code", ctypes.c_char_p),
                ("code_size", ctypes.c_size_t), ("format", ctypes.c_char_p), ("format_size", ctypes.c_size_t)]


class _CreateArgs(ctypes.Structure):  # HlokitSimulation_Create_Args
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p),
                ("program", ctypes.POINTER(_Program)), ("compile_options", ctypes.c_char_p),
                ("compile_options_size", ctypes.c_size_t), ("device", ctypes.c_char_p),
                ("device_size", ctypes.c_size_t), ("with_document", ctypes.c_bool), ("simulation", ctypes.c_void_p),
                ("text", _Chars), ("text_size", ctypes.c_size_t), ("json", _Chars), ("json_size", ctypes.c_size_t),
                ("document", _Chars), ("document_size", ctypes.c_size_t)]


class _DestroyArgs(ctypes.Structure):  # HlokitSimulation_Destroy_Args
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("simulation", ctypes.c_void_p)]


class _SimulationExtension(ctypes.Structure):  # HlokitSimulation_Extension
    _fields_ = [("base", Extension), ("create", ctypes.c_void_p), ("destroy", ctypes.c_void_p)]


def simulate(api: Api, code: bytes, compile_options: bytes, device: str, document: bool) -> tuple[str, str, str]:
    """Simulates a program, which the library partitions as the options say.

    Returns the report, the report as JSON, and the data of the report's page if `document` says so. Raises ValueError
    with the library's message.
    """
    address = api.extension(_EXTENSION_SIMULATION)
    if address is None:
        raise RuntimeError("the plugin has no extension for estimates: it is of an older version than this package")
    functions = _SimulationExtension.from_address(address)
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_CreateArgs))(functions.create)
    destroy = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_DestroyArgs))(functions.destroy)
    program = _Program(ctypes.sizeof(_Program), None, code, len(code), b"mlir", len(b"mlir"))
    name = device.encode()
    args = _CreateArgs(ctypes.sizeof(_CreateArgs), None, ctypes.pointer(program), compile_options, len(compile_options),
                       name, len(name), document)
    error: Any = create(ctypes.byref(args))
    if error:
        raise ValueError(api.take_message(error))
    try:
        return tuple(ctypes.string_at(text, size).decode(errors="surrogateescape") for text, size in (
            (args.text, args.text_size), (args.json, args.json_size), (args.document, args.document_size)))  # type: ignore
    finally:
        destroy(ctypes.byref(_DestroyArgs(ctypes.sizeof(_DestroyArgs), None, args.simulation)))
