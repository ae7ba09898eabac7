# SPDX-License-Identifier: Apache-2.0
"""Programs of libraries on JAX (optax, flax, equinox, numpyro), on the plugin and on JAX's CPU backend.

    /path/to/venv/bin/python tests/frameworks/jax_ecosystem.py [build/release] [--only=flax]

A program whose package is not installed fails. Prints and exits as jax_newcomer.py.
"""

import sys

import jax_compare

sys.exit(jax_compare.compare(__doc__, ["ecosystem"], ["ecosystem"]))
