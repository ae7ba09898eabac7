#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The largest buffers at the peak of memory, over all dumps of a folder.

  largest_buffers.py FOLDER [COUNT]
"""

import pathlib
import sys

import hlokit


def main(folder: str, count: int = 10) -> None:
    rows = []
    for path in sorted(pathlib.Path(folder).glob("*.hlo")):
        try:
            module = hlokit.load(path)
        except hlokit.HloError as error:
            print(f"{path.name}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        memory = module.memory()
        if memory.whole_program_devices > 1:
            print(f"{path.name}: not partitioned: bytes of all {memory.whole_program_devices} devices", file=sys.stderr)
        for buffer in memory.live_at_peak:
            i = buffer.instruction
            rows.append((buffer.bytes, path.name, i.name, str(i.shape), buffer.kind, i.metadata.op_name))
    rows.sort(key=lambda row: (-row[0], row[1:]))
    for size, *rest in rows[:count]:
        print(f"{size / 2**20:10.3f} MiB  " + "  ".join(rest))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:]))
