// SPDX-License-Identifier: Apache-2.0
// HLO -> StableHLO, as XLA's importer makes it: regions inline, computations that stay computations as private
// functions. Opcodes that StableHLO lacks are diagnostics that name the instruction.
#ifndef HLOKIT_PARSER_STABLEHLO_EXPORT_EXPORT_H_
#define HLOKIT_PARSER_STABLEHLO_EXPORT_EXPORT_H_

#include <memory>

#include "ir/core/diagnostic.h"
#include "ir/graph/module.h"
#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

struct ExportOptions {
  // As XLA's own translator writes it: tuples stay tuples, computations of regions are private functions too, and
  // nothing is kept in attributes of hlokit.
  bool as_xla = false;
};

// Returns null after errors, which those of a module that does not verify are.
std::unique_ptr<mlir::Module> ExportToStablehlo(const Module& module, DiagnosticSink* sink,
                                                const ExportOptions& options = {});

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_EXPORT_EXPORT_H_
