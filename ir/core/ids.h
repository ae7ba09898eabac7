// SPDX-License-Identifier: Apache-2.0
// Typed 32-bit ids. Every object of a module (instruction, computation, shape, string, ...) is identified by one; a
// plain integer never is. `Id{}` is invalid.
#ifndef HLOKIT_IR_CORE_IDS_H_
#define HLOKIT_IR_CORE_IDS_H_

#include <cstddef>
#include <cstdint>
#include <functional>

namespace hlokit {

template <typename Tag>
struct Id {
  static constexpr uint32_t kNone = 0xffffffffu;

  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}

  constexpr bool valid() const { return value != kNone; }
  constexpr explicit operator bool() const { return valid(); }

  friend constexpr bool operator==(Id a, Id b) { return a.value == b.value; }
  friend constexpr bool operator!=(Id a, Id b) { return a.value != b.value; }
  friend constexpr bool operator<(Id a, Id b) { return a.value < b.value; }

  template <typename H>
  friend H AbslHashValue(H h, Id id) {
    return H::combine(std::move(h), id.value);
  }
};

// Stored in a Module.
using InstructionId = Id<struct InstructionTag>;
using ComputationId = Id<struct ComputationTag>;
using UseId = Id<struct UseTag>;

// Interned in a Context: equal contents have equal ids.
using StringId = Id<struct StringTag>;
using ShapeId = Id<struct ShapeTag>;
using LayoutId = Id<struct LayoutTag>;
using ListId = Id<struct ListTag>;  // a list of int64, see list_pool.h
using MetadataId = Id<struct MetadataTag>;
using LiteralId = Id<struct LiteralTag>;

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_IDS_H_
