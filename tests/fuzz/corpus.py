#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saved inputs of a fuzz target, one on each line of a text file: bytes other than printable ASCII, and the backslash, as
\\xNN. Sorted by length, then by bytes.

  corpus.py pack DIR FILE      write the files of DIR to FILE, the shortest first, up to MAX_BYTES
  corpus.py unpack FILE DIR    write each input to a file of DIR, named by its hash
"""
import hashlib
import pathlib
import sys

MAX_BYTES = 150_000


def escape(data):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in data)


def unescape(line):
    return line.encode("ascii").decode("unicode_escape").encode("latin-1")


def pack(folder, file):
    inputs = {path.read_bytes() for path in pathlib.Path(folder).iterdir() if path.is_file()}
    text = ""
    for line in (escape(data) + "\n" for data in sorted(inputs, key=lambda data: (len(data), data))):
        if len(text) + len(line) > MAX_BYTES:
            break
        text += line
    pathlib.Path(file).parent.mkdir(parents=True, exist_ok=True)
    pathlib.Path(file).write_text(text, encoding="ascii")


def unpack(file, folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for line in pathlib.Path(file).read_text(encoding="ascii").split("\n")[:-1]:
        data = unescape(line)
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](sys.argv[2], sys.argv[3])
