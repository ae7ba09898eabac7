# SPDX-License-Identifier: Apache-2.0
"""The hook for torch_xla, with a stand-in for it."""

import os
import sys
import types

import pytest

import hlokit.jax
import hlokit.torch_xla


def test_the_plugin_answers_what_torch_xla_asks(monkeypatch):
    monkeypatch.setenv("HLOKIT_PJRT_PLUGIN", "/somewhere/libhlokit_pjrt.so")
    plugin = hlokit.torch_xla.Plugin(device="v5p:2x2x2")
    assert plugin.library_path() == "/somewhere/libhlokit_pjrt.so"
    assert plugin.physical_chip_count() == 1
    assert plugin.client_create_options() == {"device": "v5p:2x2x2"}
    assert plugin.requires_xla_coordinator() is False
    assert plugin.configure_multiprocess(0, 1) == 1
    with pytest.raises(RuntimeError, match="one process"):
        plugin.configure_multiprocess(1, 2)


def test_register_selects_the_plugin(monkeypatch):
    registered = {}
    plugins = types.ModuleType("torch_xla.experimental.plugins")
    plugins.register_plugin = lambda name, plugin: registered.setdefault(name, plugin)
    plugins.use_dynamic_plugins = lambda: registered.setdefault("dynamic", True)
    experimental = types.ModuleType("torch_xla.experimental")
    experimental.plugins = plugins
    for name, module in (("torch_xla", types.ModuleType("torch_xla")), ("torch_xla.experimental", experimental),
                         ("torch_xla.experimental.plugins", plugins)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("PJRT_DEVICE", "placeholder")
    monkeypatch.delenv("PJRT_DEVICE")
    hlokit.torch_xla.register(num_devices=4)
    assert registered["HLOKIT"].client_create_options() == {"num_devices": 4}
    assert registered["dynamic"] is True
    assert os.environ["PJRT_DEVICE"] == "HLOKIT"
