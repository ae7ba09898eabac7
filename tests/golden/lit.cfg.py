# SPDX-License-Identifier: Apache-2.0
# Golden tests: every .hlo and .test file below this directory has RUN lines and, mostly, FileCheck lines for their
# output.
#
# RUN lines are bash with pipefail. The project's tools, FileCheck, not, count and split-file are found by name; %s is
# the test file, %S its directory, %t a private scratch path. `REQUIRES: hlo-run` skips a test if that tool is not
# built.
import os
import shutil

import lit.formats

config.name = "golden"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".hlo", ".test"]
config.excludes = ["inputs"]
config.test_source_root = os.path.dirname(__file__)

config.environment["PATH"] = os.pathsep.join([config.hlokit_tools, config.llvm_tools, os.environ["PATH"]])
config.environment["HLOKIT_CODE_CACHE"] = "off"
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

if os.path.isdir(config.hlokit_tools):
    config.available_features.update(os.listdir(config.hlokit_tools))

# LLVM's reader of optimization records is not in each of its packages.
if shutil.which("llvm-remarkutil", path=config.environment["PATH"]):
    config.available_features.add("llvm-remarkutil")

# %mpirun starts processes, where the tools were built with MPI.
if shutil.which("mpirun") and os.path.exists(os.path.join(config.hlokit_tools, "../lib/hlokit/libhlokit_mpi.so")):
    config.available_features.add("mpi")
# The modules of the fast engine, where the tools were built with their libraries.
for library in ("onednn", "llvm"):
    if os.path.exists(os.path.join(config.hlokit_tools, f"../lib/hlokit/libhlokit_{library}.so")):
        config.available_features.add(library)
# The PJRT plugin.
plugin = os.path.join(config.hlokit_tools, "../lib/hlokit/libhlokit_pjrt.so")
if os.path.exists(plugin):
    config.available_features.add("pjrt")
config.substitutions.append(("%pjrt", plugin))
root = " --allow-run-as-root" if os.geteuid() == 0 else ""
config.substitutions.append(("%mpirun", f"mpirun -q{root} --oversubscribe"))
