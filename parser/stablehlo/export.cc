// SPDX-License-Identifier: Apache-2.0
#include "parser/stablehlo/export.h"

namespace hlokit::stablehlo {

std::unique_ptr<mlir::Module> ExportToStablehlo(const Module& module, DiagnosticSink* sink) {
  sink->Error(DiagnosticKind::kUnsupported, {}, "StableHLO cannot be written yet");
  (void)module;
  return nullptr;
}

}  // namespace hlokit::stablehlo
