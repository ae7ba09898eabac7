// SPDX-License-Identifier: Apache-2.0
// StableHLO programs in any form, at the level of StableHLO: MLIR text and portable artifacts.
#ifndef HLOKIT_PARSER_FORMATS_STABLEHLO_PROGRAM_H_
#define HLOKIT_PARSER_FORMATS_STABLEHLO_PROGRAM_H_

#include <memory>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"

namespace hlokit {

namespace mlir {
class Module;
struct MlirOptions;
}  // namespace mlir

// Returns true if `text` appears to be a StableHLO program. Reads at most a few KiB.
bool LooksLikeStablehlo(std::string_view text);

// Reads `text`, a part of `source` that looks like one and is followed by a NUL, and verifies the program (unless the
// options say not to). Returns null after errors, which are in the sink.
std::unique_ptr<mlir::Module> ParseStablehloProgram(std::shared_ptr<const SourceBuffer> source, std::string_view text,
                                                    const mlir::MlirOptions& options, DiagnosticSink* sink);

}  // namespace hlokit

#endif  // HLOKIT_PARSER_FORMATS_STABLEHLO_PROGRAM_H_
