#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renaming keeps programs: rename_properties.py BIN [--sample=N] [--names=N] [--seed=N] FOLDER...

In each module of the folders that the tools accept, renames an instruction and a computation, N of each, through the server and
compares fingerprints, which are blind to names; then formats it, in each style, and compares again. Modules that the
server finds errors in must be those that hlo-opt rejects. Ends with `N passed, N failed`.
"""

import argparse
import pathlib
import random
import subprocess
import sys

from client import Client, Ended, Failed
from lsp_edits import apply_utf16


def outline(symbols):
    """The symbols and those in them."""
    for symbol in symbols:
        yield symbol
        yield from outline(symbol.get("children", []))


def fingerprint(bin_folder, text):
    """Of a valid module; None of others."""
    run = subprocess.run([bin_folder / "hlo-inspect", "hash", "-"], input=text.encode(), capture_output=True, check=False)
    return run.stdout.split()[0] if run.returncode == 0 else None


def problems(client, bin_folder, uri, text, names, rng):
    """What is wrong with the module."""
    client.open(uri, text)
    errors = [d for d in client.about("textDocument/diagnostic", uri)["items"] if d["severity"] == 1]
    before = fingerprint(bin_folder, text)
    if (before is None) != bool(errors):
        yield f"the tools {'reject' if before is None else 'accept'} it, the server has {errors[:1]}"
    if before is None or errors:
        return
    symbols = list(outline(client.about("textDocument/documentSymbol", uri)))
    for kind in (12, 13):
        of_kind = [s for s in symbols if s["kind"] == kind and s["name"] != "(body)"]
        for symbol in rng.sample(of_kind, min(names, len(of_kind))):
            edit = client.at("textDocument/rename", uri, *symbol["selectionRange"]["start"].values(), newName="renamed.by.test")
            renamed = apply_utf16(text, edit["changes"][uri])
            if fingerprint(bin_folder, renamed) != before:
                yield f"another program after renaming {symbol['name']}"
    for style in ("long", "short", "canonical"):
        client.notify("workspace/didChangeConfiguration", {"settings": {"hlo": {"format": {"style": style}}}})
        try:
            edits = client.about("textDocument/formatting", uri, options={})
        except Failed as failed:
            if not any(reason in failed.message for reason in ("comment", "control dependencies")):
                yield f"formatting: {failed.message}"
            continue
        if fingerprint(bin_folder, apply_utf16(text, edits)) != before:
            yield f"another program after formatting, {style}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--sample", type=int, default=10**9)
    parser.add_argument("--names", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    rng = random.Random(options.seed)
    # Files of several modules are read with a flag.
    files = sorted(f for folder in options.folders for f in folder.rglob("*.hlo")
                   if "// -----" not in f.read_text(errors="replace"))
    if options.sample < len(files):
        files = rng.sample(files, options.sample)
    client = Client(options.bin / "hlo-lsp-server", capabilities={"textDocument": {"diagnostic": {}}})
    passed = failed = 0
    for file in files:
        uri = f"file:///{file.name}"
        try:
            found = list(problems(client, options.bin, uri, file.read_text(errors="replace"), options.names, rng))
            client.close(uri)
        except (Ended, Failed) as error:
            found = [str(error) or "the server has ended"]
            client = Client(options.bin / "hlo-lsp-server", capabilities={"textDocument": {"diagnostic": {}}})
        for problem in found:
            print(f"{file}: {problem}")
        passed += not found
        failed += bool(found)
    client.stop()
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
