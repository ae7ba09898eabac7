#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Arrays of the NumPy that is installed, given to programs and taken from them: every type, layout and way.

  python3 numpy_arrays.py

Runs with any environment that has hlokit and NumPy, and ml_dtypes if it is installed. The last line is `N passed, N failed`.
"""

import ctypes
import sys

import numpy as np

import hlokit

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None

NUMPY_TYPES = {
    "pred": "bool", "s8": "int8", "s16": "int16", "s32": "int32", "s64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64",
    "c128": "complex128",
}
ML_TYPES = {
    "bf16": "bfloat16", "f8e3m4": "float8_e3m4", "f8e4m3": "float8_e4m3", "f8e4m3fn": "float8_e4m3fn",
    "f8e4m3b11fnuz": "float8_e4m3b11fnuz", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2": "float8_e5m2",
    "f8e5m2fnuz": "float8_e5m2fnuz", "f8e8m0fnu": "float8_e8m0fnu", "f4e2m1fn": "float4_e2m1fn", "s4": "int4",
    "u4": "uint4", "s2": "int2", "u2": "uint2",
}


def dtypes():
    """Pairs of hlokit's name of a type and NumPy's dtype of it."""
    for name, numpy_name in NUMPY_TYPES.items():
        yield name, np.dtype(numpy_name)
    for name, ml_name in ML_TYPES.items():
        if hasattr(ml_dtypes, ml_name):
            yield name, np.dtype(getattr(ml_dtypes, ml_name))


def values(dtype, count=6):
    """Elements that differ, of which none is zero."""
    if dtype == bool:
        return np.array([True, False, True, True, False, True][:count])
    if dtype.name == "uint2":
        return np.array([1, 2, 3, 3, 2, 1][:count]).astype(dtype)
    if dtype.name == "int2":
        return np.array([1, -1, -2, 1, -2, -1][:count]).astype(dtype)
    if dtype.name == "int4":
        return np.array([1, -1, -8, 7, -2, 3][:count]).astype(dtype)
    if dtype.name == "float8_e8m0fnu":
        return np.array([1, 2, 4, 8, 16, 0.5][:count]).astype(dtype)
    if dtype.kind == "i":
        return np.array([1, -2, 3, -5, 6, np.iinfo(dtype).min][:count]).astype(dtype)
    if dtype.kind == "u" or dtype.name == "uint4":
        return np.array([1, 2, 3, 5, 6, 7][:count]).astype(dtype)
    return np.array([1, -2, 3, 0.5, -6, 1.5][:count] if dtype.name.startswith("float4") or dtype.kind != "c"
                    else [1 + 2j, -2, 3j, 0.5 - 1j, -6, 1.5][:count]).astype(dtype)


def copying(dtype, dims="6"):
    return hlokit.parse(f"HloModule a\nENTRY e {{ p = {dtype}[{dims}] parameter(0) ROOT c = {dtype}[{dims}] copy(p) }}")


def same(found, wanted):
    """The bits too: NumPy may compare types of ml_dtypes by rounding."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype, f"{found.dtype}, not {wanted.dtype}"
    assert found.shape == wanted.shape, f"{found.shape}, not {wanted.shape}"
    if wanted.dtype.name in ("int2", "int4"):
        # Whether the bits beyond an element repeat its sign differs between versions of ml_dtypes.
        assert (found == wanted).all() and (found.astype("i1") == wanted.astype("i1")).all(), f"{found}, not {wanted}"
    else:
        assert found.tobytes() == wanted.tobytes(), f"{found.tolist()}, not {wanted.tolist()}"


def adds():
    module = hlokit.parse("HloModule m\nENTRY e { a = f32[3] parameter(0) ROOT t = f32[3] add(a, a) }")
    same(module.run_on(np.arange(3, dtype="f4")), np.array([0, 2, 4], "f4"))


def each_type(name, dtype):
    given = values(dtype)
    same(copying(name).run_on(given), given)
    assert given.tolist() == values(dtype).tolist()  # and stays as it is


