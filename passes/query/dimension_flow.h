// SPDX-License-Identifier: Apache-2.0
// Follows a dimension of an array through a program: which dimensions of other values have to change with its size. It
// goes along the factors of sharding rules (passes/sharding/sharding_rule.h), and through tuples, loops, calls and
// fusions (flow.h).
#ifndef HLOKIT_PASSES_QUERY_DIMENSION_FLOW_H_
#define HLOKIT_PASSES_QUERY_DIMENSION_FLOW_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "ir/graph/module.h"
#include "passes/query/flow.h"
#include "passes/sharding/sharding_rule.h"

namespace hlokit::query {

// A dimension of a leaf of a value.
struct ValueDimension {
  Instruction instruction;
  int64_t leaf = 0;
  int64_t dimension = 0;
};

// The old and the new size of the dimension at which a flow begins. Others change in the same ratio.
struct SizeChange {
  int64_t from = 1, to = 1;
  // Sizes need not be whole: they are rounded down, but not below 1. For programs whose values do not matter.
  bool rounds = false;

  // Returns true if a size can change.
  bool Fits(int64_t size) const { return New(size) >= 0; }
  // Returns the new size; -1 if it is not whole, or too large.
  int64_t New(int64_t size) const;
  std::string RatioText() const;
};

// An error at the instruction beyond which a dimension cannot be followed.
absl::Status CannotFollow(Instruction instruction, std::string_view why);

class DimensionFlow {
 public:
  // Where a dimension cannot be followed.
  enum class Obstacle : uint8_t {
    kError,  // Follow returns an error
    kEnd,    // the flow ends there; the program may be invalid with the new sizes
  };
  static constexpr int64_t kMaxRank = 64;  // arrays with more dimensions cannot be followed

  // Requires: the module outlives the flow.
  DimensionFlow(const Module& module, Obstacle obstacle) : flow_(module), obstacle_(obstacle) {}

  // Adds a dimension. Requires: it is below kMaxRank.
  void Mark(Instruction instruction, int64_t leaf, int64_t dimension);
  // Finds the dimensions that change with those that were added since the last call. Linear in what it reaches.
  absl::Status Follow(const SizeChange& change);

  // Returns the marked dimensions of a leaf, a bit for each.
  uint64_t MaskOf(InstructionId id, int64_t leaf) const;
  bool IsMarked(Instruction instruction) const;
  bool empty() const { return marked_.empty(); }

 private:
  absl::Status FollowFrom(const ValueDimension& at, const SizeChange& change);
  absl::Status FollowRule(Instruction i, int64_t operand, int64_t leaf, int64_t dimension, const SizeChange& change);

  const ValueFlow flow_;
  const Obstacle obstacle_;
  absl::flat_hash_map<std::pair<uint32_t, int64_t>, uint64_t> marked_;  // by instruction and leaf
  struct Followed {
    ShardingRule rule;
    std::vector<int32_t> factors;  // along which the flow goes
  };
  absl::flat_hash_map<uint32_t, Followed> rules_;  // by instruction id
  std::vector<ValueDimension> open_;
};

// Returns one of each group of dimensions larger than 1 that change together, in the order of the text; those of
// arrays of dynamic sizes are left out.
std::vector<ValueDimension> IndependentDimensions(const Module& module);

}  // namespace hlokit::query

#endif  // HLOKIT_PASSES_QUERY_DIMENSION_FLOW_H_
