#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every kind of request that hlo-lsp-server answers, each on a small document.

  lsp_test.py BIN [TEST...]

BIN is the folder of the tools, whose messages the diagnostics are compared with.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

from client import Client, Failed

BIN = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else pathlib.Path()
URI = "file:///models/model.hlo"

PROGRAM = """\
HloModule model, entry_computation_layout={(f32[8,16]{1,0}, f32[16,4]{1,0})->f32[8]{0}}

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %r = f32[] add(f32[] %a, f32[] %b)
}

// The step.
ENTRY %main (x: f32[8,16], w: f32[16,4]) -> f32[8] {
  %x = f32[8,16]{1,0} parameter(0)
  %w = f32[16,4]{1,0} parameter(1)
  %h = f32[8,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="jit(f)/layer/dot" source_file="/src/model.py" source_line=12}
  %zero = f32[] constant(0)
  %idle = f32[8,4]{1,0} tanh(%h), metadata={op_name="jit(f)/layer/tanh"}
  %e = f32[8,4]{1,0} exponential(%h), metadata={op_name="jit(f)/loss/exp"}
  ROOT %s = f32[8]{0} reduce(%e, %zero), dimensions={1}, to_apply=%sum
}
"""


def place(text, what, count=0, after=0):
    """Line and character of the occurrence `count` of `what`, moved by `after`."""
    at = -1
    for _ in range(count + 1):
        at = text.index(what, at + 1)
    line = text.count("\n", 0, at)
    return line, at - (text.rfind("\n", 0, at) + 1) + after


