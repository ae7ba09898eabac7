// SPDX-License-Identifier: Apache-2.0
// Tables of opcode properties of a library, checked at compile time: each opcode has one row, or takes the default of
// all elementwise opcodes (or of all others).
#ifndef HLOKIT_IR_OPS_OPCODE_TABLE_H_
#define HLOKIT_IR_OPS_OPCODE_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "ir/ops/opcode.h"

namespace hlokit {

// The traits column of opcodes.def.
inline constexpr uint32_t kOpcodeTraitColumn[] = {
#define OPCODE(name, text, min, max, rule, types, traits, ...) static_cast<uint32_t>(traits),
#include "ir/ops/opcode_columns.inc"
};

template <typename T>
struct OpcodeRow {
  Opcode opcode;
  T value;
};

// Values for opcodes without a row. Absent: such an opcode needs one.
template <typename T>
struct OpcodeDefaults {
  std::optional<T> elementwise;
  std::optional<T> other;
  T unknown;  // for Opcode::kUnknown
};

namespace internal {
// Not constexpr: a call while a table is made is a compile error that names the reason.
inline void OpcodeHasTwoRows() {}
inline void OpcodeHasNoRow() {}
}  // namespace internal

// Returns the values by opcode. Does not compile if an opcode has two rows, or none and no default.
template <typename T>
consteval std::array<T, kOpcodeCount + 1> MakeOpcodeTable(absl::Span<const OpcodeRow<T>> rows,
                                                          const OpcodeDefaults<T>& defaults) {
  std::array<std::optional<T>, kOpcodeCount> given{};
  for (const OpcodeRow<T>& row : rows) {
    std::optional<T>& slot = given[static_cast<size_t>(row.opcode)];
    if (slot.has_value()) internal::OpcodeHasTwoRows();
    slot = row.value;
  }
  std::array<T, kOpcodeCount + 1> table{};
  for (size_t i = 0; i < kOpcodeCount; ++i) {
    std::optional<T> value = given[i];
    if (!value.has_value()) value = (kOpcodeTraitColumn[i] & kElementwise) != 0 ? defaults.elementwise : defaults.other;
    if (!value.has_value()) internal::OpcodeHasNoRow();
    table[i] = *value;
  }
  table[kOpcodeCount] = defaults.unknown;
  return table;
}

// Returns the functions that single opcodes have, by opcode; null for all others.
template <typename Function>
consteval std::array<Function, kOpcodeCount + 1> MakeOpcodeHandlers(absl::Span<const OpcodeRow<Function>> rows) {
  return MakeOpcodeTable<Function>(rows, {.elementwise = Function(), .other = Function(), .unknown = Function()});
}

}  // namespace hlokit

#endif  // HLOKIT_IR_OPS_OPCODE_TABLE_H_
