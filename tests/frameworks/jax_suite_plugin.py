# SPDX-License-Identifier: Apache-2.0
"""The part of jax_suite.py within the tests' process: a plugin of pytest that sets JAX up and records the tests.

Environment: that of suite_plugin.py; SUITE_SOURCE, a copy of JAX's repository; JAX_SUITE_DEVICE_UNDER_TEST.
"""
import os
import pathlib

import suite_plugin


def add_test_utilities():
    """Modules of JAX that only its tests use are not in its releases: those of the repository that the tests are of."""
    import jax
    import jax._src.pallas

    source = pathlib.Path(os.environ["SUITE_SOURCE"])
    jax._src.__path__.append(str(source / "jax/_src"))
    jax._src.pallas.__path__.append(str(source / "jax/_src/pallas"))


def name_device_of_stored_programs(device):
    """The tests of programs that older releases have exported ask for the default platform instead of that setting."""
    try:
        from jax._src.internal_test_util import export_back_compat_test_util as util
    except ImportError:
        return
    util.CompatTestBase.default_jax_backend = lambda self: device


def pytest_configure(config):
    add_test_utilities()
    if device := os.environ.get("JAX_SUITE_DEVICE_UNDER_TEST"):
        import jax
        from jax._src import test_util  # noqa: F401: it defines the flag

        jax.config.update("jax_test_dut", device)
        name_device_of_stored_programs(device)
        # JAX's tests compare its settings before and after; the first use of a platform may change them.
        jax.devices()
    suite_plugin.register(config)
