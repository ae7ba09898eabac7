# SPDX-License-Identifier: Apache-2.0
"""Edits of the protocol on texts of the tests."""

import re


def apply_utf16(text, edits):
    """The text after the edits, whose columns are UTF-16 code units."""
    starts = [0] + [m.end() for m in re.finditer("\r\n|\r|\n", text)] + [len(text)]

    def offset(position):
        line = position["line"]
        if line >= len(starts) - 1:
            return len(text)
        begin, end = starts[line], starts[line + 1]
        units = position["character"]
        if text[begin:end].isascii():
            return min(begin + units, end)
        return begin + len(text[begin:end].encode("utf-16-le")[:2 * units].decode("utf-16-le"))

    placed = sorted(((offset(e["range"]["start"]), offset(e["range"]["end"]), e["newText"]) for e in edits))
    pieces, done = [], 0
    for begin, end, new in placed:
        pieces += [text[done:begin], new]
        done = end
    return "".join(pieces) + text[done:]
