// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion/fuse.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "ir/core/str_cat.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/core/pass_row.h"
#include "passes/fusion/fusion_planner.h"

namespace hlokit {
namespace {

// Creates fusions one after another.
class FusionBuilder {
 public:
  explicit FusionBuilder(Module* module)
      : module_(*module),
        fusion_name_(module->context().strings.Intern("fusion")),
        body_name_(module->context().strings.Intern("fused_computation")) {}

  // Starts a computation: later calls refer to it.
  void Begin(ComputationId computation);
  void Make(const FusionPlan& plan, const FusionGroup& group);
  // Replaces the fused instructions by the fusions. Requires: called once, after all fusions of the computation.
  void Finish(const FusionPlan& plan);

 private:
  InstructionId Copy(InstructionId source, bool moved, ComputationId body);
  void ReplaceResults(absl::Span<const FusionMember> members, const FusionGroup& group, InstructionId fusion);

  Module& module_;
  const StringId fusion_name_, body_name_;
  ComputationId computation_;
  uint32_t first_base_ = 0;                // first position for groups of this computation
  std::vector<uint32_t> inside_;           // by original: its position in the group, from `base_`
  uint32_t base_ = 0;                      // positions below belong to earlier groups
  std::vector<InstructionId> made_;        // by position in the group
  std::vector<InstructionId> inputs_;      // operands of the fusion
  std::vector<InstructionId> parameters_;  // of the fusion body, by input
  std::vector<StringId> parameter_names_;  // by number
  std::vector<uint32_t> input_of_;         // by instruction: index of inputs_, from `input_base_`
  uint32_t input_base_ = 0;
  std::vector<InstructionId> operands_;  // of the current clone
  std::vector<InstructionId> sources_;   // metadata sources of the fusion: the one with its op_name, then all members
  std::vector<InstructionId> results_;   // of the group, in its body
  std::vector<Shape> shapes_;            // shapes of the results
  std::vector<InstructionId> fusions_;   // by group
  std::vector<InstructionId> replaced_;  // original instructions
};

InstructionId FusionBuilder::Copy(InstructionId source, bool moved, ComputationId body) {
  operands_.clear();  // originals first: adding parameters reallocates the stored list
  for (Instruction operand : module_.instruction(source).operands()) operands_.push_back(operand.id());
  for (InstructionId& operand : operands_) {
    const uint32_t id = operand.value;
    if (id < inside_.size() && inside_[id] >= base_) {
      operand = made_[inside_[id] - base_];
      continue;
    }
    if (id >= input_of_.size()) input_of_.resize(module_.instruction_id_bound() + 64, 0);
    if (input_of_[id] < input_base_) {
      input_of_[id] = input_base_ + static_cast<uint32_t>(inputs_.size());
      while (parameter_names_.size() <= inputs_.size()) {
        parameter_names_.push_back(module_.context().strings.Intern(StrCat("param_", parameter_names_.size())));
      }
      const StringId name = module_.UniqueInstructionName(parameter_names_[inputs_.size()]);
      const auto number = static_cast<uint32_t>(inputs_.size());
      inputs_.push_back(operand);
      parameters_.push_back(
          module_.AddInstruction(body, Opcode::kParameter, module_.instruction(operand).shape(), name, {}, {}, number));
    }
    operand = parameters_[input_of_[id] - input_base_];
  }
  // An exclusive member keeps its name: the original is erased.
  StringId name = module_.record(source).name;
  if (!moved) name = module_.UniqueInstructionName(name);
  return module_.CloneInstruction(body, source, name, operands_);
}

void FusionBuilder::ReplaceResults(absl::Span<const FusionMember> members, const FusionGroup& group,
                                   InstructionId fusion) {
  Builder builder(&module_, computation_);
  int64_t number = 0;
  for (const FusionMember& member : members) {
    if (!member.result) continue;
    const InstructionId result = member.instruction;
    if (group.results == 1) {
      module_.ReplaceAllUses(result, fusion);
      return;
    }
    builder.SetMetadata(module_.record(result).metadata);
    module_.ReplaceAllUses(result, builder.MakeElement(fusion, number++));
  }
}

void FusionBuilder::Begin(ComputationId computation) {
  computation_ = computation;
  first_base_ = base_ + static_cast<uint32_t>(made_.size()) + 1;
  fusions_.clear();
}

void FusionBuilder::Make(const FusionPlan& plan, const FusionGroup& group) {
  const absl::Span<const FusionMember> members = plan.MembersOf(group);
  const ComputationId body = module_.AddComputation(module_.UniqueComputationName(body_name_));
  module_.SetExecutionThread(body, module_.record(computation_).execution_thread);
  std::vector<InstructionId> no_parameters;  // capacity only
  no_parameters.reserve(group.inputs);
  module_.SetParameters(body, std::move(no_parameters));
  if (inside_.size() < module_.instruction_id_bound()) inside_.resize(module_.instruction_id_bound(), 0);
  base_ += static_cast<uint32_t>(made_.size()) + 1;
  input_base_ += static_cast<uint32_t>(inputs_.size()) + 1;
  made_.clear();
  inputs_.clear();
  parameters_.clear();
  results_.clear();
  shapes_.clear();
  for (const FusionMember& member : members) {
    const InstructionId source = member.instruction;
    inside_[source.value] = base_ + static_cast<uint32_t>(made_.size());
    made_.push_back(Copy(source, member.exclusive, body));
    if (!member.result) continue;
    results_.push_back(made_.back());
    shapes_.push_back(module_.instruction(source).shape());
  }
  InstructionId root = results_[0];
  Shape shape = shapes_[0];
  if (results_.size() > 1) {
    Builder builder(&module_, body);
    builder.SetMetadata(module_.record(group.metadata_source).metadata);
    root = builder.MakeTuple(results_);
    shape = module_.instruction(root).shape();
  }
  module_.SetRoot(body, root);
  Builder builder(&module_, computation_);
  const InstructionId fusion =
      builder.WithName(module_.context().str(fusion_name_))
          .Make(Opcode::kFusion, shape, inputs_,
                {Builder::Enum(Attr::kFusionKind, group.kind), Builder::Calls(Attr::kCalls, body)});
  sources_.assign(1, group.metadata_source);
  for (const FusionMember& member : members) sources_.push_back(member.instruction);
  SetMetadataFrom(module_, fusion, sources_);
  if (group.results == 1) {
    const InstructionId result = absl::c_find_if(members, [](const FusionMember& m) { return m.result; })->instruction;
    const std::optional<uint32_t> sharding = module_.instruction(result).payload(Attr::kSharding);
    if (sharding) module_.SetAttr(fusion, Attr::kSharding, *sharding);
  }
  fusions_.push_back(fusion);
}

void FusionBuilder::Finish(const FusionPlan& plan) {
  // After all fusions, since a member of one may be duplicated in another. First exclusive members without outside
  // uses.
  replaced_.clear();
  for (const FusionMember& member : plan.members) {
    if (member.exclusive && !member.result) replaced_.push_back(member.instruction);
  }
  module_.EraseInstructions(replaced_);
  for (size_t k = 0; k < plan.groups.size(); ++k) {
    ReplaceResults(plan.MembersOf(plan.groups[k]), plan.groups[k], fusions_[k]);
  }
  // Then results, and members duplicated into every user.
  std::vector<InstructionId>& work = replaced_;
  work.clear();
  for (const FusionGroup& group : plan.groups) {
    for (const FusionMember& member : plan.MembersOf(group)) {
      if (member.result) work.push_back(member.instruction);
    }
    for (const FusionMember& member : plan.MembersOf(group)) {
      if (!member.exclusive) work.push_back(member.instruction);
    }
  }
  while (!work.empty()) {
    const InstructionId id = work.back();
    work.pop_back();
    const Instruction i = module_.instruction(id);
    if (!i.record().parent.valid() || i.has_users() || i.is_root()) continue;
    operands_.clear();
    for (Instruction operand : i.operands()) operands_.push_back(operand.id());
    module_.Erase(id);
    for (InstructionId operand : operands_) {
      if (operand.value < inside_.size() && inside_[operand.value] >= first_base_) work.push_back(operand);
    }
  }
}

bool HasFusibleOrder(const Module& module) { return !module.header().is_scheduled && module.entry().valid(); }

}  // namespace

FusionCounts FuseModule(Module& module, const FusionLimits& limits, RemarkCollector* remarks) {
  FusionCounts counts;
  if (!HasFusibleOrder(module)) return counts;
  const CallGraph calls(module);
  const auto starts_async = [&](const CallSite& site) {
    return module.record(site.caller).opcode == Opcode::kAsyncStart;
  };
  FusionBuilder builder(&module);
  std::optional<FusionRemarks> decisions;
  if (RemarksFor(remarks, RemarkCategory::kFusion) != nullptr) decisions.emplace(module, limits, remarks);
  FusionPlanner planner(module, limits, decisions ? &*decisions : nullptr);
  for (ComputationId id : calls.PostOrder()) {
    const Computation computation = module.computation(id);
    const absl::Span<const CallSite> sites = calls.caller_callsites(computation);
    if (!calls.IsLive(computation) || !calls.IsSequential(computation)) continue;
    if (std::any_of(sites.begin(), sites.end(), starts_async)) continue;
    while (true) {
      const FusionPlan& plan = planner.Plan(computation);
      if (plan.groups.empty()) break;
      builder.Begin(id);
      for (const FusionGroup& group : plan.groups) {
        builder.Make(plan, group);
        counts.loop += group.kind == FusionKind::kLoop;
        counts.input += group.kind == FusionKind::kInput;
        counts.output += group.kind == FusionKind::kOutput;
        counts.multi_output += group.results > 1;
      }
      counts.instructions += static_cast<int64_t>(plan.members.size());
      for (const FusionMember& member : plan.members) counts.copies += !member.exclusive;
      builder.Finish(plan);
      if (!plan.may_fuse_more) break;
    }
  }
  return counts;
}

namespace {

class Fusion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    FusionLimits limits;
    limits.max_operands = options().Int("max-operands");
    limits.max_instructions = options().Int("max-instructions");
    limits.max_recompute = static_cast<double>(options().Int("max-recompute"));
    limits.operand_reload_factor = static_cast<double>(options().Int("operand-loads"));
    limits.multi_output = options().Bool("multi-output");
    limits.output_fusion = options().Bool("output-fusion");
    limits.reduction_epilogues = options().Bool("reduction-epilogues");
    const FusionCounts counts = FuseModule(module, limits, context().remarks);
    if (counts.fusions() == 0) return false;
    Count("loop fusions", counts.loop);
    Count("input fusions", counts.input);
    Count("output fusions", counts.output);
    Count("fusions with several results", counts.multi_output);
    Count("instructions fused", counts.instructions);
    Count("instructions copied", counts.copies);
    return true;
  }
};

}  // namespace