def apply(text, edits):
    """The text after the edits, of ASCII text."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def offset(p):
        return starts[p["line"]] + p["character"]

    for edit in sorted(edits, key=lambda e: -offset(e["range"]["start"])):
        text = text[:offset(edit["range"]["start"])] + edit["newText"] + text[offset(edit["range"]["end"]):]
    return text


def words(text, locations):
    lines = text.split("\n")
    found = []
    for location in locations:
        range = location.get("range", location)
        found.append(lines[range["start"]["line"]][range["start"]["character"]:range["end"]["character"]])
    return found


class ServerTest(unittest.TestCase):
    capabilities = {"textDocument": {"completion": {"completionItem": {"snippetSupport": True}}},
                    "window": {"showDocument": {"support": True}}}
    options = {}

    def setUp(self):
        self.client = Client(BIN / "hlo-lsp-server", "--delay=10", capabilities=self.capabilities, options=self.options)

    def tearDown(self):
        self.assertEqual(self.client.stop(), 0)
        self.client.process.stdout.close()

    def open(self, text=PROGRAM, uri=URI, language="hlo"):
        self.client.open(uri, text, language)

    def at(self, method, what, count=0, after=0, text=PROGRAM, **more):
        return self.client.at(f"textDocument/{method}", URI, *place(text, what, count, after), **more)


class Navigation(ServerTest):
    def test_definition_of_an_operand(self):
        self.open()
        found = self.at("definition", "%h)", after=1)
        self.assertEqual((found["uri"], found["range"]["start"]), (URI, {"line": 12, "character": 3}))
        self.assertEqual(found, self.at("definition", "%h)"))  # on the sigil

    def test_definition_of_a_computation(self):
        self.open()
        self.assertEqual(self.at("definition", "to_apply=%sum", after=11)["range"]["start"], {"line": 2, "character": 1})

    def test_no_definition_in_a_string(self):
        self.open()
        self.assertIsNone(self.at("definition", "layer/dot", after=7))

    def test_references_are_those_of_the_scope(self):
        text = PROGRAM.replace("%idle", "%a")
        self.open(text)
        found = self.at("references", "%a = f32[] ", after=1, text=text, context={"includeDeclaration": True})
        self.assertEqual([f["range"]["start"]["line"] for f in found], [3, 5])
        self.assertEqual(words(text, found), ["a", "a"])

    def test_references_without_the_declaration(self):
        self.open()
        found = self.at("references", "%h =", after=1, context={"includeDeclaration": False})
        self.assertEqual([f["range"]["start"]["line"] for f in found], [14, 15])

    def test_highlights(self):
        self.open()
        self.assertEqual([h["kind"] for h in self.at("documentHighlight", "%h =", after=1)], [3, 2, 2])

    def test_rename_leaves_strings_and_the_program_alone(self):
        text = PROGRAM.replace("layer/dot", "layer/h")
        self.open(text)
        self.assertEqual(self.at("prepareRename", "%h =", after=1, text=text)["placeholder"], "h")
        edit = self.at("rename", "%h =", after=1, text=text, newName="hidden")
        renamed = apply(text, edit["changes"][URI])
        self.assertEqual(renamed.count("hidden"), 3)
        self.assertIn("layer/h\"", renamed)
        self.assertEqual(fingerprint(text), fingerprint(renamed))

    def test_a_string_of_several_lines(self):
        text = PROGRAM.replace('op_name="jit(f)/layer/tanh"', 'op_name="a\n}\n\\"b{"')
        self.open(text)
        self.assertEqual(self.client.published(URI), [])
        edit = self.at("rename", "%e =", after=1, text=text, newName="exp")
        self.assertEqual(fingerprint(apply(text, edit["changes"][URI])), fingerprint(text))
        symbols = self.client.about("textDocument/documentSymbol", URI)
        self.assertEqual([c["name"] for c in symbols[2]["children"]][-2:], ["e", "s"])

    def test_a_string_that_is_open_ends_before_the_next_instruction(self):
        text = PROGRAM.replace('op_name="jit(f)/layer/tanh"', 'op_name="jit(f)/layer/tanh')
        self.open(text)
        symbols = self.client.about("textDocument/documentSymbol", URI)
        self.assertEqual([c["name"] for c in symbols[2]["children"]], ["x", "w", "h", "zero", "idle", "e", "s"])

    def test_rename_of_a_computation(self):
        self.open()
        edit = self.at("rename", "%sum (", after=1, newName="%add_f32")
        self.assertEqual(apply(PROGRAM, edit["changes"][URI]).count("%add_f32"), 2)

    def test_rename_to_a_name_that_there_is(self):
        self.open()
        for name, message in (("e", "is named `e` already"), ("7", "is no name"), ("a b", "is no name"), ("", "is no name")):
            with self.assertRaises(Failed) as raised:
                self.at("rename", "%h =", after=1, newName=name)
            self.assertIn(message, raised.exception.message)

    def test_call_hierarchy(self):
        self.open()
        (sum_item,) = self.at("prepareCallHierarchy", "%sum (", after=1)
        self.assertEqual(sum_item["name"], "sum")
        (incoming,) = self.client.request("callHierarchy/incomingCalls", {"item": sum_item})
        self.assertEqual(incoming["from"]["name"], "main")
        self.assertEqual(words(PROGRAM, incoming["fromRanges"]), ["sum"])
        (outgoing,) = self.client.request("callHierarchy/outgoingCalls", {"item": incoming["from"]})
        self.assertEqual(outgoing["to"]["name"], "sum")
        self.assertEqual(self.client.request("callHierarchy/outgoingCalls", {"item": sum_item}), [])


class Outline(ServerTest):
    def test_symbols_by_computation(self):
        self.open()
        symbols = self.client.about("textDocument/documentSymbol", URI)
        self.assertEqual([s["name"] for s in symbols], ["model", "sum", "main"])
        self.assertEqual([c["name"] for c in symbols[2]["children"]], ["x", "w", "h", "zero", "idle", "e", "s"])
        self.assertEqual(symbols[2]["children"][2]["detail"], "dot f32[8,4]{1,0}")

    def test_symbols_by_scope(self):
        self.client.notify("workspace/didChangeConfiguration", {"settings": {"hlo": {"symbols": "scope"}}})
        self.open()
        symbols = self.client.about("textDocument/documentSymbol", URI)
        jit = symbols[0]
        self.assertEqual(jit["name"], "jit(f)")
        self.assertEqual([c["name"] for c in jit["children"]], ["layer", "loss"])
        self.assertEqual([c["name"] for c in jit["children"][0]["children"]], ["h", "idle"])

    def test_folding(self):
        text = "// one\n// two\n" + PROGRAM + "FileNames\n1 \"a.py\"\n2 \"b.py\"\n\n  FileLocations\n  1 {file_name_id=1 line=1}\n  2 {file_name_id=2 line=2}\n"
        self.open(text)
        folds = [(f["startLine"], f["endLine"]) for f in self.client.about("textDocument/foldingRange", URI)]
        for fold in ((4, 7), (11, 18), (0, 1), (20, 22)):
            self.assertIn(fold, folds)
        names = [s["name"] for s in self.client.about("textDocument/documentSymbol", URI)]
        self.assertFalse({"1", "2"} & set(names), names)  # rows of tables are no computations


class Hover(ServerTest):
    def text(self, *args, **more):
        found = self.at("hover", *args, **more)
        return found and found["contents"]["value"]

    def test_an_instruction_has_shape_cost_time_and_source(self):
        self.open()
        text = self.text("%h =", after=1)
        for part in ("f32[8,4]{1,0}", "2 uses", "1.02 KFLOP", "768 B read, 128 B written",
                     "roofline on v5e", "bound by memory", "`jit(f)/layer/dot`",
                     "[`/src/model.py:12`](file:///src/model.py#L12)"):
            self.assertIn(part, text)

    def test_the_target_is_chosen(self):
        self.client.notify("workspace/didChangeConfiguration", {"settings": {"hlo": {"device": "v6e"}}})
        self.open()
        self.assertIn("roofline on v6e", self.text("%h =", after=1))

    def test_an_opcode_has_its_reference(self):
        self.open()
        self.assertIn("rhs_contracting_dims", self.text("dot(%x"))

    def test_an_attribute_has_its_syntax(self):
        self.open()
        self.assertIn("attribute **dimensions**", self.text("dimensions={1}"))

    def test_a_computation_has_its_cost(self):
        self.open()
        text = self.text("%main", after=1)
        self.assertIn("entry computation **main**", text)
        self.assertIn("7 instructions", text)

    def test_a_document_with_errors_has_the_shapes_of_the_text(self):
        text = PROGRAM.replace("tanh(%h)", "tanh(%nothing)")
        self.open(text)
        hover = self.client.at("textDocument/hover", URI, *place(text, "%h =", after=1))
        self.assertIn("f32[8,4]{1,0}", hover["contents"]["value"])

    def test_texts_of_the_module_are_no_markup(self):
        text = PROGRAM.replace("jit(f)/layer/dot", "`[x](command:y)`").replace("/src/model.py", "/a`](http://b)")
        self.open(text)
        shown = self.client.at("textDocument/hover", URI, *place(text, "%h =", after=1))["contents"]["value"]
        self.assertIn("scope `'[x](command:y)'`", shown)
        self.assertIn("[`/a'](http://b):12`](file:///a%60%5D%28http%3A//b%29#L12)", shown)

    def test_nothing_in_empty_space(self):
        self.open()
        self.assertIsNone(self.client.at("textDocument/hover", URI, 1, 0))


class Completions(ServerTest):
    def labels(self, text):
        """Items at the bar of the text."""
        line, character = place(text, "|")
        self.open(text.replace("|", ""))
        found = self.client.at("textDocument/completion", URI, line, character)
        self.items = {i["label"]: i for i in found["items"]}
        return list(self.items)

    def test_opcodes_with_operands_and_required_attributes(self):
        labels = self.labels(PROGRAM.replace("tanh(%h)", "redu|"))
        self.assertIn("reduce", labels)
        self.assertIn("reduce-scatter", labels)
        self.assertNotIn("tanh", labels)
        item = self.items["reduce"]
        self.assertEqual(item["insertTextFormat"], 2)
        self.assertIn("to_apply=${", item["textEdit"]["newText"])
        self.assertIn("reduces dimensions", item["documentation"])

    def test_element_types(self):
        self.assertIn("bf16", self.labels(PROGRAM.replace("f32[8,4]{1,0} tanh", "bf|")))

    def test_names_in_scope(self):
        labels = self.labels(PROGRAM.replace("tanh(%h)", "tanh(%|"))
        self.assertEqual(labels, ["zero", "h", "w", "x"])  # the nearest first, none that follows or of another computation

    def test_attributes_that_fit(self):
        labels = self.labels(PROGRAM.replace("tanh(%h)", "dot(%x, %w), |"))
        self.assertEqual(labels[0], "lhs_batch_dims")
        self.assertIn("operand_precision", labels)
        self.assertIn("metadata", self.labels(PROGRAM.replace("tanh(%h), metadata", "tanh(%h), |")))
        self.assertNotIn("to_apply", labels)

    def test_attributes_that_are_there_are_left_out(self):
        labels = self.labels(PROGRAM.replace("tanh(%h),", "dot(%x, %w), lhs_contracting_dims={1}, |"))
        self.assertIn("rhs_contracting_dims", labels)
        self.assertNotIn("lhs_contracting_dims", labels)

    def test_values_of_an_enumeration(self):
        self.assertEqual(self.labels(PROGRAM.replace("tanh(%h),", "compare(%h, %h), direction=|")),
                         ["EQ", "NE", "GE", "GT", "LE", "LT"])

    def test_computations(self):
        self.assertEqual(self.labels(PROGRAM.replace("to_apply=%sum", "to_apply=%|")), ["sum"])

    def test_truth_values(self):
        self.assertEqual(self.labels(PROGRAM.replace("tanh(%h),", "sort(%h), is_stable=|")), ["true", "false"])

    def test_the_start_of_a_line(self):
        self.assertIn("ROOT", self.labels(PROGRAM.replace("  ROOT %s", "  RO|\n  ROOT %s")))

    def test_pipelines(self):
        self.client.open("file:///p.passes", "algsimp,fu", "hlo-pipeline")
        found = self.client.at("textDocument/completion", "file:///p.passes", 0, 10)
        self.assertIn("fusion", [i["label"] for i in found["items"]])
        self.client.open("file:///q.passes", "fusion{max", "hlo-pipeline")
        found = self.client.at("textDocument/completion", "file:///q.passes", 0, 10)
        self.assertIn("max-operands", [i["label"] for i in found["items"]])

    def test_machines(self):
        self.client.open("file:///m.tpu", "tpu mine\n  like v\n  hbm_\n", "tpu-machine")
        found = self.client.at("textDocument/completion", "file:///m.tpu", 1, 8)
        self.assertIn("v5e", [i["label"] for i in found["items"]])
        found = self.client.at("textDocument/completion", "file:///m.tpu", 2, 6)
        self.assertIn("hbm_rate", [i["label"] for i in found["items"]])


class Diagnostics(ServerTest):
    def same_as_tool(self, text, name="model.hlo"):
        """Compares with the messages of hlo-opt; returns them."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.write_text(text)
            run = subprocess.run([BIN / "hlo-opt", "--diagnostics=json", path, "-o", "/dev/null"], capture_output=True,
                                 text=True, check=False)
            tool = json.loads(run.stderr)
        uri = f"file:///x/{name}"
        self.client.open(uri, text)
        shown = self.client.published(uri)
        self.assertEqual([d["message"] for d in shown],
                         [m["message"] + (f"\nhint: {m['hint']}" if m["hint"] else "") for m in tool])
        for d, m in zip(shown, tool):
            line = text.split("\n")[m["line"] - 1].encode()
            column = len(line[:m["column"] - 1].decode("utf-8", "replace").encode("utf-16-le")) // 2
            self.assertEqual((d["range"]["start"]["line"] + 1, d["range"]["start"]["character"]), (m["line"], column))
            self.assertEqual((d["code"], d["severity"]), (m["kind"], 1 if m["severity"] == "error" else 2))
        return shown

    def test_errors_of_the_parser_with_hints(self):
        shown = self.same_as_tool(PROGRAM.replace("tanh(%h)", "tanhh(%h)").replace("dimensions={1}", "dimension={1}"))
        self.assertEqual(len(shown), 2)
        self.assertIn("did you mean `tanh`?", shown[0]["message"])

    def test_errors_of_the_verifier(self):
        shown = self.same_as_tool(PROGRAM.replace("f32[8,4]{1,0} tanh", "f32[8,5]{1,0} tanh"))
        self.assertIn("is declared as f32[8,5]", shown[0]["message"])

    def test_warnings(self):
        self.assertEqual(self.same_as_tool(PROGRAM.replace("constant(0)", "constant({...})"))[0]["severity"], 2)

    def test_columns_are_utf16_units(self):
        shown = self.same_as_tool(PROGRAM.replace("/*", "").replace("tanh(%h)", "/* 𝔸é */ tanh(/* 𝔸 */ %nothing)"))
        self.assertEqual(shown[0]["range"]["start"]["character"], len("  %idle = f32[8,4]{1,0} /* 𝔸é */ tanh(/* 𝔸 */ ") + 2)

    def test_a_split_file(self):
        self.open(PROGRAM + "// -----\n" + PROGRAM.replace("%zero)", "%null)"))
        (shown,) = self.client.published(URI)
        self.assertIn("`null`", shown["message"])
        self.assertEqual(shown["range"]["start"]["line"], 18 + 17)

    def test_stablehlo(self):
        self.same_as_tool("func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n"
                          "  %0 = stablehlo.add %arg0, %arg1 : tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n", "m.mlir")
        (shown,) = self.client.published("file:///x/m.mlir")
        self.assertIn("arg1", shown["message"])

    def test_a_pipeline(self):
        self.client.open("file:///p.passes", "algsimp,\n  fusoin", "hlo-pipeline")
        (shown,) = self.client.published("file:///p.passes")
        self.assertIn("did you mean `fusion`?", shown["message"])
        self.assertEqual(shown["range"], {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 8}})
        self.client.open("file:///r.passes", "fusoin{max-operands=2},cs*,(licmm,algsimpp)*", "hlo-pipeline")
        self.assertEqual([d["range"]["start"]["character"] for d in self.client.published("file:///r.passes")], [0])
        self.client.open("file:///s.passes", "fusoin,(licmm,algsimpp)*,dce", "hlo-pipeline")
        self.assertEqual([d["range"]["start"]["character"] for d in self.client.published("file:///s.passes")], [0, 8, 14])
        self.client.open("file:///q.passes", "algsimp,)", "hlo-pipeline")
        (shown,) = self.client.published("file:///q.passes")
        self.assertEqual(shown["range"]["start"], {"line": 0, "character": 8})

    def test_a_machine(self):
        self.client.open("file:///m.tpu", "tpu mine\n  like v5e\n  clok 1 GHz\n", "tpu-machine")
        (shown,) = self.client.published("file:///m.tpu")
        self.assertIn("clok", shown["message"])
        self.assertEqual(shown["range"]["start"]["line"], 2)

    def test_changes_are_published_after_a_pause(self):
        self.open()
        self.assertEqual(self.client.published(URI), [])
        line, character = place(PROGRAM, "tanh")
        self.client.change(URI, {"range": {"start": {"line": line, "character": character},
                                           "end": {"line": line, "character": character + 1}}, "text": ""})
        (shown,) = self.client.published(URI)
        self.assertIn("`anh`", shown["message"])

    def test_closing_clears(self):
        self.open("HloModule m\nENTRY e { x = f32[] neg() }")
        self.assertNotEqual(self.client.published(URI), [])
        self.client.close(URI)
        while self.client.notifications[-1]["params"]["diagnostics"]:
            self.client.take()

    def test_pull(self):
        self.open(PROGRAM.replace("tanh(%h)", "tanh(%nothing)"))
        report = self.client.about("textDocument/diagnostic", URI)
        self.assertEqual((report["kind"], len(report["items"])), ("full", 1))

    def test_nothing_is_published_to_a_client_that_pulls(self):
        client = Client(BIN / "hlo-lsp-server", "--delay=0", capabilities={"textDocument": {"diagnostic": {}}})
        client.open(URI, PROGRAM.replace("tanh(%h)", "tanh(%nothing)"))
        self.assertEqual(len(client.about("textDocument/diagnostic", URI)["items"]), 1)
        client.close(URI)
        client.stop()
        client.process.stdout.close()
        self.assertEqual(client.notifications, [])


