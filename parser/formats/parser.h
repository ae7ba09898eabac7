// SPDX-License-Identifier: Apache-2.0
// HLO text -> Module. Accepts everything that XLA's parser accepts: full modules, an ENTRY computation alone, bare
// computations, one instruction, nested operand instructions, inline computations, omitted shapes and names, async
// sugar. Every error is reported with its location; parsing resumes at the next instruction.
//
// Bounds: time and memory are linear in the text. No recursion: nesting is bounded only by the limits.
#ifndef HLOKIT_PARSER_FORMATS_PARSER_H_
#define HLOKIT_PARSER_FORMATS_PARSER_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "parser/text/foreign_parts.h"
#include "parser/text/parse_options.h"

namespace hlokit {

// Parses `text`, a part of `source` (all of it by default), into a module of `context` (a new one by default): HLO
// text, JSON, or one of XLA's protocol buffers with a module, binary, as text or as JSON; whatever it holds. Returns
// null after errors, which are in the sink. The module's context keeps `source` alive.
std::unique_ptr<Module> ParseModule(std::shared_ptr<const SourceBuffer> source, const ParseOptions& options,
                                    DiagnosticSink* sink, std::shared_ptr<Context> context = nullptr);
// Requires: `text` is followed by a NUL, as the chunks of SplitInputFile are.
std::unique_ptr<Module> ParseModulePart(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                        const ParseOptions& options, DiagnosticSink* sink,
                                        std::shared_ptr<Context> context = nullptr);

// As ParseModulePart, with what the file says beyond the module, which writing the same format takes: see
// module_formats.h. Takes several times as long for protocol buffers; `*parts` is null for other formats.
std::unique_ptr<Module> ParseModuleAndParts(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                            const ParseOptions& options, DiagnosticSink* sink,
                                            std::unique_ptr<const ForeignParts>* parts);

// Returns the module, or the first error. For tests and small programs.
absl::StatusOr<std::unique_ptr<Module>> ParseModuleText(std::string_view text, const ParseOptions& options = {});

// A text split at the lines "// -----". `source` is a copy of the text with a NUL at each split, so that offsets and
// line numbers are those of the file.
struct SplitInput {
  std::shared_ptr<const SourceBuffer> source;
  std::vector<std::string_view> chunks;
};
SplitInput SplitInputFile(const SourceBuffer& source);

// Parses a single shape, e.g. "f32[2,3]{1,0}", into `context`.
absl::StatusOr<Shape> ParseShapeText(std::string_view text, Context* context);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_FORMATS_PARSER_H_
