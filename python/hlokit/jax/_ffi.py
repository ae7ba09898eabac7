# SPDX-License-Identifier: Apache-2.0
"""Typed custom calls (XLA's FFI): handlers of other libraries for the plugin, and handlers in Python.

The structs are those of XLA's C interfaces; each begins with its size. The plugin's own are pjrt/c_api/ffi_args.h
and xla_ffi.h.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ._plugin import Api, Extension

_EXTENSION_FFI = 5  # PJRT_Extension_Type
# Offsets in XLA_FFI_Api.
_FFI_ERROR_DETAILS, _FFI_ERROR_DESTROY, _FFI_HANDLER_REGISTER, _FFI_TYPE_REGISTER = 56, 64, 72, 88
_TOKEN = 17
# Types of less than a byte: the number of their bits, by XLA's number. Buffers have several elements in a byte.
_BITS = {21: 4, 22: 4, 26: 2, 27: 2, 30: 1, 31: 1, 32: 4}

# By XLA's number of the type.
_DTYPES = {
    1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.uint8, 7: np.uint16, 8: np.uint32,
    9: np.uint64, 10: np.float16, 11: np.float32, 12: np.float64, 15: np.complex64, 18: np.complex128,
}
# Names in ml_dtypes, of which older versions lack some.
_ML_DTYPES = {
    16: "bfloat16", 19: "float8_e5m2", 20: "float8_e4m3fn", 21: "int4", 22: "uint4", 23: "float8_e4m3b11fnuz",
    24: "float8_e5m2fnuz", 25: "float8_e4m3fnuz", 26: "int2", 27: "uint2", 28: "float8_e4m3", 29: "float8_e3m4",
    30: "int1", 31: "uint1", 32: "float4_e2m1fn", 33: "float8_e8m0fnu",
}


def _dtype(number: int) -> np.dtype:
    """Returns the dtype of XLA's number of a type. Raises TypeError if there is none."""
    if number in _DTYPES:
        return np.dtype(_DTYPES[number])
    name = _ML_DTYPES.get(number)
    if name is None:
        raise TypeError(f"NumPy and ml_dtypes have no type for XLA's type {number}")
    if not hasattr(ml_dtypes, name):
        raise TypeError(f"ml_dtypes {ml_dtypes.__version__} has no {name}")
    return np.dtype(getattr(ml_dtypes, name))


class _FfiExtension(ctypes.Structure):
    _fields_ = [("base", Extension), ("type_register", ctypes.c_void_p), ("user_data_add", ctypes.c_void_p),
                ("register_handler", ctypes.c_void_p)]


class _RegisterHandler(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("target_name", ctypes.c_char_p), ("target_size", ctypes.c_size_t),
                ("handler", ctypes.c_void_p), ("platform_name", ctypes.c_char_p), ("platform_size", ctypes.c_size_t),
                ("traits", ctypes.c_uint32)]


class _Buffer(ctypes.Structure):  # XLA_FFI_Buffer
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("dtype", ctypes.c_int),
                ("data", ctypes.c_void_p), ("rank", ctypes.c_int64), ("dims", ctypes.POINTER(ctypes.c_int64))]


class _Buffers(ctypes.Structure):  # XLA_FFI_Args, XLA_FFI_Rets
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("size", ctypes.c_int64),
                ("types", ctypes.c_void_p), ("buffers", ctypes.POINTER(ctypes.POINTER(_Buffer)))]


class _Text(ctypes.Structure):  # XLA_FFI_ByteSpan
    _fields_ = [("data", ctypes.POINTER(ctypes.c_char)), ("size", ctypes.c_size_t)]


class _Scalar(ctypes.Structure):  # XLA_FFI_Scalar
    _fields_ = [("dtype", ctypes.c_int), ("value", ctypes.c_void_p)]


class _Attributes(ctypes.Structure):  # XLA_FFI_Attrs
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("size", ctypes.c_int64),
                ("types", ctypes.POINTER(ctypes.c_int)), ("names", ctypes.POINTER(ctypes.POINTER(_Text))),
                ("values", ctypes.POINTER(ctypes.c_void_p))]


