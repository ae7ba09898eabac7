// SPDX-License-Identifier: Apache-2.0
// Decides which instructions of a computation to fuse.
//
// Constraints on a fusion
//   - Its instructions are of one computation, have no side effects, no control edges, static shapes in the default
//     memory space, and no callees but the function of a reduction or map.
//   - It is one loop nest. Without a hero (kLoop) the loop runs over the elements of the results, which all have the
//     same number of elements. With reductions as heroes (kInput) it runs over the operands of the reductions, which
//     have the same dimensions and the same reduced dimensions; users of a reduction run over its results. With a dot
//     or convolution as hero (kOutput) it runs over the hero's result, which reductions may follow
//     (reduction_epilogues).
//   - Every instruction is computed in the loop: each element once or, if it is cheap (a few operations per element),
//     once per use, up to a number of operations per loop element. Producers of a dot are computed as its operands are
//     loaded. They are cheap unless operands are loaded once, as on a TPU, where a kernel holds a tile of an operand
//     until all its partners have used it. A reduction, window, dot, convolution or transcendental function is never
//     duplicated.
//   - A result is either the end of the loop or an intermediate value of which each element is computed exactly once.
//   - An update in place stays in place: its first operand is an input of the fusion, and it is a result.
//   - Fusions do not form cycles.
//
// Profitability: a value that is not stored saves its bytes, a value with several consumers saves the reads of all but
// one, and computing a cheap value at each of its users costs the bytes of its operands there. Each decision takes the
// largest saving, by the bytes of CostAnalysis.
#ifndef HLOKIT_PASSES_FUSION_FUSION_PLAN_H_
#define HLOKIT_PASSES_FUSION_FUSION_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

struct FusionLimits {
  int64_t max_operands = 64;         // parameters and results of a fusion
  int64_t max_instructions = 512;    // in a fusion
  double max_recompute = 16;         // recomputed operations per loop element
  double operand_reload_factor = 4;  // number of loads of an element of a dot operand, for the cost of recomputation
  bool multi_output = true;
  bool output_fusion = true;  // around dots and convolutions
  // Reductions of the result of a dot or convolution, as it is computed: on a TPU each core runs one kernel at a time.
  bool reduction_epilogues = false;
};

// An instruction computed by a fusion.
struct FusionMember {
  InstructionId instruction;
  bool exclusive = false;  // computed in this fusion only
  bool result = false;     // an exclusive member with uses outside
};

// A planned fusion.
struct FusionGroup {
  uint32_t begin = 0, end = 0;  // its members in the plan, operands before users
  uint32_t results = 0;         // number of results
  uint32_t inputs = 0;          // approximate number of inputs
  FusionKind kind = FusionKind::kLoop;
  InstructionId metadata_source;  // supplies the op_name of the fusion: the hero, or the last instruction
};

struct FusionPlan {
  std::vector<FusionGroup> groups;  // in topological order
  std::vector<FusionMember> members;
  // False if another round of planning would find nothing.
  bool may_fuse_more = false;

  absl::Span<const FusionMember> MembersOf(const FusionGroup& group) const {
    return absl::MakeConstSpan(members).subspan(group.begin, group.end - group.begin);
  }
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSION_PLAN_H_
