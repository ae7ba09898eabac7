#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pass in Python among those of the library: x / sqrt(y) becomes x * rsqrt(y).

  custom_rewrite.py MODULE > CHANGED
"""

import sys

import hlokit


@hlokit.rewrite("divide(%x, sqrt(%y))")
def divide_by_sqrt(match: hlokit.Match) -> hlokit.Instruction:
    builder = hlokit.Builder(match.root)
    return builder.multiply(match["x"], builder.rsqrt(match["y"]))


def main(path: str) -> None:
    module = hlokit.load(path)
    before = len(module.find(opcode="divide"))
    module.run("simplify,divide-by-sqrt,simplify", verify_each=True)
    print(f"{before - len(module.find(opcode='divide'))} divisions replaced", file=sys.stderr)
    print(module)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    main(sys.argv[1])
