# SPDX-License-Identifier: Apache-2.0
"""The plugin beside the extension module, and where hlokit.jax looks for it. tests/frameworks has what needs JAX."""

import ctypes
import pathlib
import subprocess
import sys

import pytest

import hlokit
import hlokit.jax


def plugin_or_skip() -> str:
    try:
        return hlokit.jax.plugin_path()
    except FileNotFoundError:
        pytest.skip("built without the PJRT plugin")


def test_hlokit_jax_does_not_load_the_extension_module():
    program = ("import sys, hlokit.jax; from hlokit import jax; assert 'hlokit._hlokit' not in sys.modules; "
               "import hlokit; assert 'parse' in hlokit.__all__ and 'parse' in dir(hlokit); hlokit.parse; "
               "assert 'hlokit._hlokit' in sys.modules")
    subprocess.run([sys.executable, "-c", program], check=True)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'parze'"):
        hlokit.parze


def test_a_missing_plugin_is_an_error_that_says_where_it_was_sought(monkeypatch):
    monkeypatch.setattr(pathlib.Path, "exists", lambda self: False)
    monkeypatch.delenv("HLOKIT_PJRT_PLUGIN", raising=False)
    with pytest.raises(FileNotFoundError, match="HLOKIT_PJRT_PLUGIN"):
        hlokit.jax.plugin_path()


def test_the_plugin_loads_beside_the_extension_module():
    library = ctypes.CDLL(plugin_or_skip())
    library.GetPjrtApi.restype = ctypes.POINTER(ctypes.c_size_t)
    assert library.GetPjrtApi()[0] == 1144  # bytes of the table
    assert hlokit.parse("f { ROOT x = f32[2] parameter(0) }").entry is not None


def test_handlers_have_the_types_of_ml_dtypes_that_are_there(monkeypatch):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    from hlokit.jax import _ffi

    for number, name in [(11, "float32"), (16, "bfloat16"), (21, "int4"), (22, "uint4"), (33, "float8_e8m0fnu")]:
        assert _ffi._dtype(number).name == name
    monkeypatch.delattr(ml_dtypes, "float8_e8m0fnu")
    with pytest.raises(TypeError, match="has no float8_e8m0fnu"):
        _ffi._dtype(33)
    with pytest.raises(TypeError, match="XLA's type 14"):
        _ffi._dtype(14)
