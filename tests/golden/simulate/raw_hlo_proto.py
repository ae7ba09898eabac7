# SPDX-License-Identifier: Apache-2.0
"""Prints parts of the HloProto in a profile by field numbers only, like `protoc --decode_raw`.

  raw_hlo_proto.py FILE.xplane.pb module | INSTRUCTION ...

Each instruction is one line, its name first. `module` is the module without computations and schedule.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from xplane_check import Plane, fields, group, one  # noqa: E402


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def show(name, data):
    raw = subprocess.run(["protoc", "--decode_raw"], input=data, check=True, capture_output=True).stdout.decode()
    print(name, "=", " ".join(raw.split()))


def main():
    with open(sys.argv[1], "rb") as file:
        space = group(file.read())
    plane = next(plane for plane in map(Plane, space[1]) if plane.name == "/host:metadata")
    (metadata,) = plane.events.values()
    module = one(group(plane.stats(metadata, 5)["Hlo Proto"]), 1)
    instructions = {}
    for computation in group(module)[3]:
        for instruction in group(computation)[2]:
            instructions[one(group(instruction), 1).decode()] = instruction
    for name in sys.argv[2:]:
        if name != "module":
            show(name, instructions[name])
            continue
        kept = b""
        for number, value in fields(module):
            if number in (3, 4, 7):
                continue
            kept += varint(number << 3 | (0 if isinstance(value, int) else 2))
            kept += varint(value) if isinstance(value, int) else varint(len(value)) + value
        show(name, kept)


if __name__ == "__main__":
    main()
