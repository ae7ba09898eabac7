// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/compiled_kernels.h"

#include <algorithm>
#include <utility>

#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/convolutions/convolution_thunk.h"
#include "interp/compiled/loops/loop_thunk.h"
#include "interp/compiled/products/product_thunk.h"
#include "interp/compiled/windows/window_thunk.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/program_builder.h"

namespace hlokit::interp::compiled {

CompiledKernels::CompiledKernels(ObservationRequest observation, const GroupOptions& groups)
    : observation_(std::move(observation)), group_options_(groups) {}
CompiledKernels::~CompiledKernels() = default;

std::vector<InstructionGroup> CompiledKernels::Group(Computation computation,
                                                     const std::function<bool(Instruction)>& is_live) {
  const std::vector<bool>& observed = observation_.instructions;
  const auto is_observed = [&](Instruction i) { return i.id().value < observed.size() && observed[i.id().value]; };
  const std::function<bool(Instruction)> may_join = [&](Instruction i) {
    if (!is_live(i) || is_observed(i)) return false;
    if (!observation_.operands) return true;
    for (Instruction user : i.users()) {
      if (is_observed(user)) return false;
    }
    return true;
  };
  std::vector<InstructionGroup> groups = PlanGroups(computation, group_options_, may_join);
  AddPoolGroups(computation, may_join, &groups);
  return groups;
}

bool CompiledKernels::PrepareGroup(CompiledComputationBuilder& builder, const InstructionGroup& group) {
  KernelChoice choice;
  const bool is_pool = IsPoolGroup(group);
  choice.kind = is_pool ? KernelChoice::Kind::kWindow : KernelChoice::Kind::kLoop;
  choice.loop = group.members.back().id();
  std::vector<LoopProgram> programs;
  std::vector<Instruction> materialized;
  const PrepareResult result =
      is_pool ? PreparePoolGroup(builder, group, group_options_.min_window_elements)
              : PrepareLoop(builder, group, group_options_.min_run, &code_, &programs, &materialized);
  const bool prepared = !result.unsupported();
  num_threads_ = builder.program().options().num_threads;
  if (prepared) {
    for (LoopProgram& program : programs) loops_.push_back({choice.loop, std::move(program)});
  } else {
    choice.kind = KernelChoice::Kind::kExact;
    choice.reason = result.reason();
  }
  for (Instruction member : group.members) {
    choice.instruction = member.id();
    choices_.push_back(choice);
    if (!prepared || std::find(materialized.begin(), materialized.end(), member) == materialized.end()) continue;
    choices_.back().kind = KernelChoice::Kind::kExact;
    choices_.back().reason = "not read in place by the loop of its users";
  }
  return prepared;
}

bool CompiledKernels::Prepare(CompiledComputationBuilder& builder) {
  KernelChoice choice;
  choice.instruction = builder.instruction().id();
  PrepareResult result = PrepareResult::Unsupported();
  KernelChoice::Kind kind = KernelChoice::Kind::kExact;
  const Opcode opcode = builder.instruction().opcode();
  if (opcode == Opcode::kDot) {
    result = PrepareProduct(builder, &packed_weights_);
    kind = KernelChoice::Kind::kProduct;
  } else if (opcode == Opcode::kConvolution) {
    result = PrepareConvolutionThunk(builder, &packed_weights_);
    kind = KernelChoice::Kind::kConvolution;
  } else if (opcode == Opcode::kReduceWindow || opcode == Opcode::kSelectAndScatter) {
    result = opcode == Opcode::kReduceWindow
                 ? PreparePool(builder, group_options_.min_window_elements)
                 : PrepareSelectAndScatterThunk(builder, group_options_.min_window_elements);
    kind = KernelChoice::Kind::kWindow;
  }
  if (result.unsupported()) {
    choice.reason = result.reason();
  } else {
    choice.kind = kind;
  }
  choices_.push_back(std::move(choice));
  return !result.unsupported();
}

bool CompiledKernels::Complete(bool prepared) {
  packed_weights_ = PackedWeights();
  if (!prepared) code_.Drop();
  const bool complete = prepared && code_.Complete(num_threads_);
  if (complete) {
    complete_choices_ = choices_.size();
    complete_loops_ = loops_.size();
  } else {
    choices_.resize(complete_choices_);
    loops_.resize(complete_loops_);
  }
  return complete;
}

}  // namespace hlokit::interp::compiled
