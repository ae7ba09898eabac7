// SPDX-License-Identifier: Apache-2.0
// What changed from module `a` to module `b`: instructions that were added, removed and changed, and how.
#ifndef HLOKIT_PASSES_DIFF_MODULE_DIFF_H_
#define HLOKIT_PASSES_DIFF_MODULE_DIFF_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/module.h"
#include "passes/diff/matching.h"

namespace hlokit {

// Ways in which matched instructions differ.
enum class Aspect : uint8_t {
  kOpcode,
  kShape,
  kAttributes,  // semantic ones
  kValue,       // of a constant; the number of a parameter
  kOperands,    // which instructions are read, or how many
  kMoved,       // to a computation that is not the counterpart of its own
  kLayout,      // of a shape that is equal otherwise
  kSharding,
  kFrontendAttributes,
  kMetadata,
  kName,
};
inline constexpr size_t kAspects = 11;
std::string_view ToString(Aspect aspect);
std::optional<Aspect> AspectFromText(std::string_view text);

// A set of aspects.
class Aspects {
 public:
  constexpr Aspects() = default;
  constexpr void Add(Aspect a) { bits_ |= Bit(a); }
  constexpr void Remove(Aspect a) { bits_ &= ~Bit(a); }
  constexpr bool Contains(Aspect a) const { return (bits_ & Bit(a)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  static constexpr uint32_t Bit(Aspect a) { return uint32_t{1} << static_cast<uint32_t>(a); }
  uint32_t bits_ = 0;
};

struct DiffOptions {
  Aspects ignored;  // differences that do not count
};

struct ChangedInstruction {
  Instruction a, b;
  Aspects aspects;
  std::vector<std::string> differences;  // "shape: f32[2] vs f32[4]"
};

struct ModuleDiff {
  ModuleMatching matching;
  std::vector<std::string> header;  // "replica_count: 1 vs 2"
  int64_t unchanged = 0;            // instructions
  // In the order of the text: of b, but those of removed ones of a.
  std::vector<ChangedInstruction> changed;
  std::vector<Instruction> added, removed;
  std::vector<Computation> added_computations, removed_computations;
  // Numbers of instructions by Aspect, of ignored aspects too.
  std::array<int64_t, kAspects> count_by_aspect = {};

  bool same() const {
    return header.empty() && changed.empty() && added.empty() && removed.empty() && added_computations.empty() &&
           removed_computations.empty();
  }
};

// Requires: the modules share a context. Nearly linear in their sizes.
ModuleDiff CompareModules(const Module& a, const Module& b, const DiffOptions& options = {});

}  // namespace hlokit

#endif  // HLOKIT_PASSES_DIFF_MODULE_DIFF_H_