def each_type_strided(name, dtype):
    given = values(dtype)
    same(copying(name, "3").run_on(given[::2]), given[::2])
    same(copying(name, "6").run_on(given[::-1]), given[::-1])
    same(copying(name, "3,2").run_on(given.reshape(2, 3).T), given.reshape(2, 3).T.copy())
    same(copying(name, "2,3").run_on(np.asfortranarray(given.reshape(2, 3))), given.reshape(2, 3))


def each_type_scalar_and_empty(name, dtype):
    given = values(dtype)
    same(copying(name, "").run_on(given[3]), given[3])
    same(copying(name, "").run_on(given[3:4].reshape(())), given[3])
    same(copying(name, "0,2").run_on(np.zeros((0, 2), dtype)), np.zeros((0, 2), dtype))


def each_type_as_array(name, dtype):
    given = values(dtype)
    array = hlokit.Array(given)
    assert array.dtype == name, array.dtype
    same(array.numpy(), given)
    result = copying(name).run_on(array, results="array")
    same(np.asarray(result), given)


def each_type_by_dlpack(name, dtype):
    if name not in NUMPY_TYPES or name == "pred":
        return
    given = values(dtype)
    same(np.from_dlpack(copying(name).run_on(given, results="array")), given)


def tuples():
    module = hlokit.parse("HloModule m\nENTRY e { a = f64[2] parameter(0) b = s16[] parameter(1) "
                          "t = (s16[], f64[2]) tuple(b, a) ROOT u = ((s16[], f64[2]), f64[2]) tuple(t, a) }")
    (second, first), again = module.run_on(np.array([1.5, -2]), np.int16(-7))
    same(first, np.array([1.5, -2]))
    same(second, np.array(-7, "i2"))
    same(again, first)


def constants():
    module = hlokit.parse("HloModule m\nENTRY e { ROOT c = s32[2,2] constant({{1, 2}, {3, -4}}) }")
    literal = module["c"].literal
    same(literal, np.array([[1, 2], [3, -4]], "i4"))
    assert not literal.flags.writeable
    made = hlokit.module()
    constant = hlokit.Builder(made.entry).constant(np.array([0.5, 8], "f8"))
    same(constant.literal, np.array([0.5, 8]))


def large():
    given = np.arange(1 << 20, dtype="u4").reshape(1024, 1024)
    same(copying("u32", "1024,1024").run_on(given), given)
    same(copying("u32", "1024,512").run_on(given[:, 1::2]), given[:, 1::2].copy())


def memory_is_shared():
    given = values(np.dtype("f4"))
    result = copying("f32").run_on(given, results="array")
    assert np.shares_memory(np.asarray(result), np.from_dlpack(result))
    address = np.asarray(result).ctypes.data
    assert np.frombuffer((ctypes.c_char * 24).from_address(address), "f4").tolist() == given.tolist()


def refused():
    for wrong in (np.arange(6, dtype=">f4"), np.arange(6, dtype="f8"), np.array(["a"] * 6), np.zeros(6, "M8[s]")):
        try:
            copying("f32").run_on(wrong)
        except TypeError:
            continue
        raise AssertionError(f"{wrong.dtype} is taken for f32")
    try:
        copying("f32").run_on(np.zeros(5, "f4"))
    except ValueError:
        return
    raise AssertionError("5 elements are taken for 6")


def main():
    cases = [(case.__name__, case, ()) for case in (adds, tuples, constants, large, memory_is_shared, refused)]
    for case in (each_type, each_type_strided, each_type_scalar_and_empty, each_type_as_array, each_type_by_dlpack):
        cases += [(f"{case.__name__} {name}", case, (name, dtype)) for name, dtype in dtypes()]
    passed = failed = 0
    for name, case, arguments in cases:
        try:
            case(*arguments)
            passed += 1
        except Exception as error:  # whatever it is, the next case runs
            failed += 1
            print(f"FAILED {name}: {type(error).__name__}: {error}")
    print(f"NumPy {np.__version__}, ml_dtypes {getattr(ml_dtypes, '__version__', 'not installed')}, "
          f"Python {sys.version.split()[0]}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
