// SPDX-License-Identifier: Apache-2.0
// Portable artifacts of StableHLO, which are MLIR bytecode of the VHLO dialect, -> mlir::Module: the same program that
// its text would give. Read are the operations, attributes and types of VHLO up to kNewestStablehlo; anything else is
// an error that names it, the place in the file and, if the file is by a newer StableHLO, its version.
//
// No recursion: open regions are on a stack, limited by the options.
#ifndef HLOKIT_PARSER_BYTECODE_READER_H_
#define HLOKIT_PARSER_BYTECODE_READER_H_

#include <memory>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "parser/mlir/module.h"
#include "parser/mlir/parser.h"

namespace hlokit::bytecode {

// The newest version whose features are known.
struct StablehloVersion {
  int major = 0, minor = 0;
};
inline constexpr StablehloVersion kNewestStablehlo = {1, 20};

// Reads `bytes`, a part of `source` that IsBytecode. Returns null after an error, which is in the sink.
std::unique_ptr<mlir::Module> ReadArtifact(std::shared_ptr<const SourceBuffer> source, std::string_view bytes,
                                           const mlir::MlirOptions& options, DiagnosticSink* sink);

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_READER_H_
