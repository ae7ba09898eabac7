#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What an editor waits for: the times of hlo-lsp-server on a module of 4 MB, and on files that are named.

  lsp.py --bin=FOLDER [--runs=N] [--check] [FILE...]

Opening: from sending the text to its diagnostics, and then the outline. A key: processor time of the server for a change
in the middle of the text and the answer to one request after it, the median of N; with the diagnostics, which come after a
pause. Memory: resident, after the first parse and at the end. The goals are 1 s, 50 ms and 1.5 times. --check: exit code 1
if one is missed.
"""

import argparse
import pathlib
import statistics
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "tests/lsp"))
from client import Client
from large_module import large_module

OPEN_SECONDS, KEY_SECONDS, MEMORY_RATIO = 1.0, 0.050, 1.5


def measure(server, name, text, runs):
    """Prints the times; returns whether the goals are met."""
    client = Client(server, "--delay=0")
    uri = "file:///bench.hlo"
    begin = time.monotonic()
    client.open(uri, text)
    client.published(uri)
    opened = time.monotonic() - begin
    memory = client.memory()
    client.about("textDocument/documentSymbol", uri)
    outlined = time.monotonic() - begin
    lines = text.split("\n")
    line = next(k for k in range(len(lines) // 2, len(lines)) if " = " in lines[k] and "(" in lines[k])
    character = lines[line].index("(") + 1
    print(f"{name}: {len(text) / 1e6:.2f} MB, {len(lines)} lines")
    print(f"  open to diagnostics          {opened * 1e3:8.1f} ms   goal {OPEN_SECONDS * 1e3:.0f} ms")
    print(f"  open to outline              {outlined * 1e3:8.1f} ms")
    good = opened <= OPEN_SECONDS
    requests = {"hover": "textDocument/hover", "completion": "textDocument/completion",
                "definition": "textDocument/definition", "hints of the page": "textDocument/inlayHint",
                "tokens of the page": "textDocument/semanticTokens/range", "diagnostics": None}
    page = {"range": {"start": {"line": line - 20, "character": 0}, "end": {"line": line + 40, "character": 0}}}
    for label, method in requests.items():
        times = []
        for k in range(runs):
            # A name becomes longer and shorter again, a valid text and one with an error in turns.
            at = {"line": line, "character": lines[line].index(" =")}
            change = {"range": {"start": at, "end": at}, "text": "9"} if k % 2 == 0 else \
                {"range": {"start": at, "end": {"line": line, "character": at["character"] + 1}}, "text": ""}
            before = client.processor_seconds()
            # The clock of processes ticks 100 times a second: several keys a measurement.
            for _ in range(5):
                client.change(uri, change)
                if method is None:
                    client.published(uri)
                else:
                    client.at(method, uri, line, character, **page)
                change = {"range": {"start": at, "end": at}, "text": " "} if change["text"] == "" else \
                    {"range": {"start": at, "end": {"line": line, "character": at["character"] + 1}}, "text": ""}
            times.append((client.processor_seconds() - before) / 5)
        median = statistics.median(times)
        good = good and median <= KEY_SECONDS
        print(f"  key, then {label:18} {median * 1e3:8.1f} ms   goal {KEY_SECONDS * 1e3:.0f} ms")
    ratio = client.memory() / memory
    print(f"  memory                       {memory / 1e6:8.1f} MB, at the end {ratio:.2f} times   goal {MEMORY_RATIO}")
    client.stop()
    return good and ratio <= MEMORY_RATIO


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    server = options.bin / "hlo-lsp-server"
    good = measure(server, "generated", large_module(), options.runs)
    for file in options.files:
        good = measure(server, file.name, file.read_text(), options.runs) and good
    return 1 if options.check and not good else 0


if __name__ == "__main__":
    sys.exit(main())