class _ApiVersion(ctypes.Structure):  # XLA_FFI_Api_Version
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("major", ctypes.c_int),
                ("minor", ctypes.c_int)]


class _CallApi(ctypes.Structure):  # the beginning of XLA_FFI_Api
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("version", _ApiVersion),
                ("internal_api", ctypes.c_void_p), ("error_create", ctypes.c_void_p)]


class _ErrorCreate(ctypes.Structure):  # XLA_FFI_Error_Create_Args
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("message", ctypes.c_char_p),
                ("code", ctypes.c_int)]


class _Metadata(ctypes.Structure):  # XLA_FFI_Metadata
    _fields_ = [("struct_size", ctypes.c_size_t), ("version", _ApiVersion), ("traits", ctypes.c_uint32),
                ("state_type", ctypes.c_int64)]


class _MetadataExtension(ctypes.Structure):  # XLA_FFI_Metadata_Extension
    _fields_ = [("base", Extension), ("metadata", ctypes.POINTER(_Metadata))]


class _Frame(ctypes.Structure):  # XLA_FFI_CallFrame
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.POINTER(_MetadataExtension)),
                ("api", ctypes.POINTER(_CallApi)), ("context", ctypes.c_void_p), ("stage", ctypes.c_int),
                ("args", _Buffers), ("rets", _Buffers), ("attrs", _Attributes), ("future", ctypes.c_void_p)]


class _HandlerRegister(ctypes.Structure):  # XLA_FFI_Handler_Register_Args
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("name", _Text),
                ("platform", _Text), ("instantiate", ctypes.c_void_p), ("prepare", ctypes.c_void_p),
                ("initialize", ctypes.c_void_p), ("execute", ctypes.c_void_p), ("record", ctypes.c_void_p),
                ("traits", ctypes.c_uint32)]


class _TypeRegister(ctypes.Structure):  # XLA_FFI_Type_Register_Args
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("name", _Text),
                ("type_id", ctypes.c_void_p), ("type_info", ctypes.c_void_p)]


class _ErrorDetails(ctypes.Structure):  # XLA_FFI_Error_GetDetails_Args
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension_start", ctypes.c_void_p), ("error", ctypes.c_void_p),
                ("message", ctypes.c_char_p), ("code", ctypes.c_int)]


assert ctypes.sizeof(_Frame) == 176 and ctypes.sizeof(_RegisterHandler) == 56 and ctypes.sizeof(_Metadata) == 48

_Handler = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Frame))
_kept: list[Any] = []  # handlers live as long as the process


def pointer_of(capsule: Any) -> int:
    """Returns the address in a PyCapsule of any name."""
    python = ctypes.pythonapi
    python.PyCapsule_GetName.restype = ctypes.c_char_p
    python.PyCapsule_GetName.argtypes = [ctypes.py_object]
    python.PyCapsule_GetPointer.restype = ctypes.c_void_p
    python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule))


