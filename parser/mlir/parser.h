// SPDX-License-Identifier: Apache-2.0
// MLIR text -> mlir::Module: the generic form of any operation, and the custom forms of operations.def. Every error is
// reported with its location; after one, parsing goes on at the next operation, and what uses the results of one with
// an error reports none.
//
// No recursion: open operations and regions are on stacks, limited by the options.
#ifndef HLOKIT_PARSER_MLIR_PARSER_H_
#define HLOKIT_PARSER_MLIR_PARSER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "parser/mlir/module.h"

namespace hlokit::mlir {

// Limit on the nesting that options cannot raise.
inline constexpr int64_t kMaxNesting = 1 << 16;

struct MlirOptions {
  int64_t max_nesting = kMaxNesting;
  int64_t max_operations = int64_t{1} << 28;
  int64_t max_literal_bytes = int64_t{1} << 32;  // of all constants in total
  // Of ParseStablehloProgram: what is read is verified as StableHLO too.
  bool verify = true;
};

// Parses `text`, a part of `source` that is followed by a NUL. Returns null after errors, which are in the sink.
std::unique_ptr<Module> ParseMlir(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                  const MlirOptions& options, DiagnosticSink* sink);

// Returns "nested deeper than the limit of 3 (--max-nesting)", without the flag if there is none that raises the limit.
std::string NestingMessage(int64_t max_nesting, bool has_flag);
// Returns which limit `depth` open operations have reached, or else the operations of the program.
std::string LimitMessage(size_t depth, const MlirOptions& options);

}  // namespace hlokit::mlir

#endif  // HLOKIT_PARSER_MLIR_PARSER_H_
