// SPDX-License-Identifier: Apache-2.0
// Arrays with all elements equal to a known value.
#ifndef HLOKIT_PASSES_REWRITE_SPLAT_H_
#define HLOKIT_PASSES_REWRITE_SPLAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "ir/graph/module.h"

namespace hlokit {

struct Splat {
  ElementType type;
  const std::byte* data;  // one element, as in a Literal
  Instruction constant;   // the source constant; may be larger than a scalar

  // Returns true for either zero of a float, false for types without such a value.
  bool IsZero() const { return Is(0); }
  bool IsOne() const { return Is(1); }
  bool IsMinusOne() const { return Is(-1); }
  // Returns true for pred true, and for integers with all bits set.
  bool IsAllOnes() const;
  // Returns true for a float zero with the sign bit set.
  bool IsNegativeZero() const;
  // +-infinity.
  bool IsInfinity(bool negative) const;
  // Returns true for the smallest (largest) value of the type; for floats the infinity if there is one.
  bool IsLowest() const;
  bool IsHighest() const;
  // Returns true if the value exactly equals `v`.
  bool Is(double v) const;
  // For real types; nullopt if a double cannot represent the value.
  std::optional<double> AsDouble() const;
  // For integers and pred.
  std::optional<int64_t> AsInt() const;
};

// Returns the value of a constant with equal elements, or of a broadcast, reshape, transpose, slice or copy of one.
// Looks through a bounded number of instructions, and does not read constants larger than 4096 bytes in full.
std::optional<Splat> SplatOf(Instruction instruction);

// Returns the value of an integer constant with one element.
std::optional<int64_t> IntegerConstant(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_SPLAT_H_