class Plugin:
    """The functions of a loaded plugin that register handlers. `api` is a capsule with its PJRT_Api."""

    def __init__(self, api: Any):
        self._api = Api(pointer_of(api))
        extension = self._api.extension(_EXTENSION_FFI)
        if extension is None:
            raise RuntimeError("the plugin has no extension for typed custom calls")
        functions = _FfiExtension.from_address(extension)
        self._register = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_RegisterHandler))(functions.register_handler)

    def register(self, target: str, handler: int, platform: str, traits: int = 0) -> None:
        """Registers a handler by its address. Raises ValueError with the plugin's message if it is refused."""
        name, on = target.encode(), platform.encode()
        args = _RegisterHandler(ctypes.sizeof(_RegisterHandler), name, len(name), handler, on, len(on), traits)
        error = self._register(ctypes.byref(args))
        if error:
            raise ValueError(self._api.take_message(error))

    def register_stages(self, target: str, stages: dict[str, int], platform: str) -> None:
        """Registers the handlers of a target by stage: "instantiate", "prepare", "initialize" and "execute".

        Raises ValueError with the plugin's message if they are refused.
        """
        args = _HandlerRegister(struct_size=ctypes.sizeof(_HandlerRegister), name=_text(target),
                                platform=_text(platform), **stages)
        self._call(_FFI_HANDLER_REGISTER, args)

    def register_type(self, name: str, type_id: int, type_info: int | None) -> None:
        """Registers a type of states by the addresses of its XLA_FFI_TypeId, which is set if it is 0, and its
        XLA_FFI_TypeInfo. Raises ValueError if it is refused."""
        args = _TypeRegister(ctypes.sizeof(_TypeRegister), None, _text(name), type_id, type_info)
        self._call(_FFI_TYPE_REGISTER, args)

    def _call(self, offset: int, args: Any) -> None:
        """Calls a function that handlers may call."""
        api = self._ffi_api()
        error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(ctypes.c_void_p.from_address(api + offset).value or 0)(
            ctypes.addressof(args))
        if not error:
            return
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        details, destroy = (function(ctypes.c_void_p.from_address(api + at).value or 0)
                            for at in (_FFI_ERROR_DETAILS, _FFI_ERROR_DESTROY))
        of_error = _ErrorDetails(ctypes.sizeof(_ErrorDetails), None, error)
        details(ctypes.addressof(of_error))
        text = (of_error.message or b"").decode(errors="replace")
        destroy(ctypes.addressof(of_error))
        raise ValueError(text)

    def _ffi_api(self) -> int:
        """The address of the XLA_FFI_Api, which the plugin gives to handlers: to one that refuses to be registered."""
        found: list[int] = []

        def learn(frame_pointer: Any) -> int | None:
            frame = frame_pointer.contents
            found.append(ctypes.cast(frame.api, ctypes.c_void_p).value or 0)
            return _new_error(frame, RuntimeError("not a handler"))

        handler = _Handler(learn)
        try:
            self.register("hlokit.none", ctypes.cast(handler, ctypes.c_void_p).value or 0, "hlokit")
        except ValueError:
            pass
        return found[0]


def _text(text: str) -> _Text:
    """Returns a view of a text, which the struct keeps alive."""
    data = text.encode()
    return _Text((ctypes.c_char * len(data)).from_buffer_copy(data), len(data))


def _packed(buffer: _Buffer) -> tuple[np.ndarray, int]:
    """Returns a view of the bytes that a buffer of a type of less than a byte has, and the number of its elements."""
    count = int(np.prod([buffer.dims[i] for i in range(buffer.rank)], dtype=np.int64))
    size = (count * _BITS[buffer.dtype] + 7) // 8
    if size == 0:
        return np.empty(0, np.uint8), count
    return np.frombuffer(memoryview((ctypes.c_char * size).from_address(buffer.data)), np.uint8), count


def _unpack(buffer: _Buffer) -> np.ndarray:
    """Returns a copy of the elements, of a type of less than a byte."""
    bits = _BITS[buffer.dtype]
    packed, count = _packed(buffer)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    values = ((packed[:, None] >> shifts) & ((1 << bits) - 1)).astype(np.uint8).reshape(-1)[:count]
    shape = tuple(buffer.dims[i] for i in range(buffer.rank))
    return values.view(_dtype(buffer.dtype)).reshape(shape)


