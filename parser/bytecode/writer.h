// SPDX-License-Identifier: Apache-2.0
// mlir::Module -> portable artifact, as `stablehlo-translate --serialize --target=VERSION` of StableHLO 1.20 makes it:
// every attribute of VHLO is written, those that the program leaves out with their defaults.
#ifndef HLOKIT_PARSER_BYTECODE_WRITER_H_
#define HLOKIT_PARSER_BYTECODE_WRITER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/core/diagnostic.h"
#include "parser/bytecode/reader.h"
#include "parser/mlir/module.h"

namespace hlokit::bytecode {

// Operations, attributes and types that VHLO has not, those of other dialects than StableHLO and func for example, are
// reported with their place. Returns nothing then. Nodes are added to the program, which stays the same otherwise.
// What release 1.MINOR of StableHLO, which is to read the artifact, lacks is likewise.
inline constexpr int64_t kNewestMinor = kNewestStablehlo.minor;
std::optional<std::string> WriteArtifact(mlir::Module* program, DiagnosticSink* sink, int64_t minor = kNewestMinor);

// Returns 9 for "1.9.5"; nullopt for another text, or a release that no artifact can be written for.
std::optional<int64_t> MinorOfTarget(std::string_view version);

}  // namespace hlokit::bytecode

#endif  // HLOKIT_PARSER_BYTECODE_WRITER_H_
