# SPDX-License-Identifier: Apache-2.0
"""What a program of the comparison is: inputs of NumPy, a function of JAX, and the same function of PyTorch."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Makes a function faster (torch.compile), or gives it back (eager).
Compiler = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclasses.dataclass(frozen=True)
class Program:
    """One row of the table.

    `inputs` draws the arguments: a tuple of arrays, and of lists of arrays. `jax` takes them as JAX's
    arrays; it is given to `jax.jit`. `torch` takes PyTorch's tensors and a compiler, and returns a function without
    arguments that computes once; None where PyTorch has no program of its own for the job. Results of the two, in the
    order of `jax.tree.leaves`, differ by at most `tolerance`, relative to the largest magnitude of an array; integers are
    equal.
    """

    name: str
    inputs: Callable[[np.random.Generator], tuple[Any, ...]]
    jax: Callable[..., Any]
    torch: Callable[[tuple[Any, ...], Compiler], Callable[[], Any]] | None
    tolerance: float = 1e-4
    # Of a row whose results are not comparable (random numbers, other algorithms' order), why.
    incomparable: str = ""


def function(f: Callable[..., Any]) -> Callable[[tuple[Any, ...], Compiler], Callable[[], Any]]:
    """PyTorch's side of a program that is one function of its inputs, without gradients."""

    def build(arguments: tuple[Any, ...], compiler: Compiler) -> Callable[[], Any]:
        import torch

        compiled = compiler(f)

        def run() -> Any:
            with torch.no_grad():
                return compiled(*arguments)

        return run

    return build


def training(loss: Callable[..., Any], rate: float) -> Callable[[tuple[Any, ...], Compiler], Callable[[], Any]]:
    """PyTorch's side of a step of gradient descent: (loss, new parameters). `loss` takes a list of parameters first."""

    def build(arguments: tuple[Any, ...], compiler: Compiler) -> Callable[[], Any]:
        import torch

        parameters = [p.requires_grad_() for p in arguments[0]]
        compiled = compiler(loss)

        def run() -> Any:
            value = compiled(parameters, *arguments[1:])
            gradients = torch.autograd.grad(value, parameters)
            with torch.no_grad():
                return value, torch._foreach_sub(parameters, gradients, alpha=rate)

        return run

    return build


def jax_training(loss: Callable[..., Any], rate: float) -> Callable[..., Any]:
    """JAX's side of the same step."""

    def step(parameters: Any, *arguments: Any) -> Any:
        import jax

        value, gradients = jax.value_and_grad(loss)(parameters, *arguments)
        return value, [p - rate * g for p, g in zip(parameters, gradients)]

    return step


def normal(*shapes: Sequence[int], scale: float = 1.0, dtype: str = "float32") -> Callable[..., tuple[Any, ...]]:
    """Inputs that are arrays of normal numbers of these shapes."""
    return functools.partial(_normal, shapes=shapes, scale=scale, dtype=dtype)


def _normal(random: np.random.Generator, shapes: Any, scale: float, dtype: str) -> tuple[Any, ...]:
    return tuple(array(random, shape, scale, dtype) for shape in shapes)


BFLOAT16 = "V2"  # NumPy has no such type: two bytes, which a server turns into its framework's


def array(random: np.random.Generator, shape: Sequence[int], scale: float = 1.0, dtype: str = "float32",
          mean: float = 0.0) -> Any:
    """Normal numbers."""
    values = random.standard_normal(tuple(shape), np.float32) * np.float32(scale) + np.float32(mean)
    if dtype == "complex64":
        return values + 1j * random.standard_normal(tuple(shape), np.float32)
    if dtype == BFLOAT16:
        bits = values.view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).view(BFLOAT16)  # to the nearest, to even
    return values.astype(dtype)