class SemanticTokens(ServerTest):
    def tokens(self, text, range=None):
        self.open(text)
        legend = self.client.capabilities["semanticTokensProvider"]["legend"]["tokenTypes"]
        kind = "range" if range else "full"
        data = self.client.about(f"textDocument/semanticTokens/{kind}", URI, **({"range": range} if range else {}))["data"]
        lines = text.split("\n")
        found, line, character = [], 0, 0
        for k in __builtins__.range(0, len(data), 5):
            character = data[k + 1] + (character if data[k] == 0 else 0)
            line += data[k]
            found.append((lines[line][character:character + data[k + 2]], legend[data[k + 3]]))
        return found

    def test_kinds(self):
        found = self.tokens(PROGRAM)
        for token in (("HloModule", "keyword"), ("ENTRY", "keyword"), ("sum", "function"), ("x", "parameter"),
                      ("h", "variable"), ("f32", "type"), ("dot", "method"), ("dimensions", "property"),
                      ("// The step.", "comment"), ('"jit(f)/layer/dot"', "string"), ("16", "number")):
            self.assertIn(token, found)

    def test_a_range_has_a_part_of_the_whole(self):
        everything = self.tokens(PROGRAM)
        some = self.tokens(PROGRAM, {"start": {"line": 12, "character": 0}, "end": {"line": 14, "character": 0}})
        at = everything.index(some[0])
        starts = [k for k in range(len(everything)) if everything[k:k + len(some)] == some]
        self.assertTrue(starts, (at, some))
        self.assertEqual(some[0], ("h", "variable"))
        self.assertEqual(some[-1], ("0", "number"))