def _pack(array: np.ndarray, buffer: _Buffer) -> None:
    """Writes elements of a type of less than a byte."""
    bits = _BITS[buffer.dtype]
    packed, count = _packed(buffer)
    values = np.zeros(packed.size * (8 // bits), np.uint8)
    values[:count] = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    packed[...] = np.bitwise_or.reduce(values.reshape(-1, 8 // bits) << shifts, axis=1)


def _array(buffer: _Buffer) -> np.ndarray:
    """Returns a view of the memory of a buffer; a copy for types of less than a byte."""
    if buffer.dtype in _BITS:
        return _unpack(buffer)
    dtype = _dtype(buffer.dtype)
    shape = tuple(buffer.dims[i] for i in range(buffer.rank))
    size = dtype.itemsize
    for dim in shape:
        size *= dim
    if size == 0:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(buffer.data)
    return np.frombuffer(memoryview(memory), np.uint8).view(dtype).reshape(shape)


def _integer(attributes: _Attributes, name: str) -> int:
    for i in range(attributes.size):
        text = attributes.names[i].contents
        if ctypes.string_at(text.data, text.size).decode() == name:
            scalar = _Scalar.from_address(attributes.values[i])
            dtype = _dtype(scalar.dtype)
            return int(np.frombuffer(ctypes.string_at(scalar.value, dtype.itemsize), dtype)[0])
    raise ValueError(f"the call has no attribute {name}")


_threads = threading.local()
_ensure_state = ctypes.pythonapi.PyGILState_Ensure
_ensure_state.restype = ctypes.c_int


def _keep_thread_state() -> None:
    """Keeps Python's state of this thread, which is the plugin's, until the thread ends.

    Otherwise each call from C makes one and ends it, with all thread-local values, among them those of JAX.
    """
    if not hasattr(_threads, "kept"):
        _threads.kept = True
        _ensure_state()  # without an end


def python_handler(function: Callable[[int, list[np.ndarray | None], list[np.ndarray | None]], None]) -> int:
    """Returns the address of a handler that calls function(index, arguments, results).

    `index` is the attribute of that name; arguments and results are views that end with the call, and None for tokens.
    """

    def call(index: int, buffers: list[list[_Buffer]]) -> None:
        arguments, results = [[None if b.dtype == _TOKEN else _array(b) for b in side] for side in buffers]
        function(index, arguments, results)
        for result, buffer in zip(results, buffers[1]):
            if buffer.dtype in _BITS and result is not None:
                _pack(result, buffer)

    return _handler(call)


class Buffer:
    """The memory of an argument or result of a call, which ends with it: what jax.experimental.buffer_callback gives."""

    def __init__(self, buffer: _Buffer, writeable: bool):
        if buffer.dtype in _BITS:
            raise TypeError("a buffer of a type of less than a byte")
        self._view = _array(buffer)
        self.dtype, self.shape, self.ndim = self._view.dtype, self._view.shape, self._view.ndim
        self.writeable = writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        view = self._view[...]
        view.flags.writeable = self.writeable
        if dtype is not None and np.dtype(dtype) != view.dtype:
            return view.astype(dtype)
        return view.copy() if copy else view

    def __dlpack__(self, **options: Any) -> Any:
        return self._view.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)  # a CPU


def buffer_handler(function: Callable[[int, list[Buffer], list[Buffer]], None]) -> int:
    """Returns the address of a handler that calls function(index, arguments, results), as python_handler, with buffers."""

    def call(index: int, buffers: list[list[_Buffer]]) -> None:
        arguments, results = buffers
        function(index, [Buffer(b, writeable=False) for b in arguments], [Buffer(b, writeable=True) for b in results])

    return _handler(call)


def _handler(call: Callable[[int, list[list[_Buffer]]], None]) -> int:
    def handle(frame_pointer: Any) -> int | None:
        _keep_thread_state()
        frame = frame_pointer.contents
        if frame.extension_start and frame.extension_start.contents.base.type == 1:
            metadata = frame.extension_start.contents.metadata.contents
            metadata.version.major, metadata.version.minor = 0, 1
            metadata.traits, metadata.state_type = 0, 0
            return None
        try:
            buffers = [[b.buffers[i].contents for i in range(b.size)] for b in (frame.args, frame.rets)]
            call(_integer(frame.attrs, "index"), buffers)
            return None
        except BaseException as error:  # noqa: BLE001: nothing may pass through the plugin
            return _new_error(frame, error)

    kept = _Handler(handle)
    _kept.append(kept)
    return ctypes.cast(kept, ctypes.c_void_p).value or 0


def _new_error(frame: _Frame, error: BaseException) -> int | None:
    import traceback

    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_ErrorCreate))(frame.api.contents.error_create)
    message = f"CpuCallback error calling callback: {text}".encode()
    return create(ctypes.byref(_ErrorCreate(ctypes.sizeof(_ErrorCreate), None, message, 13)))
