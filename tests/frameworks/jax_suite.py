#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs JAX's own tests on the plugin, and on JAX's CPU backend those that do not pass, and compares test by test.

  jax_suite.py [--tests=DIR] [--build=DIR] [--results=DIR] [--engine=exact|fast] [--devices=N] [--files=GLOB]...
               [--shard=I/N] [--names=FILE] [--jobs=N] [--cpu=failed|all|none] [--table] [--again]

--tests: the folder `tests` of a copy of JAX's repository; without it HLOKIT_JAX_TESTS, or jax-source/tests beside the
environments of environment.py. Where there is none the exit code is 77. Results are kept by test, so a run that was ended goes on where it
was; --again forgets them. A file runs in a process of its own, those of --names in one for each number of devices; a test
that ends the process or takes more than --seconds is a crash or a hang, and the others go on in a new one.

Tests that fail here and pass on the CPU must be in jax_suite_failures.tsv, with the reason; exit code 1 if others do. The
last line is `N passed, N failed`.
"""
import os
import re
import sys

import suite


class JaxSuite(suite.Suite):
    framework = "JAX"
    variable = "HLOKIT_JAX_TESTS"
    source = "jax-source/tests"
    name = "jax_suite"

    def backends(self):
        build = os.path.abspath(self.options.build)
        plugin = f"{build}/lib/hlokit/libhlokit_pjrt.so"
        engine = self.options.engine

        def hlokit(devices):
            return suite.Backend(f"hlokit-{engine}-{devices}", {
                "JAX_PLATFORMS": "hlokit", "PYTHONPATH": f"{build}/python", "HLOKIT_PJRT_PLUGIN": plugin,
                "HLOKIT_DEVICE": f"cpu:{devices}", "HLOKIT_ENGINE": engine, "HLOKIT_NUM_THREADS": "1",
                "JAX_NUM_CPU_DEVICES": str(devices), "JAX_SUITE_DEVICE_UNDER_TEST": "cpu"})

        def cpu(devices):
            return suite.Backend(f"cpu-{devices}", {
                "JAX_PLATFORMS": "cpu", "PYTHONPATH": "", "JAX_NUM_CPU_DEVICES": str(devices),
                "JAX_SUITE_DEVICE_UNDER_TEST": "cpu"})

        return hlokit, cpu

    def found(self):
        return sorted(path.relative_to(self.tests).as_posix() for folder in (".", "pallas")
                      for path in (self.tests / folder).glob("*_test.py"))

    def devices(self, name):
        """What a file asks for: it says how many devices its tests need."""
        if self.options.devices:
            return self.options.devices
        asked = re.findall(r"request_cpu_devices\((\d+)\)", (self.tests / name).read_text())
        return max(map(int, asked), default=1)

    def variables(self, group):
        return {"JAX_NUM_GENERATED_CASES": "1", "JAX_SKIP_SLOW_TESTS": "1"}


if __name__ == "__main__":
    sys.exit(suite.main(JaxSuite, __doc__))
