// SPDX-License-Identifier: Apache-2.0
// Decides what to fuse in one computation.
//
// What a fusion may be
//   - Its instructions are of one computation, have no side effects, no control edges, static shapes in the default
//   memory
//     space, and call nothing but the function of a reduction or map.
//   - It is one loop nest. Without a hero (kLoop) the loop runs over the elements of the results, which all have the
//     same number of elements. With reductions as heroes (kInput) it runs over the operands of the reductions, which
//     have the same dimensions and reduce the same of them; what follows a reduction runs over its results. With a dot
//     or convolution as hero (kOutput) it runs over the hero's result.
//   - Every instruction inside is computed where the loop is: each of its elements once, or, if it is cheap (a few
//     operations an element), again for each place that needs it, up to a number of operations for each element of the
//     loop. What comes before a dot is computed as its operands are loaded, and is cheap unless they are loaded once,
//     as on a TPU, whose kernels hold a tile of an operand while it meets all its partners. A reduction, window, dot,
//     convolution or transcendental function is never computed twice.
//   - A result is either the end of the loop or a value on the way of which each element is computed exactly once.
//   - An update in place stays in place: its first operand comes from outside, and it is a result.
//   - No two groups wait for each other.
//
// What is worth fusing: every value that is not stored saves its bytes, every value that several readers share saves
// those of the others' reads, and computing a cheap value at each of its users costs the bytes of its operands there.
// Each choice takes the largest saving, by the bytes of CostAnalysis.
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
  double max_recompute = 16;         // operations computed again, for each element of the loop
  double operand_reload_factor = 4;  // how often an element of a dot's operand is loaded, as far as recomputing goes
  bool multi_output = true;
  bool output_fusion = true;  // around dots and convolutions
};

// An instruction that a fusion computes.
struct FusionMember {
  InstructionId instruction;
  bool exclusive = false;  // it is computed here only; otherwise also elsewhere
  bool result = false;     // a moved one that is used outside
};

// One fusion to be made.
struct FusionGroup {
  uint32_t begin = 0, end = 0;  // its members in the plan, in an order in which operands come before users
  uint32_t results = 0;         // of those
  uint32_t inputs = 0;          // what it reads from outside, about
  FusionKind kind = FusionKind::kLoop;
  InstructionId metadata_source;  // whose op_name the fusion takes: the hero, or the last instruction
};

struct FusionPlan {
  std::vector<FusionGroup> groups;  // in an order in which each comes before those that use it
  std::vector<FusionMember> members;
  // What is left after it may be fused further; if not, there is nothing more to plan.
  bool may_fuse_more = false;

  absl::Span<const FusionMember> MembersOf(const FusionGroup& group) const {
    return absl::MakeConstSpan(members).subspan(group.begin, group.end - group.begin);
  }
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSION_PLAN_H_
