// SPDX-License-Identifier: Apache-2.0
// HLO -> StableHLO, as XLA's importer makes it: regions inline, computations that stay computations as private
// functions. Opcodes that StableHLO lacks are diagnostics that name the instruction.
#ifndef HLOKIT_PARSER_STABLEHLO_EXPORT_H_
#define HLOKIT_PARSER_STABLEHLO_EXPORT_H_

#include <memory>

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

// The discardable attribute that keeps the backend_config of an operation that has none of its own.
inline constexpr std::string_view kBackendConfig = "mhlo.backend_config";

// Returns null after errors.
std::unique_ptr<mlir::Module> ExportToStablehlo(const Module& module, DiagnosticSink* sink);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_EXPORT_H_
