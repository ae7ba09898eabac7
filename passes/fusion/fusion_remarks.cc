// SPDX-License-Identifier: Apache-2.0
#include "passes/fusion/fusion_remarks.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "ir/core/str_cat.h"
#include "passes/analysis/cost.h"
#include "passes/fusion/fusion_rules.h"

namespace hlokit {
namespace {

// Opcodes without a kernel, of which "is not fused" would say nothing.
bool IsWithoutKernel(Instruction i) {
  return i.opcode() == Opcode::kConstant
             ? i.shape().element_count() <= 1
             : HasTrait(i.opcode(), kForwards) || i.opcode() == Opcode::kParameter || i.opcode() == Opcode::kFusion;
}

// Returns why arrays of this shape are not in a fusion, or nullopt.
std::optional<RemarkRule> WhyNotPlain(Shape shape) {
  if (!shape.IsArray()) return RemarkRule::kEmptyOrTupleShape;
  if (shape.has_dynamic_dims()) return RemarkRule::kDynamicShape;
  if (shape.element_count() <= 0) return RemarkRule::kEmptyOrTupleShape;
  if (shape.has_layout() && shape.layout()->memory_space() != 0) return RemarkRule::kOtherMemorySpace;
  return std::nullopt;
}

// Returns why the instruction is never in a fusion, as FusionPlanner::ClassOf and Number decide.
RemarkRule WhyNotFusible(Instruction i, const FusionLimits& limits) {
  if (i.opcode() == Opcode::kConstant) return RemarkRule::kConstantNotFusible;
  const FusionClass c = FusionClassOf(i.opcode());
  if (c == FusionClass::kOpaque) return RemarkRule::kOpcodeNotFusible;
  if (i.has_control_edges()) return RemarkRule::kControlEdges;
  for (Instruction operand : i.operands()) {
    if (const std::optional<RemarkRule> rule = WhyNotPlain(operand.shape())) return *rule;
  }
  if (c == FusionClass::kContraction && !limits.output_fusion) return RemarkRule::kOutputFusionOff;
  return WhyNotPlain(i.shape()).value_or(RemarkRule::kOpcodeNotFusible);
}

}  // namespace

void FusionRemarks::Add(Remark remark, InstructionId producer, InstructionId consumer, Members members) {
  const auto [least, largest] = std::minmax(producer.value, consumer.value);
  if (!reported_.insert({remark.rule, least, largest}).second) return;
  if (collector_.wants_graphs()) {
    auto graph = std::make_shared<RemarkGraph>();
    BuildRemarkGraph(module_, producer, consumer, members, graph.get());
    remark.graph = std::move(graph);
  }
  collector_.Add(std::move(remark));
}

void FusionRemarks::AddNotFusible(InstructionId id, bool has_fusible_neighbor) {
  const Instruction i = At(id);
  if (!has_fusible_neighbor || IsWithoutKernel(i)) return;
  const RemarkRule rule = WhyNotFusible(i, limits_);
  Remark remark(rule, i);
  remark.Text(" is not fused with its operands and users: ");
  if (rule == RemarkRule::kOpcodeNotFusible) {
    remark.Text("instructions of the opcode ").Value("Opcode", i.opcode_text()).Text(" are never in a fusion");
  } else if (rule == RemarkRule::kConstantNotFusible) {
    remark.Text("its ").Number("Elements", i.shape().element_count()).Text(" elements are read from memory anyway");
  } else if (rule == RemarkRule::kDynamicShape) {
    remark.Text("an operand or the result has dimensions of dynamic size");
  } else if (rule == RemarkRule::kOtherMemorySpace) {
    remark.Text("an operand or the result is in another memory space");
  } else if (rule == RemarkRule::kEmptyOrTupleShape) {
    remark.Text("an operand or the result is a tuple or has no elements");
  } else {
    remark.Text(InfoOf(rule).says);
  }
  Add(std::move(remark), id, id, {});
}

void FusionRemarks::AddUpdateInPlace(InstructionId producer, InstructionId consumer) {
  Remark remark(RemarkRule::kProducerUpdatesInPlace, At(producer));
  remark.Text(" is not fused into ").Name("Consumer", At(consumer));
  remark.Text(": it overwrites a part of its first operand, which is the result");
  Add(std::move(remark), producer, consumer, {});
}

void FusionRemarks::AddRejected(InstructionId producer, InstructionId consumer, Members members,
                                const FusionRejection& why) {
  Remark remark(why.rule, At(producer));
  remark.Text(" is not fused into ").Name("Consumer", At(consumer));
  if (members.size() > 1) {
    remark.Text(" (in a fusion of ").Number("Members", static_cast<int64_t>(members.size())).Text(")");
  }
  const RemarkRuleInfo& info = InfoOf(why.rule);
  remark.Text(": ").Text(info.says);
  const auto rounded = static_cast<int64_t>(std::min(std::ceil(why.number), 9e15));
  if (why.rule == RemarkRule::kDuplicatesExpensive) {
    remark.Text(" (").Number("Times", rounded).Text(" times)");
  } else if (why.rule == RemarkRule::kRecomputesTooMuch) {
    remark.Text(" (").Number("Operations", rounded).Text(" of at most ");
    remark.Number("Limit", static_cast<int64_t>(limits_.max_recompute)).Text(")");
  } else if (why.rule == RemarkRule::kFusionTooLarge) {
    remark.Text(" (").Number("Limit", limits_.max_instructions).Text(")");
  } else if (why.rule == RemarkRule::kTooManyOperands) {
    remark.Text(" (").Number("Operands", rounded).Text(" of at most ").Number("Limit", limits_.max_operands).Text(")");
  }
  Add(std::move(remark), producer, consumer, members);
}

void FusionRemarks::AddFused(RemarkRule rule, InstructionId producer, InstructionId consumer, Members members,
                             int64_t stored) {
  Remark remark(rule, At(producer));
  remark.Text(rule == RemarkRule::kDuplicated ? " is computed again in the fusion of " : " is fused into ");
  remark.Name("Consumer", At(consumer));
  if (members.size() > 1) {
    remark.Text(" (in a fusion of ").Number("Members", static_cast<int64_t>(members.size())).Text(")");
  }
  remark.Text(rule == RemarkRule::kFusedAsResult ? ", as one more result, of " : ": a value of ");
  remark.Number("Bytes", stored).Text(" bytes");
  Add(std::move(remark), producer, consumer, members);
}

void FusionRemarks::AddUnprofitable(RemarkRule rule, InstructionId producer, InstructionId consumer, Members members,
                                    int64_t reads, int64_t stored) {
  Remark remark(rule, At(producer));
  remark.Text(" is not fused into ").Name("Consumer", At(consumer)).Text(": ").Text(InfoOf(rule).says);
  remark.Text(" (it would read ").Number("Reads", reads).Text(" bytes more there; the value has ");
  remark.Number("Bytes", stored).Text(")");
  Add(std::move(remark), producer, consumer, members);
}

void FusionRemarks::AddSiblings(InstructionId value, InstructionId first, InstructionId second, Members members,
                                std::string_view cause) {
  const bool joined = cause.empty();
  Remark remark(joined ? RemarkRule::kSiblingsJoined : RemarkRule::kSiblingsNotJoined, At(first));
  remark.Text(joined ? " and " : " is not fused with ").Name("Sibling", At(second));
  remark.Text(joined ? ", which read " : ", which reads the same value, ").Name("Value", At(value));
  if (joined) {
    remark.Text(", are one fusion: it reads the value of ").Number("Bytes", BufferBytes(At(value).shape()));
    remark.Text(" bytes once");
  } else {
    remark.Text(": ").Text(cause);
  }
  Add(std::move(remark), first, second, members);
}

}  // namespace hlokit
