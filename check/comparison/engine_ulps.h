// SPDX-License-Identifier: Apache-2.0
// Tolerances of the exact engine relative to the plain evaluator (interp/reference), which defines the values.
//
// Opcodes that are not listed give the same bits. The exact engine computes listed ones by other formulas or in another
// order, so that results may round differently.
#ifndef HLOKIT_CHECK_COMPARISON_ENGINE_ULPS_H_
#define HLOKIT_CHECK_COMPARISON_ENGINE_ULPS_H_

#include <array>

#include "absl/types/span.h"
#include "check/comparison/value_comparison.h"
#include "ir/graph/module_fwd.h"
#include "ir/ops/opcode.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

struct EngineUlps {
  Opcode opcode;
  double ulps;
  // Units in the last place of the largest magnitude among operands and results instead of the element: sums suffer
  // cancellation.
  bool of_largest = false;
  // Holds for finite operands alone: which elements are NaN or infinite otherwise is unspecified.
  bool finite_only = false;
};

inline constexpr EngineUlps kEngineUlps[] = {
    {Opcode::kAbs, 1},                 // complex: hypot of f32
    {Opcode::kCos, 1},                 // f32 functions of the C library
    {Opcode::kExp, 1},                 // vectorized
    {Opcode::kExpm1, 1},               // vectorized
    {Opcode::kLog, 1},                 // vectorized
    {Opcode::kLogistic, 1},            // vectorized
    {Opcode::kPower, 1},               // f32 functions of the C library
    {Opcode::kSin, 1},                 // f32 functions of the C library
    {Opcode::kTanh, 1},                // vectorized
    {Opcode::kFft, 8, true, true},     // fast transforms
    {Opcode::kReduce, 8, true},        // sums in another order
    {Opcode::kReduceWindow, 8, true},  // sums in another order
};

// The row of an opcode; 0 if not listed.
inline constexpr std::array<EngineUlps, kOpcodeCount + 1> kEngineUlpsOf = [] {
  std::array<EngineUlps, kOpcodeCount + 1> all{};
  for (size_t i = 0; i <= kOpcodeCount; ++i) all[i] = {static_cast<Opcode>(i), 0};
  for (const EngineUlps& row : kEngineUlps) all[static_cast<size_t>(row.opcode)] = row;
  return all;
}();

// Returns true if the values of `opcode` are defined for these operand leaves.
bool HasDefinedValues(Opcode opcode, absl::Span<const Literal> operands);

// Returns the tolerance for one result leaf of an instruction with these operand leaves.
ErrorSpec EngineTolerance(Opcode opcode, absl::Span<const Literal> operands, const Literal& result);
// The same for an instruction. One that runs a computation, as a fusion does, may have the rounding errors of all
// instructions in it, in units of the largest magnitude if there are several.
ErrorSpec EngineTolerance(Instruction instruction, absl::Span<const Literal> operands, const Literal& result);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_COMPARISON_ENGINE_ULPS_H_
