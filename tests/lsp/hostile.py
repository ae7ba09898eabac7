#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts that are made to take long or much stack, opened in hlo-lsp-server: hostile.py SERVER

Each request on each of them takes at most SECONDS of processor time, on a stack of 256 KiB.
"""

import resource
import sys

from client import Client, Ended, Failed

SECONDS = 4
STACK = 256 << 10
WHOLE = ("documentSymbol", "foldingRange", "semanticTokens/full", "inlayHint", "codeLens", "diagnostic", "codeAction",
         "formatting")
POSITIONAL = ("hover", "completion", "definition", "references", "prepareCallHierarchy", "documentHighlight", "rename")


def texts():
    """Name and text of each."""
    head = "HloModule m\nENTRY e { "
    many = [f"x{k} = f32[] add(a, a)" for k in range(20_000)]
    yield "one line", head + "a = f32[] parameter(0) " + " ".join(many) + " ROOT r = f32[] add(a, a) }"
    yield "one line of other characters", head + "a = f32[] parameter(0) " + "/*𝔸*/ ".join(many) + " ROOT r = f32[] add(a, a) }"
    yield "open parentheses", head + "x = f32[] add(" + "(" * 400_000
    yield "open braces", head + "x = f32[] fusion(), calls={" + "{" * 400_000
    yield "bodies in bodies", head + "x = f32[] call(), to_apply={ " * 20_000
    yield "bodies in lists", head + "x = f32[] conditional(), branch_computations={{ " * 20_000
    yield "names", "a = " * 200_000
    yield "open strings", head + 'x = f32[] add(a), metadata={op_name="\n' * 20_000
    yield "a nested tuple", head + "x = " + "(" * 200_000 + ")" * 200_000
    yield "open comments", "/*" * 400_000
    yield "operations of MLIR", "module {\n" + "%0 = stablehlo.add %1, %2 : tensor<f32>\n" * 20_000
    yield "braces of MLIR", "module {\n" + "{" * 200_000
    yield "results of MLIR", "module {\n" + "%a, " * 100_000
    yield "one operand", head + "a = f32[] parameter(0)\n ROOT r = tuple(" + ", ".join(["a"] * 100_000) + ")\n}\n"
    count = range(20_000)
    yield "computations", ("HloModule m\n" + "".join(f"c{k} {{ ROOT x = f32[] parameter(0) }}\n" for k in count) +
                           "ENTRY e {\n a = f32[] parameter(0)\n" +
                           "".join(f"d{k} = f32[] call(a), to_apply=c{k}\n" for k in count) + "}\n")


def problems(server, text):
    """Requests that take too long, or end the server."""
    client = Client(server, timeout=120)
    uri = "file:///hostile.hlo"
    client.open(uri, text)

    def run(method, params):
        before = client.processor_seconds()
        try:
            result = client.request(method, {"textDocument": {"uri": uri}, **params})
        except Failed:
            result = None
        if (took := client.processor_seconds() - before) > SECONDS:
            found.append(f"{method} takes {took:.1f} s")
        return result

    found = []
    whole = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 10**8, "character": 0}}}
    for symbols in ("scope", "computation"):
        client.notify("workspace/didChangeConfiguration", {"settings": {"hlo": {"symbols": symbols}}})
        run("textDocument/documentSymbol", {})
    for method in WHOLE:
        run(f"textDocument/{method}", whole)
    for line, character in ((text.count("\n") // 2, 40), (0, len(text) // 2), (2, 3), (10**7, 0)):
        for method in POSITIONAL:
            items = run(f"textDocument/{method}", {"position": {"line": line, "character": character}, "newName": "q"})
            if method == "prepareCallHierarchy" and items:
                for way in ("incomingCalls", "outgoingCalls"):
                    run(f"callHierarchy/{way}", {"item": items[0]})
    if client.stop() != 0:
        found.append("it does not end well")
    return found


def main() -> int:
    resource.setrlimit(resource.RLIMIT_STACK, (STACK, STACK))
    passed = failed = 0
    for name, text in texts():
        try:
            found = problems(sys.argv[1], text)
        except Ended:
            found = ["the server has ended"]
        for problem in found:
            print(f"{name}: {problem}")
        passed += not found
        failed += bool(found)
    print(f"{passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
