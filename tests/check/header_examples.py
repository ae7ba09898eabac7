#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the examples in comments of headers.

  header_examples.py [--list] BUILD_DIR

An example is a block of comment lines that are indented by three spaces or more, after an empty comment line or one that
ends with a colon, and in which a line ends with `;`. CONTEXT has what an example takes as given. --list prints the examples. Exits
with 1 if one does not compile, has no context, or is gone.
"""

import argparse
import pathlib
import re
import subprocess
import sys

import folders
import includes

TOP = pathlib.Path(__file__).resolve().parents[2]
ROOMS = (*folders.ROOMS, "tools")
LINE = re.compile(r" *//(   +\S.*)$")
STATEMENT = re.compile(r"; *(//.*)?$")

# By header: what its examples are in, and what they use: parameters of the function around them; None: they are
# declarations themselves.
CONTEXT = {
    "interp/compiled/compiled_kernels.h": (
        "hlokit::interp", "const Module& module, const EvaluatorOptions& options, DiagnosticSink sink"),
    "interp/exact/evaluator.h": ("hlokit::interp", "const Module& module, absl::Span<const Literal> arguments"),
    "interp/interface/custom_call_registry.h": (
        "hlokit::interp", "CustomCallRegistry& registry, EvaluatorOptions& options, CustomCallFunction function"),
    "interp/program/compile.h": (
        "hlokit::interp", "const Module& module, const CompileOptions& compile, const EvaluatorOptions& options, "
        "absl::Span<const Literal> arguments, DiagnosticSink sink"),
    "interp/reference/evaluator.h": (
        "hlokit", "const Module& module, const interp::EvaluatorOptions& options, "
        "absl::Span<const Literal> arguments, DiagnosticSink sink"),
    "passes/remarks/remark.h": ("hlokit", "Instruction instruction, Instruction operand, int64_t bytes"),
    "runtime/observe/profiler.h": ("hlokit::runtime", ""),
    "ir/ops/opcode_set.h": ("hlokit", "Opcode opcode"),
    "ir/builder/builder.h": ("hlokit", "Module& module, StringId name, Shape shape"),
    "parser/json/json_cursor.h": ("hlokit::internal", "JsonCursor& cursor"),
    "passes/core/pass_row.h": ("hlokit", None),
    "passes/core/registry.h": ("hlokit", ""),
    "tools/cli/cli.h": ("hlokit", None),
    "tracer/capture/capture.h": (
        "hlokit::lazy", "Tracer& tracer, nn::Optimizer& optimizer, std::function<Tensor(const Tensor&)> model, "
        "Tensor x, Tensor y"),
    "tracer/lowering/xla_op.h": ("hlokit::lazy", "XlaOp x"),
    "tracer/observe/profiling.h": (
        "hlokit::lazy", "Tracer& tracer, std::function<Tensor(const Tensor&)> Loss, "
        "std::function<Tensor(const Tensor&)> Logits, Tensor batch"),
    "tracer/step/tracer.h": ("hlokit::lazy", "Literal literal"),
}
# What the examples include besides their headers, and declare.
INCLUDES = ("functional", "memory", "optional", "utility", "vector", "CLI/CLI.hpp", "interp/exact/evaluator.h",
            "passes/core/register_passes.h", "tracer/dispatch/functions.h", "tracer/graph/tensor.h", "tracer/nn/optimizer.h")
DECLARED = {
    "passes/remarks/remark.h": "const PassContext& context();",
    "passes/core/pass_row.h": "class Logistic : public Pass { absl::StatusOr<bool> Run(Module&) override; };",
    "passes/core/registry.h": "class MyPass : public Pass { absl::StatusOr<bool> Run(Module&) override; };"}


def examples(path: pathlib.Path) -> list[str]:
    found, block, before = [], [], ""
    for line in [*path.read_text().splitlines(), ""]:
        match = LINE.match(line)
        if match and (block or before.strip() == "//" or before.endswith(":")):
            block.append(match[1])
            continue
        if block and not block[0].strip().startswith("- ") and any(STATEMENT.search(code) for code in block):
            found.append("\n".join(block))
        block, before = [], line
    return found


def unit(found: dict[str, list[str]]) -> str:
    lines = [f"#include <{name}>" if "." not in name or name.startswith("CLI") else f'#include "{name}"' for name in INCLUDES]
    lines += [f'#include "{header}"' for header in found]
    for header, blocks in found.items():
        namespace, parameters = CONTEXT[header]
        for number, block in enumerate(blocks):
            lines.append(f"namespace {namespace} {{ namespace example_{len(lines)} {{ {DECLARED.get(header, '')}")
            if parameters is not None:
                lines.append(f"void Example({parameters}) {{")
            lines.append(f'#line 1 "example {number + 1} of {header}"\n{block}')
            if parameters is not None:
                lines.append("}")
            lines.append("} }")
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    found = {}
    for room in ROOMS:
        for path in sorted((TOP / room).rglob("*.h")):
            if "node_modules" not in path.parts and (blocks := examples(path)):
                found[str(path.relative_to(TOP))] = blocks
    if options.list:
        print("\n\n".join(f"{header}:\n{block}" for header, blocks in found.items() for block in blocks))
        return 0
    failed = 0
    for header in sorted(found.keys() ^ CONTEXT.keys()):
        failed += 1
        what = "has an example, for which CONTEXT has no row" if header in found else "has no example: take its row out"
        print(f"{header}: {what}", file=sys.stderr)
    known = {header: blocks for header, blocks in found.items() if header in CONTEXT}
    compiler, flags = includes.settings(options.build)
    command = [compiler, *(flag for flag in flags if not flag.startswith("-D")), "-DNDEBUG", "-w", "-fsyntax-only", "-xc++", "-"]
    if subprocess.run(command, cwd=TOP, input=unit(known), text=True, check=False).returncode != 0:
        failed += 1
    count = sum(map(len, known.values()))
    print(f"{count} examples of {len(known)} headers, {failed} problems")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
