# SPDX-License-Identifier: Apache-2.0
"""The part of torch_xla_suite.py within the tests' process: a plugin of pytest that records the tests.

torch_xla's tests choose by the name of the device which of them apply, and know HLOKIT not at all. While they are
collected they are told CPU, so that on hlokit those apply that apply on the CPU device; torch_xla itself is not.
Environment: that of suite_plugin.py; SUITE_FILE, the file whose tests run.
"""
import os
import sys

import pytest
import suite_plugin
from absl import flags
from absl.testing import absltest  # noqa: F401: it defines flags


class Collection:
    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self):
        import torch_xla  # noqa: F401: it registers the plugins of the device by its name
        import torch_xla.runtime
        from torch_xla.core import xla_model

        torch_xla.runtime.set_device_type = keeping_device(torch_xla.runtime.set_device_type)
        # What Python sees; getenv, with which the runtime reads it, is as before.
        name = os.environ.encodekey("PJRT_DEVICE")
        device = os.environ._data[name]
        os.environ._data[name] = b"CPU"
        hardware = xla_model.xla_device_hw
        xla_model.xla_device_hw = lambda device: "CPU"
        try:
            return (yield)
        finally:
            os.environ._data[name] = device
            xla_model.xla_device_hw = hardware


def keeping_device(set_device_type):
    """Tests of the runtime select the CPU device where another is not enough; hlokit is."""

    def set_device_type_but_cpu(name):
        if name != "CPU" or os.environ.get("PJRT_DEVICE") != "HLOKIT":
            set_device_type(name)

    return set_device_type_but_cpu


def pytest_configure(config):
    # The tests parse the arguments of the program that they are.
    sys.argv = [os.environ["SUITE_FILE"]]
    flags.FLAGS(sys.argv)
    config.pluginmanager.register(Collection(), "torch_xla_suite_collection")
    suite_plugin.register(config)
