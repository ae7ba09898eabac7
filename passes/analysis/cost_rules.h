// SPDX-License-Identifier: Apache-2.0
// Cost rule of each opcode, as implemented in cost_counter.cc. The rows are in opcode_costs.def.
#ifndef HLOKIT_PASSES_ANALYSIS_COST_RULES_H_
#define HLOKIT_PASSES_ANALYSIS_COST_RULES_H_

#include <cstdint>

#include "ir/ops/opcode.h"

namespace hlokit {

enum class CostRule : uint8_t {
  kFree,            // takes no time
  kPlain,           // reads its operands and writes its result
  kArithmetic,      // as kPlain, with an operation per element
  kTranscendental,  // as kPlain, with a transcendental function per element
  kSlice,
  kDynamicSlice,
  kDynamicUpdateSlice,
  kTuple,
  kDot,
  kRaggedDot,
  kConvolution,
  kMap,
  kReduce,
  kReduceWindow,
  kSelectAndScatter,
  kScan,
  kTranspose,
  kFft,
  kTriangularSolve,
  kCholesky,
  kInfeed,
  kOutfeed,
  kAllReduce,
  kRandom,
  kSort,
  kGather,
  kScatter,
  kFusion,
  kCall,
  kWhile,
  kConditional,
  kCustomCall,
};

CostRule CostRuleOf(Opcode opcode);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_ANALYSIS_COST_RULES_H_
