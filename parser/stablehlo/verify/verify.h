// SPDX-License-Identifier: Apache-2.0
// Verifies a program at the level of StableHLO: numbers and types of operands and results, attributes, regions, and the
// rules of single operations. Every violation is reported at its operation, in the words of StableHLO's own verifier.
#ifndef HLOKIT_PARSER_STABLEHLO_VERIFY_VERIFY_H_
#define HLOKIT_PARSER_STABLEHLO_VERIFY_VERIFY_H_

#include "ir/core/diagnostic.h"
#include "parser/mlir/module.h"

namespace hlokit::stablehlo {

void VerifyProgram(const mlir::Module& program, DiagnosticSink* sink);

}  // namespace hlokit::stablehlo

#endif  // HLOKIT_PARSER_STABLEHLO_VERIFY_VERIFY_H_
