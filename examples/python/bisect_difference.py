#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the first pass of a list after which the results of a program differ, on random arguments.

  bisect_difference.py MODULE PASS,PASS,... [RELATIVE_ERROR]
"""

import sys

import numpy as np

import hlokit


def arguments(module: hlokit.Module) -> list:
    rng = np.random.default_rng(0)
    values = []
    for shape in hlokit.Executable(module).argument_shapes:
        value = rng.standard_normal(shape.dims) if shape.dtype.startswith(("f", "bf")) else rng.integers(0, 3, shape.dims)
        values.append(np.asarray(value).astype(shape.numpy_dtype))
    return values


def leaves(value):
    if isinstance(value, tuple):
        for element in value:
            yield from leaves(element)
    else:
        yield np.asarray(value, dtype=np.float64)


def main(path: str, pipeline: str, tolerance: float = 1e-5) -> int:
    module = hlokit.load(path)
    given = arguments(module)
    expected = list(leaves(module.run_on(*given)))
    for step in pipeline.split(","):
        module.run(step)
        for k, (now, before) in enumerate(zip(leaves(module.run_on(*given)), expected)):
            error = np.max(np.abs(now - before), initial=0) / max(np.max(np.abs(before), initial=0), 1e-30)
            if not error <= tolerance:
                print(f"after `{step}` result {k} differs by {error:.3g} of its largest value")
                return 1
    print("no pass changes the results")
    return 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])))