class Hints(ServerTest):
    def labels(self):
        self.open()
        return [h["label"] for h in self.client.about(
            "textDocument/inlayHint", URI,
            range={"start": {"line": 12, "character": 0}, "end": {"line": 15, "character": 0}})]

    def test_shapes_users_and_costs(self):
        labels = self.labels()
        self.assertEqual(labels[:3], ["f32[8,16]", "f32[16,4]", "2 uses, 1.02 KFLOP, 768 B read, 128 B written"])
        self.assertIn("unused, 32 transcendentals, 128 B read, 128 B written", labels)

    def test_they_can_be_turned_off(self):
        self.client.notify("workspace/didChangeConfiguration", {"settings": {"hlo": {"inlayHints": {
            "operandShapes": False, "costs": False}}}})
        self.assertEqual(self.labels(), ["2 uses", "unused"])


class Formatting(ServerTest):
    def formatted(self, text, style):
        self.client.notify("workspace/didChangeConfiguration", {"settings": {"hlo": {"format": {"style": style}}}})
        self.open(text)
        edits = self.client.about("textDocument/formatting", URI, options={"tabSize": 2, "insertSpaces": True})
        return apply(text, edits)

    def test_long_and_short_are_the_same_program(self):
        for style in ("long", "short"):
            text = self.formatted(PROGRAM, style)
            self.assertEqual(fingerprint(text), fingerprint(PROGRAM))
            self.assertEqual(self.formatted(text, style), text)
            self.assertIn("source_line=12", text)
        self.assertNotIn("%", text.replace("// The step.", ""))

    def test_comments_stay(self):
        text = PROGRAM.replace("constant(0)\n", "constant(0)  // nothing\n  // for the loss\n")
        for style in ("long", "short"):
            lines = self.formatted(text, style).split("\n")
            self.assertTrue(any("constant(0)" in line and line.endswith("// nothing") for line in lines))
            at = lines.index("  // for the loss")
            self.assertIn("idle", lines[at + 1])
            at = lines.index("// The step.")
            self.assertIn("ENTRY", lines[at + 1])

    def test_large_constants_stay(self):
        text = PROGRAM.replace("%zero = f32[] constant(0)", "%zero = f32[] constant(0)\n  %c = s32[20] constant({" +
                               ", ".join(map(str, range(20))) + "})")
        for style in ("long", "short"):
            self.assertIn("18, 19", self.formatted(text, style))

    def test_canonical(self):
        text = PROGRAM.replace("// The step.\n", "")
        formatted = self.formatted(text, "canonical")
        self.assertEqual(fingerprint(formatted), fingerprint(text))
        self.assertIn("tmp_2 = f32[8,4]{1,0} dot(f32[8,16]{1,0} tmp_0, f32[16,4]{1,0} tmp_1)", formatted)
        self.assertIn("source_line=12", formatted)

    def test_what_is_not_formatted(self):
        for text, message in ((PROGRAM.replace("tanh(", "tanh(/* why */ "), "would lose a comment"),
                              (PROGRAM.replace("tanh(", "tanhh("), "has errors")):
            with self.assertRaises(Failed) as raised:
                self.formatted(text, "long")
            self.assertIn(message, raised.exception.message)


