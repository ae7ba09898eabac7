# SPDX-License-Identifier: Apache-2.0
"""Adds field 900 to a binary message, as a newer XLA may: to all messages at a path of field numbers.

  add_field.py FILE OUTPUT [NUMBER...]
"""
import sys

FIELD = b"\xa2\x38\x03new"  # field 900, three bytes


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def edited(message, path):
    if not path:
        return message + FIELD
    out, at = bytearray(), 0
    while at < len(message):
        begin = at
        tag, at = read_varint(message, at)
        kind = tag & 7
        size = 0
        if kind == 0:
            _, at = read_varint(message, at)
        else:
            size = 8 if kind == 1 else 4
            if kind == 2:
                size, at = read_varint(message, at)
        if kind == 2 and tag >> 3 == path[0]:
            inner = edited(message[at : at + size], path[1:])
            out += varint(tag) + varint(len(inner)) + inner
        else:
            out += message[begin : at + size]
        at += size
    return bytes(out)


with open(sys.argv[1], "rb") as file:
    data = file.read()
with open(sys.argv[2], "wb") as file:
    file.write(edited(data, [int(number) for number in sys.argv[3:]]))
