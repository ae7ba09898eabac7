// SPDX-License-Identifier: Apache-2.0
// JSON -> Module: reads the output of ir/json/json_printer.h (docs/json.md describes it) into an equal module, under
// the rules of HLO text. Members may come in any order. Every error is reported with its location; parsing resumes
// after errors that leave the text valid JSON.
//
// Bounds: time and memory are linear in the text. No recursion.
#ifndef HLOKIT_PARSER_JSON_JSON_PARSER_H_
#define HLOKIT_PARSER_JSON_JSON_PARSER_H_

#include <memory>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "parser/text/parse_options.h"

namespace hlokit {

// Returns true if `text` begins, after whitespace and comments, with '{', as no HLO text does.
bool LooksLikeJson(std::string_view text);

// As ParseModule and ParseModulePart: return null after errors. Unknown keys are errors, or, with
// options.allow_unknown, kept (attributes of instructions and modules) or dropped (others) with a warning.
std::unique_ptr<Module> ParseJsonModule(std::shared_ptr<const SourceBuffer> source, const ParseOptions& options,
                                        DiagnosticSink* sink, std::shared_ptr<Context> context = nullptr);
std::unique_ptr<Module> ParseJsonModulePart(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                            const ParseOptions& options, DiagnosticSink* sink,
                                            std::shared_ptr<Context> context = nullptr);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_JSON_JSON_PARSER_H_
