// SPDX-License-Identifier: Apache-2.0
// mlir::Module -> portable artifact, as `stablehlo-translate --serialize` of StableHLO 1.20 makes it: every attribute
// of VHLO is written, those that the program leaves out with their defaults.
#ifndef HLOKIT_PARSER_BYTECODE_WRITER_H_
#define HLOKIT_PARSER_BYTECODE_WRITER_H_

#include <optional>
#include <string>

#include "ir/core/diagnostic.h"
#include "parser/mlir/module.h"

namespace hlokit::bytecode {

// Operations, attributes and types that VHLO has not, those of other dialects than StableHLO and func for example, are
// reported with their place. Returns nothing then. Nodes are added to the program, which stays the same otherwise.
std::optional<std::string> WriteArtifact(mlir::Module* program, DiagnosticSink* sink);

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_WRITER_H_
