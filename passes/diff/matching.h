// SPDX-License-Identifier: Apache-2.0
// Finds which instructions of two modules correspond, whatever their names, numbers, order and sizes.
//
// The evidence, from strong to weak: everything upstream and downstream of an instruction is equal; everything upstream
// is, or everything downstream; its neighborhood of three, two or one steps is, where instructions that are matched
// already count as equal (Weisfeiler-Lehman refinement); it is the counterpart operand or user of a matched pair. Each
// is tried with instructions compared by all of their contents, then without layouts, shardings and callees, then by
// opcode, type and rank, then by opcode. At last instructions of other computations are compared, for code that was
// outlined, inlined or fused. Matching computations are found from matching callers.
//
// An instruction without convincing evidence remains unmatched: it was added or removed. Takes time n log n in the
// number of instructions and operands.
#ifndef HLOKIT_PASSES_DIFF_MATCHING_H_
#define HLOKIT_PASSES_DIFF_MATCHING_H_

#include <vector>

#include "ir/graph/module.h"

namespace hlokit {

// A one-to-one partial mapping. Vectors are indexed by id; an invalid id: no counterpart.
struct ModuleMatching {
  std::vector<InstructionId> in_b, in_a;
  std::vector<ComputationId> computation_in_b, computation_in_a;
};

// Requires: the modules share a context, so that equal contents have equal ids.
ModuleMatching MatchModules(const Module& a, const Module& b);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_DIFF_MATCHING_H_
