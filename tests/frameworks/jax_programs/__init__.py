# SPDX-License-Identifier: Apache-2.0
"""JAX programs as a newcomer writes them. Each is a function that returns arrays, numbers and texts to compare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[], Any]] = {}


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    """Adds a program to its module's list."""
    PROGRAMS[f"{function.__module__.rsplit('.', 1)[-1]}.{function.__name__}"] = function
    return function


def program_since(*release: int) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Adds a program that older releases of JAX do not run, on their CPU either."""
    import jax

    return program if jax.__version_info__ >= release else lambda function: function