class Actions(ServerTest):
    def actions(self, text, what, after=0, only=None):
        self.open(text)
        line, character = place(text, what, after=after)
        position = {"line": line, "character": character}
        return self.client.about("textDocument/codeAction", URI, range={"start": position, "end": position},
                                 context={"diagnostics": [], **({"only": only} if only else {})})

    def fix(self, text, what, after=0):
        (action,) = self.actions(text, what, after, only=["quickfix"])
        return action["title"], apply(text, action["edit"]["changes"][URI])

    def test_the_hint_of_an_opcode(self):
        self.assertEqual(self.fix(PROGRAM.replace("tanh(", "tanhh("), "tanhh"), ("Change to `tanh`", PROGRAM))

    def test_the_hint_of_an_operand(self):
        self.assertEqual(self.fix(PROGRAM.replace("(%x, %w)", "(%x, %ww)"), "%ww"), ("Change to `w`", PROGRAM))

    def test_the_hint_of_an_attribute_and_of_a_computation(self):
        self.assertEqual(self.fix(PROGRAM.replace("dimensions={1}", "dimension={1}"), "dimension={")[1], PROGRAM)
        self.assertEqual(self.fix(PROGRAM.replace("=%sum", "=%sun"), "%sun", 1)[1], PROGRAM)

    def test_the_inferred_shape(self):
        title, text = self.fix(PROGRAM.replace("f32[8,4]{1,0} tanh", "f32[8,5]{1,0} tanh"), "%idle", 1)
        self.assertEqual((title, text), ("Use the inferred shape f32[8,4]{1,0}", PROGRAM))

    def test_several_values(self):
        text = PROGRAM.replace("tanh(%h)", "fft(%h), fft_type=Q, fft_length={4}")
        self.assertIn("Change to `IRFFT`", [a["title"] for a in self.actions(text, "=Q", 1, only=["quickfix"])])

    def test_an_open_comment(self):
        text = PROGRAM + "/* the end\n"
        self.assertEqual(self.fix(text, "/* the")[1], PROGRAM + "/* the end */\n")

    def test_a_pass(self):
        uri = "file:///p.passes"
        self.client.open(uri, "fusoin", "hlo-pipeline")
        position = {"line": 0, "character": 2}
        (action,) = self.client.about("textDocument/codeAction", uri, range={"start": position, "end": position},
                                      context={"diagnostics": []})
        self.assertEqual(apply("fusoin", action["edit"]["changes"][uri]), "fusion")

    def test_commands_on_an_instruction(self):
        commands = [a["command"]["command"] for a in self.actions(PROGRAM, "%h =", 1)]
        self.assertEqual(commands, ["hlo.extract", "hlo.reduce", "hlo.removeDead"])


