# SPDX-License-Identifier: Apache-2.0
"""Programs of libraries on JAX, on the plugin and on JAX's CPU backend: optax, flax, equinox and numpyro, or those of
other modules of jax_programs (keras_models, tokamax_kernels, checkpoints, torchax_models, maxtext_models).

    /path/to/venv/bin/python tests/frameworks/jax_ecosystem.py [build/release] [--modules=keras_models] [--only=flax]

A program whose package is not installed fails. Prints and exits as jax_newcomer.py.
"""

import sys

import jax_compare

sys.exit(jax_compare.compare(__doc__, ["ecosystem"], ["ecosystem"]))
