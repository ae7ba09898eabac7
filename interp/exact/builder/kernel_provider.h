// SPDX-License-Identifier: Apache-2.0
// Kernels of another engine for a prepared program. The exact engine asks the provider for each instruction, and
// prepares what the provider leaves to it. So a program has the same observers, limits, loops and collectives with any
// provider.
#ifndef HLOKIT_INTERP_EXACT_BUILDER_KERNEL_PROVIDER_H_
#define HLOKIT_INTERP_EXACT_BUILDER_KERNEL_PROVIDER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "interp/exact/program/exact_fwd.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// Instructions of one computation that become thunks together. No path leads from a member through other instructions,
// or through members of other groups, to a member.
struct InstructionGroup {
  std::vector<Instruction> members;  // operands before users
  // Meant for the provider that made the group.
  Shape shape;
  int64_t row_rank = -1;
  std::vector<int64_t> reduced;  // dimensions of `shape` that members reduce, ascending
};

class KernelProvider {
 public:
  virtual ~KernelProvider() = default;

  // Returns disjoint groups of instructions of a computation. Members are live.
  virtual std::vector<InstructionGroup> Group(Computation computation,
                                              const std::function<bool(Instruction)>& is_live) = 0;

  // Sets the results of those members that other instructions, the root included, use. Operands from outside the group
  // have their results. Returns false if the members are to be prepared one by one; copies of operands may then be
  // left, which nothing reads.
  virtual bool PrepareGroup(CompiledComputationBuilder& builder, const InstructionGroup& group) = 0;

  // Sets the result of builder.instruction(). Returns false without a change if the exact engine is to prepare it.
  virtual bool Prepare(CompiledComputationBuilder& builder) = 0;

  // Called when all computations of a program are prepared, before it runs, or when it is given up (`prepared` is
  // false). Returns false if a kernel turned out not to be available: the program is then prepared anew, without it.
  virtual bool Complete(bool prepared) { return prepared; }
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_EXACT_BUILDER_KERNEL_PROVIDER_H_