class Commands(ServerTest):
    def run_command(self, command, **options):
        return self.client.request("workspace/executeCommand", {"command": command, "arguments": [URI, options]})

    def shown(self, method="window/showDocument"):
        while True:
            for message in self.client.notifications:
                if message["method"] == method:
                    return message["params"]
            self.client.take()

    def path(self, uri):
        return pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))

    def test_lenses(self):
        self.open()
        lenses = self.client.about("textDocument/codeLens", URI)
        self.assertEqual([lens["command"]["command"] for lens in lenses],
                         ["hlo.simulate", "hlo.run", "hlo.graph", "hlo.report"])
        self.assertTrue(all(lens["range"]["start"]["line"] == 9 for lens in lenses))

    def test_remove_dead(self):
        self.open()
        self.assertIsNone(self.run_command("hlo.removeDead"))
        text = apply(PROGRAM, self.shown("workspace/applyEdit")["edit"]["changes"][URI])
        self.assertEqual(text, PROGRAM.replace(next(l for l in PROGRAM.splitlines(True) if "%idle" in l), ""))

    def test_extract(self):
        with tempfile.TemporaryDirectory() as folder:
            uri = f"file://{folder}/model.hlo"
            self.client.open(uri, PROGRAM)
            result = self.client.request("workspace/executeCommand", {
                "command": "hlo.extract", "arguments": [uri, {"name": "e", "show": False}]})
            self.assertEqual(result["uri"], f"file://{folder}/model.e.hlo")
            text = self.path(result["uri"]).read_text()
            self.assertIn("exponential", text)
            self.assertNotIn("tanh", text)

    def test_simulate(self):
        self.open()
        self.assertIn("v5e", self.run_command("hlo.simulate", show=False)["text"])

    def test_run(self):
        self.open()
        self.assertIn("f32[8]", self.run_command("hlo.run", show=False)["text"])
        self.run_command("hlo.run")
        self.assertIn("f32[8]", self.shown("window/showMessage")["message"])

    def test_graph(self):
        self.open()
        uri = self.run_command("hlo.graph")["uri"]
        self.assertIn("graph-data", self.path(uri).read_text())
        self.assertEqual((self.shown()["uri"], self.shown()["external"]), (uri, True))

    def test_report(self):
        self.open()
        self.assertIn("<html", self.path(self.run_command("hlo.report", show=False)["uri"]).read_text())

    def test_diff(self):
        self.open()
        with tempfile.NamedTemporaryFile("w", suffix=".hlo") as other:
            other.write(PROGRAM.replace("tanh(", "sine("))
            other.flush()
            result = self.run_command("hlo.diff", show=False, other=other.name)
        self.assertIn("sine", result["text"])
        self.assertTrue(self.path(result["uri"]).exists())

    def test_reduce(self):
        self.open()
        text = self.path(self.run_command("hlo.reduce", show=False, name="e")["uri"]).read_text()
        self.assertIn("exponential", text)
        self.assertNotIn("reduce(", text)

    def test_the_text_of_the_editor_counts(self):
        self.open(PROGRAM.replace("tanh(", "tanhh("))
        with self.assertRaises(Failed) as raised:
            self.run_command("hlo.graph", show=False)
        self.assertIn("tanhh", raised.exception.message)

    def test_temporary_files_are_removed(self):
        client = Client(BIN / "hlo-lsp-server")
        client.open(URI, PROGRAM)
        result = client.request("workspace/executeCommand", {"command": "hlo.graph", "arguments": [URI, {"show": False}]})
        self.assertTrue(self.path(result["uri"]).exists())
        client.stop()
        client.process.stdout.close()
        self.assertFalse(self.path(result["uri"]).exists())

    def test_mistakes(self):
        self.open()
        for command, arguments in (("hlo.none", [URI]), ("hlo.graph", []), ("hlo.graph", ["file:///other"]),
                                   ("hlo.reduce", [URI, {"name": "none"}]), ("hlo.reduce", [URI]),
                                   ("hlo.extract", [URI, {"name": "none"}]), ("hlo.diff", [URI])):
            with self.assertRaises(Failed):
                self.client.request("workspace/executeCommand", {"command": command, "arguments": arguments})

    def test_a_command_is_cancelled(self):
        # A loop that does not end before the test does.
        self.open("HloModule loop\ncondition { s = s32[] parameter(0) z = s32[] constant(0) "
                  "ROOT c = pred[] compare(s, z), direction=GE }\nbody { s = s32[] parameter(0) z = s32[] constant(0) "
                  "ROOT n = s32[] multiply(s, z) }\nENTRY e { s = s32[] parameter(0) z = s32[] constant(0) "
                  "q = s32[] and(s, z) ROOT w = s32[] while(q), condition=condition, body=body }\n")
        id = self.client.start("workspace/executeCommand", {"command": "hlo.run", "arguments": [URI, {"show": False}]})
        self.client.about("textDocument/codeLens", URI)  # it is running
        self.client.notify("$/cancelRequest", {"id": id})
        with self.assertRaises(Failed) as raised:
            self.client.wait(id)
        self.assertEqual(raised.exception.code, -32800)


