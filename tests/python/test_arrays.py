# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: NumPy, DLPack, hlokit.Array, types that NumPy lacks."""

import gc
import weakref

import numpy as np
import pytest

import hlokit


def program(dtype: str, dims: str = "4") -> hlokit.Module:
    return hlokit.parse(f"HloModule a\nENTRY e {{ p = {dtype}[{dims}] parameter(0) ROOT n = {dtype}[{dims}] copy(p) }}")


class Exporter:
    """An array of another library: only DLPack."""

    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.device = device

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.device


def test_dlpack_in():
    x = np.arange(4, dtype=np.float32)
    assert program("f32").run_on(Exporter(x)).tolist() == [0, 1, 2, 3]
    assert program("f32", "2").run_on(Exporter(x[::2])).tolist() == [0, 2]  # strides
    assert program("s64").run_on(Exporter(np.arange(4))).tolist() == [0, 1, 2, 3]
    with pytest.raises(TypeError, match="another device"):
        program("f32").run_on(Exporter(x, (2, 0)))
    with pytest.raises(TypeError, match="not of f64"):
        program("f64").run_on(Exporter(x))


def test_dlpack_memory_is_shared_and_let_go():
    x = np.arange(4, dtype=np.float32)
    alive = weakref.ref(x)
    array = hlokit.Array(Exporter(x))
    x[1] = 7
    again = np.from_dlpack(array)
    assert again.tolist() == [0, 7, 2, 3] and np.shares_memory(again, x)
    del x, array
    gc.collect()
    assert alive() is not None and again[1] == 7
    del again
    gc.collect()
    assert alive() is None


def test_unused_capsules_are_freed():
    x = np.zeros(1 << 20, np.float32)
    alive = weakref.ref(x)
    array = hlokit.Array(x)
    capsules = [array.__dlpack__() for _ in range(10)]
    del x, array, capsules
    gc.collect()
    assert alive() is None


def test_results_as_arrays():
    x = np.arange(4, dtype=np.float32)
    result = program("f32").run_on(x, results="array")
    assert isinstance(result, hlokit.Array) and repr(result) == "<Array f32[4]>" and len(result) == 4
    assert (result.dtype, result.shape.dims, result.nbytes) == ("f32", (4,), 16)
    view = np.asarray(result)
    assert np.shares_memory(view, np.from_dlpack(result)) and view.tolist() == x.tolist()
    assert program("f32").run_on(result).tolist() == x.tolist()
    address, read_only = result.__array_interface__["data"]
    assert address == view.ctypes.data and not read_only
    with pytest.raises(ValueError, match="results"):
        program("f32").run_on(x, results="lists")


def test_read_only_memory_is_not_exported():
    m = hlokit.parse("HloModule a\nENTRY e { ROOT c = f32[2] constant({1, 2}) }")
    array = hlokit.Array(m["c"].literal)
    assert array.numpy().tolist() == [1, 2] and not array.numpy().flags.writeable
    with pytest.raises(BufferError):
        array.__dlpack__()


def test_types_that_numpy_lacks():
    values = np.array([1, -2, 0.5, 3], np.float32)
    for dtype in ("bf16", "f8e5m2", "f8e4m3fn", "f4e2m1fn"):
        array = hlokit.Array(values, dtype)
        assert array.float32().tolist() == values.tolist()
        assert program(dtype).run_on(array, results="array").float32().tolist() == values.tolist()
        # Numbers of Python are converted, raw elements are taken as they are.
        assert hlokit.Array(program(dtype).run_on(values.tolist()), dtype).float32().tolist() == values.tolist()
        assert hlokit.Array(array.numpy(), dtype).float32().tolist() == values.tolist()
    small = np.array([1, -2, 7, -8], np.int8)
    assert program("s4").run_on(small).tolist() == small.tolist()
    assert np.from_dlpack(program("s4").run_on(small, results="array")).tolist() == small.tolist()
    with pytest.raises(BufferError):
        hlokit.Array(values, "f4e2m1fn").__dlpack__()


