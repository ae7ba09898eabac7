#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A histogram of collectives: number and bytes by opcode, group size and power of two of their bytes.

  collectives.py MODULE...
"""

import collections
import sys

import hlokit

COLLECTIVES = {"all-gather", "all-reduce", "all-to-all", "collective-permute", "reduce-scatter", "collective-broadcast",
               "collective-reduce"}


def main(*paths: str) -> None:
    counts: collections.Counter = collections.Counter()
    total: collections.Counter = collections.Counter()
    for path in paths:
        for i in hlokit.load(path).instructions():
            opcode = i.opcode.removesuffix("-start")
            if opcode not in COLLECTIVES:
                continue
            groups = i.attribute("replica_groups") or ()
            size = len(groups[0]) if isinstance(groups, tuple) and groups else 0
            bytes_ = sum(o.shape.bytes for o in i.operands)
            counts[opcode, size, bytes_.bit_length()] += 1
            total[opcode, size, bytes_.bit_length()] += bytes_
    for key in sorted(counts):
        opcode, size, power = key
        print(f"{opcode:22} groups of {size or 'all':>4}  <{2**power:>12} bytes {counts[key]:6}  {'#' * counts[key]}"[:100])
    print(f"{sum(counts.values())} collectives, {sum(total.values())} bytes")


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
