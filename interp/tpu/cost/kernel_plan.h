// SPDX-License-Identifier: Apache-2.0
// Which instructions a TPU compiler would run as one kernel.
//
// Dumps from before optimization have no fusions. The plan groups the instructions of each sequential computation as
// XLA's fusion would: elementwise, broadcast and data-movement producers join the kernel of their only consumers, also
// into the operands of products; elementwise consumers of a product or reduction of the same size become its epilogue.
// A producer that the
// program returns besides having one consumer stays with that consumer and is stored there. Cheap producers (broadcast,
// convert, iota) are repeated in each consumer. A fusion in the text is a kernel as it is. The module is not changed.
#ifndef HLOKIT_INTERP_TPU_COST_KERNEL_PLAN_H_
#define HLOKIT_INTERP_TPU_COST_KERNEL_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

enum class StepKind : uint8_t {
  kKernel,      // runs on the core
  kCollective,  // runs on the interconnect
  kCopy,        // an asynchronous copy
  kHost,        // infeed, outfeed, send, recv
  kDone,        // waits for what its operand started
  kCall,        // call, conditional, async-start of a computation: the callee runs
  kLoop,
};

// A kernel or what else a schedule orders.
struct Step {
  StepKind kind = StepKind::kKernel;
  InstructionId name;                  // the instruction that stands for it: a product if there is one, else the last
  std::vector<InstructionId> members;  // operands first; repeated producers included
  std::vector<InstructionId> results;  // members whose values are stored; the last is the root
  std::vector<uint32_t> inputs;        // steps of the plan that it waits for, each once, ascending
};

struct ComputationPlan {
  ComputationId computation;
  std::vector<Step> steps;  // operands first: a valid order; that of the text in a scheduled module
  static constexpr uint32_t kNoStep = 0xffffffffu;
};

class KernelPlan {
 public:
  explicit KernelPlan(const Module& module);

  // Of computations that the entry reaches in sequence, callees before callers.
  const std::vector<ComputationPlan>& computations() const { return computations_; }
  // Index into computations(), or -1.
  int64_t PlanOf(ComputationId id) const { return plan_of_[id.value]; }
  // Step (of the plan of its computation) that makes the instruction's value; ComputationPlan::kNoStep for parameters,
  // constants and what no step makes.
  uint32_t StepOf(InstructionId id) const { return step_of_[id.value]; }
  // True if the instruction's value is written to memory: it is used outside its step, or is the root.
  bool IsWritten(InstructionId id) const { return written_[id.value] != 0; }

 private:
  void Plan(Computation computation, bool scheduled);

  const Module* module_;
  std::vector<ComputationPlan> computations_;
  std::vector<int64_t> plan_of_;
  std::vector<uint32_t> step_of_;
  std::vector<uint8_t> written_;
};

// The collective that an asynchronous start of one wraps; other instructions as they are.
Instruction Unwrapped(Instruction instruction);

// True for instructions with one operand whose value it is under another name: bitcasts, barriers, markers, reshapes
// that keep the minor dimension.
bool IsRename(Instruction instruction);
// The instruction whose value this is: looks through renames and elements of tuples that stand in the computation. The
// element of a tuple that another step makes is itself.
Instruction ValueOf(Instruction instruction);

}  // namespace hlokit::tpu

#endif  // HLOKIT_INTERP_TPU_COST_KERNEL_PLAN_H_
