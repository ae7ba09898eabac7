// SPDX-License-Identifier: Apache-2.0
// How far the exact engine may be from the plain evaluator (interp/reference), which defines the values.
//
// An opcode that is not listed gives the same bits. Those that are listed are computed by other formulas or in another
// order, so a rounding may fall the other way.
#ifndef HLOKIT_INTERP_VALUES_ENGINE_ULPS_H_
#define HLOKIT_INTERP_VALUES_ENGINE_ULPS_H_

#include <array>

#include "absl/types/span.h"
#include "interp/values/value_comparison.h"
#include "ir/ops/opcode.h"
#include "ir/types/literal.h"

namespace hlokit::interp {

struct EngineUlps {
  Opcode opcode;
  double ulps;
  // In units of the last place of the largest magnitude among operands and results, not of the element: sums lose what
  // cancels.
  bool of_largest = false;
  // Only for finite operands: from others come NaNs and infinities, but which elements get them is left open.
  bool finite_only = false;
};

inline constexpr EngineUlps kEngineUlps[] = {
    {Opcode::kAbs, 1},                 // complex: hypot of f32
    {Opcode::kCos, 1},                 // f32 functions of the C library
    {Opcode::kExp, 1},                 // vectors
    {Opcode::kExpm1, 1},               // vectors
    {Opcode::kLog, 1},                 // vectors
    {Opcode::kLogistic, 1},            // vectors
    {Opcode::kPower, 1},               // f32 functions of the C library
    {Opcode::kSin, 1},                 // f32 functions of the C library
    {Opcode::kTanh, 1},                // vectors
    {Opcode::kFft, 8, true, true},     // fast transforms
    {Opcode::kReduce, 8, true},        // sums in another order
    {Opcode::kReduceWindow, 8, true},  // sums in another order
};

// By opcode: the row above, or 0.
inline constexpr std::array<EngineUlps, kOpcodeCount> kEngineUlpsOf = [] {
  std::array<EngineUlps, kOpcodeCount> all{};
  for (size_t i = 0; i < kOpcodeCount; ++i) all[i] = {static_cast<Opcode>(i), 0};
  for (const EngineUlps& row : kEngineUlps) all[static_cast<size_t>(row.opcode)] = row;
  return all;
}();

// Returns true if the values of `opcode` are defined for these operand leaves.
bool HasDefinedValues(Opcode opcode, absl::Span<const Literal> operands);

// The tolerance for one result leaf of an instruction with these operand leaves.
ErrorSpec EngineTolerance(Opcode opcode, absl::Span<const Literal> operands, const Literal& result);

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_VALUES_ENGINE_ULPS_H_