def test_elements_beyond_a_type():
    with pytest.raises(ValueError, match="beyond those of s4"):
        program("s4").run_on(np.array([1, 2, 8, 0], np.int8))
    with pytest.raises(ValueError, match="beyond those of u2"):
        program("u2").run_on(np.array([1, 2, 4, 0], np.uint8))
    with pytest.raises(ValueError, match="beyond those of pred"):
        program("pred").run_on(np.array([0, 1, 2, 1], np.uint8).view(bool))
    for numbers, dtype in (([1, 2, 3, 300], "u8"), ([1, 2, 3, 4.5], "s32"), ([1, 2, 3, 9], "s4")):
        with pytest.raises(ValueError, match=f"no {dtype}"):
            program(dtype).run_on(numbers)


def test_layouts():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    for given in (x, np.asfortranarray(x), np.vstack([x, x])[:3], x[::-1][::-1]):
        assert program("f32", "3,4").run_on(given).tolist() == x.tolist()
    odd = np.zeros(4 * 4 + 1, np.uint8)[1:].view(np.float32)  # not aligned
    assert program("f32").run_on(odd).tolist() == [0] * 4
    with pytest.raises(TypeError):
        program("f32").run_on(np.arange(4, dtype=">f4"))


def test_wrong_arrays():
    for value in ("text", b"bytes", None, object(), {}, [1, "a"], np.array(["2020-01-01"] * 4, "M8[D]")):
        with pytest.raises(TypeError):
            program("f32").run_on(value)
        with pytest.raises(TypeError):
            hlokit.Array(value)
    with pytest.raises(ValueError, match="no element type"):
        hlokit.Array([1.0], "f33")
    with pytest.raises(TypeError):
        hlokit.Array(np.zeros(2, np.float64), "s32")


def test_masked_elements_have_no_values():
    data = np.arange(4, dtype="f4")
    copy, masked = program("f32"), np.ma.masked_array(data, [True, False, False, False])
    for take in (copy.run_on, lambda array: hlokit.Array(array, "f32"), lambda array: hlokit.Executable(copy)(array)):
        with pytest.raises(ValueError, match="elements of the array are masked; its method filled"):
            take(masked)
    for array in (masked.filled(7), np.ma.masked_array(data, [False] * 4), np.ma.masked_array(data)):
        assert copy.run_on(array).tolist() == np.asarray(array).tolist()
    fields = np.zeros(4, dtype=[("mask", "f4")])["mask"]
    assert copy.run_on(fields).tolist() == [0.0] * 4


def test_constants_of_any_type():
    m = hlokit.module()
    b = hlokit.Builder(m.entry)
    half = b.constant(0.5, shape="bf16[2]")
    assert half.literal.view(np.uint16).tolist() == [0x3F00] * 2
    assert str(b.constant([1.0, 2.0]).shape) == "f32[2]{0}" and b.constant(3).shape.dtype == "s32"
    assert b.constant(True).shape.dtype == "pred" and b.constant(np.zeros(2)).shape.dtype == "f64"
    for value, shape in ((2**40, "s32[]"), (1.5, "s32[]"), (-1, "u8[]"), ("x", None), (None, None)):
        with pytest.raises((ValueError, TypeError)):
            b.constant(value, shape)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    x = torch.arange(4, dtype=torch.bfloat16)
    result = program("bf16").run_on(x, results="array")
    assert torch.equal(torch.from_dlpack(result), x)
    assert program("f32").run_on(x.float()).tolist() == [0, 1, 2, 3]
    assert program("pred").run_on(torch.tensor([True, False, True, True])).tolist() == [True, False, True, True]
    shared = torch.zeros(4)
    torch.from_dlpack(hlokit.Array(shared))[2] = 5
    assert shared[2] == 5
    with pytest.raises(TypeError, match="detach"):
        program("f32").run_on(torch.ones(4, requires_grad=True))


def test_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1, 2, 3, 4], ml_dtypes.bfloat16)
    result = program("bf16").run_on(x)
    assert result.dtype == ml_dtypes.bfloat16 and result.tolist() == x.tolist()


def test_narrow_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = np.array([1, -1, 7, -8]).astype(ml_dtypes.int4)
    result = program("s4").run_on(x)
    assert result.dtype == ml_dtypes.int4 and (result == x).all()
    array = hlokit.Array(x)
    assert array.dtype == "s4" and np.asarray(array).dtype == ml_dtypes.int4
    assert not hasattr(array, "__array_interface__")
