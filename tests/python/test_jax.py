# SPDX-License-Identifier: Apache-2.0
"""Registration of the PJRT plugin, with a stand-in for JAX, and the plugin beside the extension module."""

import ctypes
import pathlib
import sys
import types

import pytest

import hlokit
import hlokit.jax


def plugin_or_skip() -> str:
    try:
        return hlokit.jax.plugin_path()
    except FileNotFoundError:
        pytest.skip("built without the PJRT plugin")


def test_register_gives_jax_the_library_and_the_options(monkeypatch):
    path = plugin_or_skip()
    calls = []
    bridge = types.ModuleType("jax._src.xla_bridge")
    bridge.register_plugin = lambda name, **arguments: calls.append((name, arguments))
    source = types.ModuleType("jax._src")
    source.xla_bridge = bridge
    for name, module in (("jax", types.ModuleType("jax")), ("jax._src", source), ("jax._src.xla_bridge", bridge)):
        monkeypatch.setitem(sys.modules, name, module)
    hlokit.jax.register(device="v5p:2x2x2", num_threads=2)
    ((name, arguments),) = calls
    assert name == "hlokit"
    assert arguments["library_path"] == path
    assert arguments["options"] == {"device": "v5p:2x2x2", "num_threads": 2}
    assert arguments["priority"] < 0  # JAX's own platforms stay the default


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
