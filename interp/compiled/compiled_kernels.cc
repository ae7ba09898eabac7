// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/compiled_kernels.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "interp/compiled/code/engine_modules.h"
#include "interp/compiled/convolutions/convolution_thunk.h"
#include "interp/compiled/loops/loop_thunk.h"
#include "interp/compiled/loops/while_thunk.h"
#include "interp/compiled/products/product_thunk.h"
#include "interp/compiled/windows/window_thunk.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/program_builder.h"

namespace hlokit::interp::compiled {
namespace {

// What prepares an instruction by itself.
struct Preparation {
  Opcode opcode;
  KernelChoice::Kind kind;
  PrepareResult (*prepare)(CompiledComputationBuilder& builder, PackedWeights* weights, int64_t min_window_elements);
};
constexpr Preparation kPreparations[] = {
    {Opcode::kDot, KernelChoice::Kind::kProduct,
     [](CompiledComputationBuilder& b, PackedWeights* weights, int64_t) { return PrepareProduct(b, weights); }},
    {Opcode::kConvolution, KernelChoice::Kind::kConvolution,
     [](CompiledComputationBuilder& b, PackedWeights* weights, int64_t) {
       return PrepareConvolutionThunk(b, weights);
     }},
    {Opcode::kReduceWindow, KernelChoice::Kind::kWindow,
     [](CompiledComputationBuilder& b, PackedWeights*, int64_t min) { return PreparePool(b, min); }},
    {Opcode::kSelectAndScatter, KernelChoice::Kind::kWindow,
     [](CompiledComputationBuilder& b, PackedWeights*, int64_t min) { return PrepareSelectAndScatterThunk(b, min); }},
};

}  // namespace

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

bool CompiledKernels::PrepareWhile(CompiledComputationBuilder& builder) {
  KernelChoice choice;
  choice.instruction = choice.loop = builder.instruction().id();
  std::vector<LoopProgram> programs;
  std::vector<Instruction> members;
  const PrepareResult result = PrepareWhileLoop(
      builder, [&](Instruction i) { return observation_.Shows(i.id()); }, &code_, &programs, &members);
  if (result.unsupported()) {
    choice.reason = result.reason();
    choices_.push_back(std::move(choice));
    return false;
  }
  choice.kind = KernelChoice::Kind::kLoop;
  num_threads_ = builder.program().options().num_threads;
  for (LoopProgram& program : programs) loops_.push_back({choice.loop, std::move(program)});
  choices_.push_back(choice);
  for (Instruction member : members) {
    choice.instruction = member.id();
    choices_.push_back(choice);
  }
  return true;
}

bool CompiledKernels::Prepare(CompiledComputationBuilder& builder) {
  if (builder.instruction().opcode() == Opcode::kWhile) return PrepareWhile(builder);
  KernelChoice choice;
  choice.instruction = builder.instruction().id();
  const auto* const row =
      absl::c_find_if(kPreparations, [&](const Preparation& p) { return p.opcode == builder.instruction().opcode(); });
  const bool is_exact = row == std::end(kPreparations);
  const PrepareResult result = is_exact ? PrepareResult::Unsupported()
                                        : row->prepare(builder, &packed_weights_, group_options_.min_window_elements);
  if (result.unsupported()) {
    choice.reason = result.reason();
  } else {
    choice.kind = row->kind;
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
