# SPDX-License-Identifier: Apache-2.0
"""Writes an HloProto as XLA splits one, into two parts that are merged. write_riegeli.py HLO_PROTO FILE.

Chunks are not compressed, and hashes are zeros but for the first, by which a file is known.
"""
import sys


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7f | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """The top-level fields of a message of which all are bytes or varints, with their tags."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = read_varint(data, at)
        size, at = read_varint(data, at)
        at += size if tag & 7 == 2 else 0
        yield data[begin:at]


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def chunk(kind, records, data):
    return bytes(8) + len(data).to_bytes(8, "little") + bytes(8) + kind + len(records).to_bytes(7, "little") + \
        sum(map(len, records)).to_bytes(8, "little") + data


def simple(records):
    sizes = b"".join(varint(len(r)) for r in records)
    return chunk(b"r", records, b"\0" + varint(len(sizes)) + sizes + b"".join(records))


def main():
    with open(sys.argv[1], "rb") as file:
        message = file.read()
    tag, at = read_varint(message, 0)
    assert tag == 1 << 3 | 2
    size, at = read_varint(message, at)
    parts = list(fields(message[at:at + size]))
    manifest = field(1, b"xla.HloProto") + field(2, field(2, b"")) * 2
    first, second = (field(1, b"".join(p)) for p in (parts[:2], parts[2:]))
    body = chunk(b"s", [], b"") + simple([manifest, first]) + simple([second])
    out = bytearray()
    block = 65536 - 24
    for begin in range(0, len(body), block):
        head = b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f" if begin == 0 else bytes(8)
        out += head + bytes(16) + body[begin:begin + block]
    with open(sys.argv[2], "wb") as file:
        file.write(out)


main()
