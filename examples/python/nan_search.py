#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first instruction that produces a NaN or an infinity, on arguments from files or on random ones, and what it read.

  nan_search.py MODULE [ARGUMENT.npy...]
"""

import sys

import numpy as np

import hlokit


def random_arguments(module: hlokit.Module) -> list:
    rng = np.random.default_rng(0)
    shapes = hlokit.Executable(module, fill_elided="random").argument_shapes
    return [hlokit.Array(rng.standard_normal(s.dims).astype(np.float32), s.dtype) if "f" in s.dtype
            else rng.integers(0, 3, s.dims).astype(s.numpy_dtype) for s in shapes]


def main(path: str, *files: str) -> int:
    module = hlokit.load(path)
    arguments = [np.load(f) for f in files] if files else random_arguments(module)
    try:
        module.run_on(*arguments, debug_nans=True, fill_elided="random")
    except hlokit.RunError as error:
        print(error)
        name = error.diagnostics[0].message.partition(":")[0]
        culprit = next(i for i in module.instructions() if i.name == name)
        part = module.extract([culprit], depth=2)
        print(f"the part around it:\n{part}")
        return 1
    print("all values are finite")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