HLOKIT_PASS(Fusion) {
  return {.name = "fusion",
          .category = "fusion",
          .summary = "fuse instructions so that intermediate values are not stored",
          .doc =
              "Creates loop fusions, input fusions around reductions and output fusions around dots and convolutions, "
              "with one or several results, of producers with consumers and of consumers of the same value. A fusion "
              "is one loop nest; expensive operations are computed once, cheap ones may be duplicated if that saves "
              "memory traffic; updates in place stay in place. Each decision takes the largest saving in bytes. "
              "Instructions of fused computations keep their metadata, and the fusion carries that of all of them.",
          .example = R"(HloModule normalize

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = bf16[64,256]{1,0} parameter(0)
  scale = f32[256]{0} parameter(1)
  wide = f32[64,256]{1,0} convert(x)
  square = f32[64,256]{1,0} multiply(wide, wide)
  zero = f32[] constant(0)
  total = f32[64]{0} reduce(square, zero), dimensions={1}, to_apply=sum
  root = f32[64]{0} sqrt(total)
  all = f32[64,256]{1,0} broadcast(root), dimensions={0}
  quotient = f32[64,256]{1,0} divide(wide, all)
  scales = f32[64,256]{1,0} broadcast(scale), dimensions={1}
  ROOT result = f32[64,256]{1,0} multiply(quotient, scales)
}
)",
          .options = {{.name = "max-operands",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "64",
                       .doc = "maximum number of operands and results of a fusion",
                       .min = 1},
                      {.name = "max-instructions",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "512",
                       .doc = "maximum number of instructions of a fusion",
                       .min = 2},
                      {.name = "max-recompute",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "16",
                       .doc = "maximum recomputed operations per loop element"},
                      {.name = "operand-loads",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "4",
                       .doc = "number of loads of an element of a dot operand, which multiplies the cost of fused "
                              "producers; 1 on a TPU",
                       .min = 1},
                      {.name = "multi-output",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "true",
                       .doc = "create fusions with several results"},
                      {.name = "output-fusion",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "true",
                       .doc = "create fusions around dots and convolutions"},
                      {.name = "reduction-epilogues",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "false",
                       .doc = "reduce the result of a dot or convolution in its fusion, as TPUs do"}},
          .preconditions = kNoSchedule,
          .create = MakePass<Fusion>};
}

}  // namespace hlokit