class Stablehlo(ServerTest):
    text = """\
module @m {
  func.func private @square(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
  func.func public @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = func.call @square(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
    %1 = stablehlo.add %0, %arg0 : tensor<2xf32>
    return %1 : tensor<2xf32>
  }
}
"""

    def setUp(self):
        super().setUp()
        self.open(self.text, language="mlir")

    def test_it_has_no_errors(self):
        self.assertEqual(self.client.published(URI), [])

    def test_definitions_are_those_of_the_function(self):
        found = self.at("definition", "%0, %arg0", after=1, text=self.text)
        self.assertEqual(found["range"]["start"], {"line": 6, "character": 5})
        found = self.at("definition", "@square(%arg0) :", after=1, text=self.text)
        self.assertEqual(found["range"]["start"], {"line": 1, "character": 21})

    def test_references_of_an_argument(self):
        found = self.at("references", "%arg0: tensor", 1, 1, text=self.text, context={"includeDeclaration": True})
        self.assertEqual([f["range"]["start"]["line"] for f in found], [5, 6, 7])

    def test_symbols(self):
        symbols = self.client.about("textDocument/documentSymbol", URI)
        self.assertEqual([s["name"] for s in symbols], ["m", "square", "main"])
        self.assertEqual([c["name"] for c in symbols[2]["children"]], ["arg0", "0", "1"])

    def test_rename_and_calls(self):
        edit = self.at("rename", "@square(%arg0:", after=1, text=self.text, newName="twice")
        self.assertEqual(apply(self.text, edit["changes"][URI]).count("@twice"), 2)
        (item,) = self.at("prepareCallHierarchy", "@square(%arg0:", after=1, text=self.text)
        (incoming,) = self.client.request("callHierarchy/incomingCalls", {"item": item})
        self.assertEqual(incoming["from"]["name"], "main")

    def test_hover_on_an_operation(self):
        hover = self.at("hover", "stablehlo.add", after=12, text=self.text)
        self.assertIn("sum", hover["contents"]["value"].lower())

    def test_hover_on_a_value(self):
        hover = self.at("hover", "%0 = stablehlo.multiply", after=1, text=self.text)
        for part in ("f32[2]", "1 use", "2 FLOP", "roofline on v5e"):
            self.assertIn(part, hover["contents"]["value"])
        hover = self.at("hover", "%arg0: tensor", 1, 1, text=self.text)
        self.assertIn("f32[2]", hover["contents"]["value"])


