# SPDX-License-Identifier: Apache-2.0
"""Programs that a newcomer to JAX writes, on the plugin and on JAX's CPU backend.

    /path/to/venv/bin/python tests/frameworks/jax_newcomer.py [build/release] [--devices=8] [--only=linalg]

prints a line for each program that fails, `N passed, N failed`, and exits with 1 if one failed, or a process did not end as
it should. jax_compare.TOLERANCES says what may differ.
"""

import importlib.metadata
import sys

import jax_compare

# Explicit meshes and unreduced values came later.
release = tuple(map(int, importlib.metadata.version("jax").split(".")[:2]))
sharded = ["sharded", "explicit"] if release >= (0, 12) else ["sharded"]
sys.exit(jax_compare.compare(__doc__, ["arrays", "linalg", "randoms", "transforms", "system", "interfaces"], sharded))
