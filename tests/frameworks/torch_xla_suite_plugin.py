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


class Collection:
    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self):
        import torch_xla  # noqa: F401: it registers the plugins of the device by its name

        # What Python sees; getenv, with which the runtime reads it, is as before.
        name = os.environ.encodekey("PJRT_DEVICE")
        device = os.environ._data[name]
        os.environ._data[name] = b"CPU"
        try:
            return (yield)
        finally:
            os.environ._data[name] = device


def pytest_configure(config):
    # The tests parse the arguments of the program that they are.
    sys.argv = [os.environ["SUITE_FILE"]]
    config.pluginmanager.register(Collection(), "torch_xla_suite_collection")
    suite_plugin.register(config)
