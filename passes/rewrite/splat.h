// SPDX-License-Identifier: Apache-2.0
// Arrays all of whose elements are one known value.
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
  Instruction constant;   // that it comes from; perhaps larger than a scalar

  // Either zero of a float. False for types that have no such value.
  bool IsZero() const { return Is(0); }
  bool IsOne() const { return Is(1); }
  bool IsMinusOne() const { return Is(-1); }
  // True of pred, or an integer with all bits set.
  bool IsAllOnes() const;
  // A float zero with the sign bit set.
  bool IsNegativeZero() const;
  // +-infinity.
  bool IsInfinity(bool negative) const;
  // The smallest (largest) value of the type; of floats the infinity where there is one.
  bool IsLowest() const;
  bool IsHighest() const;
  // The value exactly equals `v`.
  bool Is(double v) const;
  // Real types; nullopt where a double does not hold the value.
  std::optional<double> AsDouble() const;
  // Integers and pred.
  std::optional<int64_t> AsInt() const;
};

// The value of a constant with equal elements, or of a broadcast, reshape, transpose, slice or copy of one. Looks
// through a bounded number of instructions, and does not look at constants larger than 4096 bytes in full.
std::optional<Splat> SplatOf(Instruction instruction);

// The value of an integer constant with one element.
std::optional<int64_t> IntegerConstant(Instruction instruction);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_SPLAT_H_
