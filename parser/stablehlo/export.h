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

// Returns null after errors.
std::unique_ptr<mlir::Module> ExportToStablehlo(const Module& module, DiagnosticSink* sink);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_EXPORT_H_
