// SPDX-License-Identifier: Apache-2.0
// The bounds of the fast engine (docs/engine.md) relative to the exact one, instruction by instruction.
#ifndef HLOKIT_CHECK_ISOLATION_FAST_TOLERANCE_H_
#define HLOKIT_CHECK_ISOLATION_FAST_TOLERANCE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "check/comparison/value_comparison.h"
#include "check/isolation/instruction_runner.h"
#include "ir/graph/module.h"
#include "ir/ops/opcode.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

class FastTolerance {
 public:
  // The module must outlive it unchanged.
  FastTolerance(const Module& module, const EvaluatorOptions& options) : exact_(module, EngineKind::kExact, options) {}

  // Returns the tolerance for one result leaf of an instruction with these operand leaves. Of products and
  // convolutions it takes a run on the magnitudes of the operands.
  ErrorSpec Of(Instruction instruction, absl::Span<const Literal> operands, const Literal& result);

  // Returns the results of an instruction on the magnitudes of its operands: of a product or convolution, the sums that
  // bound the error of each element.
  absl::StatusOr<std::vector<Literal>> OnMagnitudes(Instruction instruction, absl::Span<const Literal> operands);

  // Returns how many terms each element of a dot or convolution is the sum of, padding included.
  static int64_t TermsOf(Instruction product);

 private:
  InstructionRunner exact_;
};

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ISOLATION_FAST_TOLERANCE_H_
