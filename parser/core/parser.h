// SPDX-License-Identifier: Apache-2.0
// HLO text -> Module. Reads whatever XLA's parser reads: full modules, an ENTRY computation alone, bare computations,
// one instruction, nested operand instructions, inline computations, omitted shapes and names, async sugar. Every error
// of the text is reported with its place; the reader resumes at the next instruction.
//
// Bounds: time and memory are linear in the text. Nothing recurses: nests of any depth are read, up to the limits.
#ifndef HLOKIT_PARSER_CORE_PARSER_H_
#define HLOKIT_PARSER_CORE_PARSER_H_

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"

namespace hlokit {

struct ParseOptions {
  // Keep opcodes and attributes that the tables lack as they stand, with a warning each, instead of rejecting them.
  bool allow_unknown = false;
  // The text is a module quoted in another one's header.
  bool quoted_module = false;
  // Limits. Passing one is a diagnostic.
  int64_t max_nesting = 1 << 20;
  int64_t max_instructions = int64_t{1} << 28;
  int64_t max_literal_bytes = int64_t{1} << 32;  // of all constants together
};

// Reads `text`, a part of `source` (all of it by default), into a module of `context` (a new one by default). Null if
// there was an error; the sink says which. The module's context keeps `source` alive.
std::unique_ptr<Module> ParseModule(std::shared_ptr<const SourceBuffer> source, const ParseOptions& options,
                                    DiagnosticSink* sink, std::shared_ptr<Context> context = nullptr);
// `text` must be followed by a NUL, as the groups of SplitInputFile are.
std::unique_ptr<Module> ParseModulePart(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                        const ParseOptions& options, DiagnosticSink* sink,
                                        std::shared_ptr<Context> context = nullptr);

// For tests and small programs: the module, or the first error.
absl::StatusOr<std::unique_ptr<Module>> ParseModuleText(std::string_view text, const ParseOptions& options = {});

// A text cut at the lines that consist of "// -----". `source` is a copy of the text with a NUL at each cut, so that
// offsets, and with them line numbers, stay those of the file.
struct SplitInput {
  std::shared_ptr<const SourceBuffer> source;
  std::vector<std::string_view> chunks;
};
SplitInput SplitInputFile(const SourceBuffer& source);

// A shape alone, e.g. "f32[2,3]{1,0}", made in `context`.
absl::StatusOr<Shape> ParseShapeText(std::string_view text, Context* context);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_CORE_PARSER_H_
