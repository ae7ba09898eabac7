// SPDX-License-Identifier: Apache-2.0
// Sharding rules: how the dimensions of the operands and results of an operation belong together. A rule is a list of
// factors, like the indices of an einsum; each dimension of each array is made of factors, major first, whose sizes
// multiply to its size. A dot of [b,m,k] and [b,k,n] has the factors b, m, n (parallel) and k (reduced). Propagation
// carries axes along factors; what partitioning has to communicate follows from their kinds.
//
// Rules are made from shapes and attributes by a function of the opcode's row in opcode_sharding_rules.def. Operations
// without a rule of their own have every dimension whole.
#ifndef HLOKIT_PASSES_SHARDING_SHARDING_RULE_H_
#define HLOKIT_PASSES_SHARDING_SHARDING_RULE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "ir/ops/opcode.h"
#include "ir/sharding/tiling.h"

namespace hlokit {

// The rows of opcode_sharding_rules.def.
enum class RuleClass : uint8_t {
  kElementwise,      // dimensions of the same number are one factor
  kForwarding,       // the leaves of the result are those of operands, callees or callers: no rule, but equal shardings
  kNothing,          // no data that could be divided, or a part of an asynchronous operation
  kSource,           // a result whose local part any device can make: each dimension parallel by itself
  kWhole,            // every dimension whole
  kDeviceDimension,  // a collective that changes the size of a dimension
  kBatchNorm,
  kBitcastConvert,
  kBroadcast,
  kConcatenate,
  kConvolution,
  kCustomCall,
  kDot,
  kDynamicSlice,
  kDynamicUpdateSlice,
  kFft,
  kGather,
  kMatrixWhole,  // the last two dimensions whole, the others a batch
  kPad,
  kRaggedDot,
  kReduce,
  kReduceWindow,
  kReshape,
  kReverse,
  kRngBitGenerator,
  kScan,
  kScatter,
  kSelectAndScatter,
  kSlice,
  kSort,
  kStated,  // a custom-call with a rule in its frontend attribute xla.sdy.sharding_rule
  kTopK,
  kTranspose,
  kTriangularSolve,
};

// More that propagation knows of an opcode.
enum ShardingTrait : uint8_t {
  kNoShardingTraits = 0,
  kFollowsFirstOperand = 1 << 0,  // operands other than the first say nothing of the result, outside of SPMD
  kPassesEarly = 1 << 1,          // passes shardings on from the first level, as elementwise operations do
  kTakesManual = 1 << 2,          // takes manual shardings from operands also if its result is a tuple
};

RuleClass RuleClassOf(Opcode opcode);
bool HasShardingTrait(Opcode opcode, ShardingTrait trait);
// Returns true if operations of the class add elements: divided, they add partial sums.
bool AddsElements(RuleClass rule);
// Returns the class of an instruction: a custom-call with a known target has that of the operation, and one that states
// its rule kStated.
RuleClass RuleClassOf(Instruction instruction);

// What a factor means, and what dividing it implies.
enum class FactorKind : uint8_t {
  kParallel,  // the local result is a part of the whole one: nothing
  kReduced,   // in operands only; partial results are combined: all-reduce or reduce-scatter
  kWindow,    // a result index needs operand indices nearby: exchange with neighbors
  kLookedUp,  // indexed by data: local indices, masks, and for reading a sum
  kPrefix,    // result i combines operand 0 … i: totals of the parts
  kWhole,     // must be complete on each device: gathered, or moved to another dimension
};
inline constexpr std::string_view kFactorKindTexts[] = {"parallel",  "reduced", "window",
                                                        "looked-up", "prefix",  "whole"};

struct Factor {
  int64_t size = 1;  // of a window: that of the larger side
  FactorKind kind = FactorKind::kParallel;
};

// The factors of each dimension of an array, as indices, major first.
using ArrayFactors = std::vector<std::vector<int32_t>>;

struct ShardingRule {
  std::vector<Factor> factors;
  std::vector<ArrayFactors> operands;  // by operand; without dimensions for those that are not arrays
  std::vector<ArrayFactors> results;   // by leaf of the result
  bool known = true;                   // false: the operation has no rule, and every dimension is whole

  // Returns "ab,bc->ac {b reduced}": letters for factors, in brackets where a dimension has several.
  std::string ToString() const;
};

// Returns the rule. Requires: a verified instruction.
ShardingRule RuleOf(Instruction instruction);

// Returns the tiling that `to` gets along the factors that both have: of each dimension the axes that its factors take
// (AxesByFactor). Others are replicated, subgroups stay.
Tiling CarryAlongFactors(const ShardingRule& rule, const ArrayFactors& from, const ArrayFactors& to,
                         const Tiling& tiling);
// As CarryAlongFactors, along factors of some kinds only: `kinds` has a bit for each.
constexpr uint32_t KindBit(FactorKind kind) { return uint32_t{1} << static_cast<uint32_t>(kind); }
Tiling CarryAlongFactors(const ShardingRule& rule, const ArrayFactors& from, const ArrayFactors& to,
                         const Tiling& tiling, uint32_t kinds);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SHARDING_SHARDING_RULE_H_
