#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the TextMate grammars of editors/vscode/syntaxes from the tables of opcodes, attributes, types and machines.

  make_textmate.py [--check]

--check writes nothing, and exits with 1 if a grammar is not what would be written.
"""

import json
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
SYNTAXES = TOP / "editors/vscode/syntaxes"


def column(file, macro, number):
    """The texts of a column of the rows of a table."""
    found = []
    for line in (TOP / file).read_text().splitlines():
        row = re.match(rf"{macro}\((.*)", line)
        if row:
            cells = re.findall(r'"[^"]*"|[^,()]+', row[1])
            found.append(cells[number].strip().strip('"'))
    return [text for text in dict.fromkeys(found) if re.fullmatch(r"[\w.-]+", text)]


def words(texts):
    """A group of any of the texts, the longest first, so that none ends another one's beginning."""
    return "(?:" + "|".join(re.escape(t).replace(r"\-", "-") for t in sorted(texts, key=lambda t: (-len(t), t))) + ")"


def rule(name, match, **captures):
    made = {"name": f"{name}.hlo", "match": match} if name else {"match": match}
    if captures:
        made["captures"] = {key.lstrip("_"): {"name": f"{value}.hlo"} for key, value in captures.items()}
    return made


def hlo():
    opcodes = words(column("ir/ops/opcodes.def", "OPCODE", 1))
    attributes = words(column("ir/ops/attributes.def", "ATTRIBUTE", 1))
    values = words(column("ir/ops/enums.def", "ENUM_VALUE", 2))
    types = words(column("ir/types/element_types.def", "ELEMENT_TYPE", 1))
    name = r"%?[A-Za-z_][\w.-]*"
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "HLO",
        "scopeName": "source.hlo",
        "fileTypes": ["hlo"],
        "patterns": [{"include": f"#{part}"} for part in
                     ("comments", "strings", "header", "computation", "definition", "opcodes", "types", "attributes",
                      "calls", "values", "numbers", "names")],
        "repository": {
            "comments": {"patterns": [
                rule("comment.line.double-slash", r"//.*$"),
                {"name": "comment.block.hlo", "begin": r"/\*", "end": r"\*/"}]},
            "strings": {"name": "string.quoted.double.hlo", "begin": '"', "end": '"|$',
                        "patterns": [rule("constant.character.escape", r"\\.")]},
            "header": {"patterns": [
                rule("", rf"\b(HloModule)\s+({name})", _1="keyword.control", _2="entity.name.namespace"),
                rule("keyword.control", r"\b(?:FileNames|FunctionNames|FileLocations|StackFrames)\b")]},
            "computation": {"patterns": [
                rule("", rf"\b(ENTRY)\b\s*({name})?", _1="keyword.control", _2="entity.name.function"),
                rule("", rf"^({name})\s*(?=\(.*\{{\s*$|\{{\s*$)", _1="entity.name.function")]},
            "definition": rule("", rf"(?:\b(ROOT)\s+)?({name})(?=\s*=\s)", _1="keyword.control",
                               _2="variable.other.declaration"),
            "opcodes": {"patterns": [
                rule("support.function", rf"(?<![\w.%-]){opcodes}(?:-start|-update|-done)?(?=\()"),
                rule("invalid.illegal.opcode", r"(?<=[\]}\)] )[a-z][\w-]*(?=\()")]},
            "types": rule("storage.type", rf"(?<![\w.%-]){types}(?=\[)"),
            "attributes": {"patterns": [
                rule("variable.parameter.attribute", rf"(?<![\w.%-]){attributes}(?==)"),
                rule("variable.parameter", r"(?<![\w.%-])[A-Za-z_]\w*(?==)")]},
            "calls": rule("", rf"(?<=calls=|to_apply=|condition=|body=)({name})", _1="entity.name.function"),
            "values": {"patterns": [
                rule("constant.language", r"(?<![\w.%-])(?:true|false|inf|nan)(?![\w.-])"),
                rule("constant.other.enum", rf"(?<==|\{{|,){values}(?![\w.-])")]},
            "numbers": rule("constant.numeric", r"(?<![\w.%])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])"),
            "names": rule("variable.other", r"%[\w.-]+"),
        },
    }


def machine():
    fields = words(column("passes/target/device_description_fields.def", "FIELD", 0))
    return {
        "name": "TPU machine",
        "scopeName": "source.tpu-machine",
        "fileTypes": ["tpu"],
        "patterns": [
            {"name": "comment.line.number-sign.tpu-machine", "match": "#.*$"},
            {"match": r"^\s*(tpu|like)\s+(\S+)", "captures": {"1": {"name": "keyword.control.tpu-machine"},
                                                            "2": {"name": "entity.name.type.tpu-machine"}}},
            {"name": "variable.parameter.tpu-machine", "match": rf"(?<![\w.-]){fields}(?![\w.-])"},
            {"name": "constant.numeric.tpu-machine", "match": r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?"},
            {"name": "keyword.other.unit.tpu-machine", "match": r"(?<=[\d ])(?:[GM]?Hz|[mun]?s|[KMG]iB|[TGM]?B(?:/s)?|%)(?![\w/])"},
        ],
    }


def pipeline():
    return {
        "name": "Pipeline of passes",
        "scopeName": "source.hlo-pipeline",
        "fileTypes": ["passes"],
        "patterns": [
            {"name": "variable.parameter.hlo-pipeline", "match": r"[\w-]+(?=\s*=)"},
            {"match": r"(?<==)\s*([^,{}()\s]+)", "captures": {"1": {"name": "constant.other.hlo-pipeline"}}},
            {"name": "entity.name.type.group.hlo-pipeline", "match": r"[A-Za-z][\w-]*(?=\s*\()"},
            {"name": "support.function.hlo-pipeline", "match": r"[A-Za-z][\w-]*"},
            {"name": "keyword.operator.repeat.hlo-pipeline", "match": r"\*"},
        ],
    }


def main() -> int:
    stale = 0
    for name, grammar in (("hlo", hlo()), ("tpu-machine", machine()), ("hlo-pipeline", pipeline())):
        path = SYNTAXES / f"{name}.tmLanguage.json"
        text = json.dumps({"information_for_contributors": ["Written by editors/make_textmate.py."], **grammar}, indent=1) + "\n"
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.relative_to(TOP)} is not current: run editors/make_textmate.py")
            stale += 1
    return stale != 0


if __name__ == "__main__":
    sys.exit(main())
