#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No document and no message ends hlo-lsp-server, or makes it forget a request.

  robustness.py SERVER [--documents=N] [--seed=N] [--memory] [FILE_OR_FOLDER...]

Of a file `saved.inputs` (tests/fuzz/corpus.py) each line is a document.

Types documents and mutations of them in pieces, with edits, requests of every kind at any place, some cancelled, some for
documents that are closed; then sends messages that are none. Afterwards every request has been answered once, and
the outline of a document that was typed is that of the same text opened at once. --memory: 1,000 edits of a file of 4 MB
leave at most 1.5 times the memory of one parse. Exits with 1 and the seed of the document otherwise.
"""

import argparse
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fuzz"))
import corpus
from client import Client, Ended, Failed
from large_module import large_module

SUFFIXES = (".hlo", ".mlir", ".tpu", ".passes", ".txt", ".test", ".json")
POSITIONAL = ("definition", "declaration", "references", "documentHighlight", "prepareRename", "rename",
              "prepareCallHierarchy", "hover", "completion")
WHOLE = ("documentSymbol", "foldingRange", "semanticTokens/full", "semanticTokens/range", "inlayHint", "formatting",
         "codeAction", "codeLens", "diagnostic")
LANGUAGES = {".mlir": "mlir", ".tpu": "tpu-machine", ".passes": "hlo-pipeline"}
PIECES = ("{", "}", "(", ")", '"', "/*", "*/", "//", "\n", "\r", "\r\n", "%", "@", "=", ",", "ROOT ", "ENTRY ", "𝔸", "\0",
          "calls={", "to_apply={ x = ", "branch_computations={{", "// -----\n", "HloModule ", "FileNames\n1 \"a\"\n", "  x = ",
          "constant({", "f32[", "é", "\\", "func.func @", "^bb0(%a: ")


def units(text):
    return len(text.encode("utf-16-le")) // 2


def position(text, at):
    """Line and UTF-16 column of an index; lines end as in the protocol."""
    before = text[:at]
    if before.endswith("\r") and text[at:at + 1] == "\n":
        before = before[:-1]  # within a line end: the end of the line
    lines = re.split("\r\n|\r|\n", before)
    return {"line": len(lines) - 1, "character": units(lines[-1])}


class Typist:
    def __init__(self, client, uri, language, source, rng):
        self.client = client
        self.uri = uri
        self.rng = rng
        self.text = ""
        self.source = source
        self.started = []
        self.language = language
        client.open(uri, "", language)

    def replace(self, begin, end, text):
        # An index within a line end would be moved to the end of the line.
        if self.text[begin - 1:begin + 1] == "\r\n" or self.text[end - 1:end + 1] == "\r\n":
            return
        self.client.change(self.uri, {"range": {"start": position(self.text, begin), "end": position(self.text, end)},
                                      "text": text})
        self.text = self.text[:begin] + text + self.text[end:]

    def ask(self):
        rng = self.rng
        at = rng.randrange(len(self.text) + 1)
        place = position(self.text, at)
        if rng.random() < 0.1:
            place = {"line": rng.randrange(2**31), "character": rng.randrange(2**31)}
        uri = self.uri if rng.random() < 0.95 else "file:///not/open.hlo"
        if rng.random() < 0.5:
            method = rng.choice(POSITIONAL)
            params = {"textDocument": {"uri": uri}, "position": place, "newName": rng.choice(("n", "%q", "7", "")),
                      "context": {"includeDeclaration": True}}
        else:
            method = rng.choice(WHOLE)
            end = position(self.text, rng.randrange(at, len(self.text) + 1))
            params = {"textDocument": {"uri": uri}, "range": {"start": place, "end": end}, "context": {"diagnostics": []}}
        self.started.append(self.client.start(f"textDocument/{method}", params))
        if rng.random() < 0.2:
            self.client.notify("$/cancelRequest", {"id": rng.choice(self.started)})

    def type(self):
        rng = self.rng
        done = 0
        pieces = rng.randrange(1, 30)
        while done < len(self.source):
            size = max(1, int(len(self.source) / pieces * rng.uniform(0.1, 2)))
            self.replace(len(self.text), len(self.text), self.source[done:done + size])
            done += size
            if rng.random() < 0.5:
                self.ask()
        for _ in range(rng.randrange(20)):
            begin = rng.randrange(len(self.text) + 1)
            kind = rng.random()
            if kind < 0.4:
                self.replace(begin, begin, rng.choice(PIECES))
            elif kind < 0.7:
                self.replace(begin, min(len(self.text), begin + rng.choice((1, 1, 2, 10, 300))), "")
            elif kind < 0.9:
                other = rng.randrange(len(self.text) + 1)
                self.replace(begin, min(begin + 5, len(self.text)), self.text[other:other + rng.randrange(80)])
            else:
                self.client.change(self.uri, {"text": self.text[:begin]})
                self.text = self.text[:begin]
            self.ask()
        for id in self.started:
            try:
                self.client.wait(id)
            except Failed as failed:
                if failed.code not in (-32800, -32803, -32602):
                    raise

    def outlines(self):
        """Of the typed text, and of the same text in a document of its own."""
        other = self.uri + ".whole"
        self.client.open(other, self.text, self.language)
        methods = ("documentSymbol", "foldingRange", "semanticTokens/full", "diagnostic")
        both = [[self.client.about(f"textDocument/{m}", uri) for m in methods] for uri in (self.uri, other)]
        self.client.close(other)
        self.client.close(self.uri)
        self.client.close(self.uri)
        return both


def garbage(client, rng):
    """Messages that are none."""
    for data in (b"Content-Length: 3\r\n\r\n{{{", b"Content-Length: x\r\n\r\n", b"Content-Length: 2\r\n\r\n[]",
                 b"Content-Length: 4\r\n\r\nnull", b"Content-Type: none\r\n\r\n", b"content-length: 2\r\nX: y\r\n\r\n{}",
                 b"Content-Length: 99999999999999999999\r\n\r\n"):
        client.send_bytes(data)
    deep = b'{"jsonrpc":"2.0","method":"textDocument/didOpen","params":' + b"[" * 1_000_000 + b"]" * 1_000_000 + b"}"
    client.send_bytes(b"Content-Length: %d\r\n\r\n%s" % (len(deep), deep))
    values = (None, True, -1, 1.5e300, "x", [], {}, {"uri": 3}, {"line": "a"}, 2**64 - 1, -2**63, ["file:///a.hlo", {}])
    keys = ("textDocument", "position", "range", "contentChanges", "newName", "item", "command", "arguments", "context", "settings",
            "id")
    methods = [f"textDocument/{m}" for m in POSITIONAL + WHOLE] + [
        "callHierarchy/incomingCalls", "callHierarchy/outgoingCalls", "workspace/executeCommand"]
    for _ in range(300):
        params = {key: rng.choice(values) for key in rng.sample(keys, 4)}
        if rng.random() < 0.5:
            params["textDocument"] = {"uri": "file:///open.hlo", "version": rng.choice(values), "text": rng.choice(values)}
        message = {"jsonrpc": "2.0", "method": rng.choice(methods), "params": rng.choice((params, params, rng.choice(values)))}
        if rng.random() < 0.3:
            message["method"] = "textDocument/" + rng.choice(("didOpen", "didChange", "didClose"))
        elif rng.random() < 0.9:
            message["id"] = rng.choice((rng.randrange(10**6, 10**7), f"text {rng.randrange(10**6)}", None, [], {}))
        client.send(message)


SUFFIX_OF_CORPUS = {"parser_stablehlo": ".mlir", "parser_shardy": ".mlir", "passes_device": ".tpu", "passes_shardy": ".mlir",
                    "passes_pipeline": ".passes"}


def read_documents(paths, largest):
    """Path, suffix and text of each."""
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if not file.is_file():
                continue
            if file.name == "saved.inputs":
                for line in file.read_text(encoding="ascii").splitlines():
                    text = corpus.unescape(line).decode("utf-8", "replace")
                    yield file, SUFFIX_OF_CORPUS.get(file.parent.name, ".hlo"), text
            elif file.suffix in SUFFIXES and file.stat().st_size <= largest:
                yield file, file.suffix, file.read_bytes().decode("utf-8", "replace")


def run_document(client, uri, language, text, seed):
    rng = random.Random(seed)
    typist = Typist(client, uri, language, text, rng)
    typist.type()
    typed, whole = typist.outlines()
    if typed != whole:
        raise AssertionError("the outline of the typed text differs from that of the text")


def check_memory(server):
    text = large_module()
    client = Client(server, "--delay=0")
    uri = "file:///large.hlo"
    client.open(uri, text)
    client.published(uri)
    one = client.memory()
    rng = random.Random(1)
    lines = text.split("\n")
    for k in range(1000):
        line = rng.randrange(len(lines))
        character = rng.randrange(len(lines[line]) + 1)
        at = {"line": line, "character": character}
        if k % 2 == 0:
            last = at
            client.change(uri, {"range": {"start": at, "end": at}, "text": rng.choice(("x", " ", "(", '"'))})
        else:
            client.change(uri, {"range": {"start": last, "end": {"line": last["line"], "character": last["character"] + 1}},
                                "text": ""})
        if k % 10 < 2:
            client.at("textDocument/hover", uri, line, character)
        if k % 50 < 2:
            client.about("textDocument/diagnostic", uri)
    client.published(uri)
    many = client.memory()
    client.stop()
    print(f"memory: {one / 1e6:.1f} MB after the first parse, {many / 1e6:.1f} MB after 1,000 edits: {many / one:.2f}")
    return many <= 1.5 * one


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--documents", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--largest", type=int, default=20_000, help="bytes of a document")
    parser.add_argument("paths", nargs="*", type=pathlib.Path)
    options = parser.parse_intermixed_args()
    documents = list(read_documents(options.paths, options.largest))
    rng = random.Random(options.seed)
    chosen = documents if len(documents) <= options.documents else rng.sample(documents, options.documents)
    passed = failed = 0
    client = Client(options.server, "--delay=0")
    for number, (path, suffix, text) in enumerate(chosen):
        seed = options.seed * 1_000_003 + number
        try:
            run_document(client, f"file:///d{number}{suffix}", LANGUAGES.get(suffix, "hlo"), text, seed)
            passed += 1
        except (Ended, AssertionError, Failed) as error:
            failed += 1
            print(f"{path} with seed {seed}: {error or 'the server has ended'}")
            if isinstance(error, Ended):
                client = Client(options.server, "--delay=0")
    try:
        garbage(client, rng)
        client.open("file:///last.hlo", "HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }\n")
        assert len(client.about("textDocument/documentSymbol", "file:///last.hlo")) == 2
        assert client.stop() == 0
        passed += 1
    except (Ended, AssertionError) as error:
        failed += 1
        print(f"messages that are none: {error or 'the server has ended'}")
    if options.memory:
        good = check_memory(options.server)
        passed += good
        failed += not good
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
