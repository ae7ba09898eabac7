#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What changed between two dumps: counts by scope, then the text. Exits with 1 if anything did.

  diff_dumps.py A B
"""

import collections
import sys

import hlokit


def main(first: str, second: str) -> int:
    difference = hlokit.diff(hlokit.load(first), hlokit.load(second))
    counts: collections.Counter = collections.Counter()
    for instruction in difference.added:
        counts[instruction.metadata.scope or "(no scope)", "added"] += 1
    for instruction in difference.removed:
        counts[instruction.metadata.scope or "(no scope)", "removed"] += 1
    for instruction, _, aspects in difference.changed:
        counts[instruction.metadata.scope or "(no scope)", "/".join(aspects)] += 1
    for (scope, what), count in sorted(counts.items()):
        print(f"{count:6} {what:20} {scope}")
    print(difference)
    return int(bool(difference))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
