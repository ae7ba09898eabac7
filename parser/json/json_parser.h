// SPDX-License-Identifier: Apache-2.0
// JSON -> Module: reads what ir/json/json_printer.h prints (docs/json.md describes it) into the same module, and holds
// it to the same rules as HLO text. Members may come in any order. Every error is reported with its place; reading goes
// on after those that leave the text JSON.
//
// Bounds: time and memory are linear in the text. Nothing recurses.
#ifndef HLOKIT_PARSER_JSON_JSON_PARSER_H_
#define HLOKIT_PARSER_JSON_JSON_PARSER_H_

#include <memory>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "parser/core/parser.h"

namespace hlokit {

// True if `text` begins, after blanks and comments, with '{', as no HLO text does.
bool LooksLikeJson(std::string_view text);

// As ParseModule and ParseModulePart: null if there was an error. Keys that are not known are errors, or, with
// options.allow_unknown, kept (attributes of instructions and modules) or left out (others) with a warning.
std::unique_ptr<Module> ParseJsonModule(std::shared_ptr<const SourceBuffer> source, const ParseOptions& options,
                                        DiagnosticSink* sink, std::shared_ptr<Context> context = nullptr);
std::unique_ptr<Module> ParseJsonModulePart(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                            const ParseOptions& options, DiagnosticSink* sink,
                                            std::shared_ptr<Context> context = nullptr);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_JSON_JSON_PARSER_H_