class Protocol(ServerTest):
    def test_changes_in_turn(self):
        """Edits of lines, of line ends and of characters that have two units."""
        self.open("a𝔸b\nc\r\nd\re")
        def change(l0, c0, l1, c1, text):
            self.client.change(URI, {"range": {"start": {"line": l0, "character": c0},
                                               "end": {"line": l1, "character": c1}}, "text": text})
        change(0, 3, 0, 4, "B")       # a𝔸B
        change(1, 1, 2, 0, "\n\n")    # c\n\nd\re
        change(4, 1, 9, 9, "!")       # at the end
        change(0, 9, 1, 0, "\r")      # \n becomes \r
        change(0, 0, 0, 0, "HloModule x\n")
        want = "HloModule x\na𝔸B\rc\n\nd\re!"
        # The whole is replaced by one edit, at the end of the last line.
        self.client.change(URI, {"range": {"start": {"line": 5, "character": 2}, "end": {"line": 5, "character": 2}},
                                 "text": "\nENTRY e { ROOT x = f32[] parameter(0) }"})
        with self.assertRaises(Failed):
            self.client.about("textDocument/formatting", URI)
        text = self.document_text()
        self.assertEqual(text, want + "\nENTRY e { ROOT x = f32[] parameter(0) }")

    def document_text(self):
        """The text that a tool gets."""
        with self.assertRaises(Failed) as raised:
            self.client.request("workspace/executeCommand", {"command": "hlo.run", "arguments": [URI, {"show": False}]})
        path = raised.exception.message.split("failed: ")[1].split(":")[0]
        return pathlib.Path(path).read_bytes().decode()

    def test_the_whole_text_is_replaced(self):
        self.open()
        self.client.change(URI, {"text": "HloModule m\nENTRY e { ROOT x = f32[] parameter(0) }\n"})
        self.assertEqual([s["name"] for s in self.client.about("textDocument/documentSymbol", URI)], ["m", "e"])

    def test_unknown_methods_and_documents(self):
        for method, params, code in (("textDocument/none", {}, -32601), ("$/none", {}, -32601),
                                     ("textDocument/hover", {}, -32602), ("initialize", {}, -32600)):
            with self.assertRaises(Failed) as raised:
                self.client.request(method, params)
            self.assertEqual(raised.exception.code, code)
        self.client.notify("$/none", {})

    def test_requests_before_and_after(self):
        client = Client(BIN / "hlo-lsp-server", initialize=False)
        with self.assertRaises(Failed) as raised:
            client.about("textDocument/hover", URI)
        self.assertEqual(raised.exception.code, -32002)
        client.request("initialize", {"capabilities": {}})
        client.request("shutdown", None)
        with self.assertRaises(Failed) as raised:
            client.about("textDocument/hover", URI)
        self.assertEqual(raised.exception.code, -32600)
        client.notify("exit", None)
        self.assertEqual(client.process.wait(10), 0)
        client.process.stdin.close()
        client.process.stdout.close()

    def test_the_end_without_a_shutdown(self):
        for last in (lambda client: client.notify("exit", None), lambda client: client.process.stdin.close()):
            client = Client(BIN / "hlo-lsp-server")
            last(client)
            self.assertEqual(client.process.wait(10), 1)
            client.process.stdin.close()
            client.process.stdout.close()

    def test_encodings(self):
        for encoding, column in (("utf-8", 7 + 4), ("utf-16", 7 + 2), ("utf-32", 7 + 1)):
            client = Client(BIN / "hlo-lsp-server", capabilities={"general": {"positionEncodings": ["none", encoding]}})
            self.assertEqual(client.capabilities["positionEncoding"], encoding)
            client.open(URI, "ENTRY e {\n  /* 𝔸*/x = f32[] parameter(0)\n  ROOT y = f32[] negate(x)\n}\n")
            found = client.at("textDocument/definition", URI, 2, 24)
            self.assertEqual(found["range"]["start"]["character"], column - 2 + 2)
            client.stop()
            client.process.stdout.close()

    def test_a_waiting_request_is_cancelled(self):
        self.open()
        requests = [{"jsonrpc": "2.0", "id": 1000 + k, "method": "textDocument/documentSymbol",
                     "params": {"textDocument": {"uri": URI}}} for k in range(3)]
        requests.append({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1001}})
        self.client.send_bytes(b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
                                        for body in (json.dumps(r).encode() for r in requests)))
        self.assertEqual(len(self.client.wait(1000)), 3)
        with self.assertRaises(Failed) as raised:
            self.client.wait(1001)
        self.assertEqual(raised.exception.code, -32800)
        self.assertEqual(len(self.client.wait(1002)), 3)


def fingerprint(text):
    run = subprocess.run([BIN / "hlo-inspect", "hash", "-"], input=text, capture_output=True, text=True, check=True)
    return run.stdout.split()[0]


if __name__ == "__main__":
    unittest.main()
