# SPDX-License-Identifier: Apache-2.0
"""What JAX looks for in its namespace package of plugins."""


def initialize() -> None:
    """Called by JAX when it first needs a platform."""
    import hlokit.jax

    hlokit.jax.register()
