// SPDX-License-Identifier: Apache-2.0
// Results of a program that depend on what a pass may define anew, and are therefore not compared.
#ifndef HLOKIT_PASSES_INSTRUMENTATION_DEPENDENT_RESULTS_H_
#define HLOKIT_PASSES_INSTRUMENTATION_DEPENDENT_RESULTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "ir/graph/module_fwd.h"
#include "ir/ops/opcode.h"

namespace hlokit {

// Returns for each result leaf of the entry 1 if it depends on an instruction for which `is_source` returns true.
std::vector<uint8_t> DependentResults(const Module& module, absl::FunctionRef<bool(Instruction)> is_source);
// The same for instructions of these opcodes.
std::vector<uint8_t> DependentResults(const Module& module, absl::Span<const Opcode> opcodes);

// Returns true for a sort by a float order that NaN has no place in (LT, for example, without TOTALORDER): the position
// of NaN, and of elements next to it, is then unspecified.
bool SortsByPartialOrder(Instruction instruction);
// What a result that depends on one depends on.
inline constexpr std::string_view kUnorderedSort = "a sort in whose order NaN has no place";

// Results that are not compared, and why.
class UncomparedResults {
 public:
  // Adds results that are set in `dependent`, of one device, which depend on `what`, such as "rng"; it outlives this.
  void Add(absl::Span<const uint8_t> dependent, std::string_view what);
  // Adds the results that depend on an instruction of these opcodes.
  void Add(const Module& module, absl::Span<const Opcode> opcodes);
  // Adds those of `other`.
  void Add(const UncomparedResults& other);

  // Results of several devices follow each other.
  bool Contains(size_t result) const { return !reasons_.empty() && !reasons_[result % reasons_.size()].empty(); }
  int64_t count() const;
  // Returns true if there are results, and none is compared.
  bool IsAll() const { return !reasons_.empty() && count() == static_cast<int64_t>(reasons_.size()); }
  // Returns "1 of 3 results not compared: depends on rng"; "" if none is left out. `noun`: a plural.
  std::string ToString(std::string_view noun = "results") const;

 private:
  std::vector<std::vector<std::string_view>> reasons_;  // by result
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_DEPENDENT_RESULTS_H_
