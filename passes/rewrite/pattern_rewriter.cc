// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/pattern_rewriter.h"

#include <algorithm>
#include <string>

#include "ir/graph/traversal.h"
#include "ir/text/printer.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"

namespace hlokit {
namespace {

// Rewrites of one module are bounded by a multiple of its size: a pair of rules that undo each other ends here. Real
// modules stay far below.
constexpr size_t kVisitsPerInstruction = 200;

// Returns true for data movement that also converts elements, as mixed precision allows: rules assume that it does not.
bool MixesTypes(Instruction i) {
  const ElementSource source = InfoOf(i.opcode()).elements;
  const bool moves =
      source == ElementSource::kMoved || source == ElementSource::kUpdated || source == ElementSource::kConcatenated;
  if (!moves || i.operand_count() == 0 || !i.shape().IsArray() || !i.operand(0).shape().IsArray()) return false;
  return i.operand(0).shape().element_type() != i.shape().element_type();
}

}  // namespace

void RewritePatternSet::Add(std::initializer_list<Opcode> opcodes, std::string_view name, RewriteFunction apply) {
  if (rules_.empty() || rules_.back().name != name || rules_.back().apply != apply) rules_.push_back({name, apply});
  for (Opcode opcode : opcodes) {
    by_opcode_[static_cast<size_t>(opcode)].push_back(static_cast<uint16_t>(rules_.size() - 1));
  }
}

PatternRewriter::PatternRewriter(Module* module, const RewritePatternSet* rules, const PassOptions* options,
                                 RewriteScope where)
    : Builder(module, module->entry().id()),
      rules_(*rules),
      options_(options),
      effects_(*module),
      scope_(where),
      applied_(rules->size(), 0) {
  RecordIn(&made_);
}

void PatternRewriter::PushToWorklist(InstructionId id) {
  if (id.value >= in_worklist_.size())
    in_worklist_.resize(std::max<size_t>(id.value + 1, module().instruction_id_bound()), 0);
  if (in_worklist_[id.value] != 0 || rules_.of(module().record(id).opcode).empty()) return;
  in_worklist_[id.value] = 1;
  worklist_.push_back(id);
}

void PatternRewriter::PushUsers(Instruction i) {
  for (const auto& use : i.uses()) PushToWorklist(use.user.id());
}

bool PatternRewriter::Run() {
  // Most passes find no match. Computations without callers are skipped: they may be bodies of replaced fusions.
  bool any = false;
  std::vector<uint8_t> called(module().computation_id_bound(), 0);
  called[module().entry().id().value] = 1;
  for (Computation c : module().computations()) {
    for (Instruction i : c.instructions()) {
      any |= !rules_.of(i.opcode()).empty();
      i.ForEachCallee([&](Computation callee) { called[callee.id().value] = 1; });
    }
  }
  if (!any) return false;
  // Bodies of fusions and asynchronous operations are final.
  const ComputationRoles roles = RolesOf(module());
  const std::optional<CallGraph> graph =
      scope_ == RewriteScope::kSequential ? std::optional<CallGraph>(module()) : std::nullopt;
  for (Computation c : module().computations()) {
    if (graph && !graph->IsSequential(c)) continue;
    if (roles.fusion[c.id().value] || roles.async[c.id().value] || !called[c.id().value]) continue;
    for (Instruction i : c.instructions()) PushToWorklist(i.id());
  }
  size_t budget = (worklist_.size() + 100) * kVisitsPerInstruction;
  while (head_ < worklist_.size() && budget-- > 0) {
    const InstructionId id = worklist_[head_++];
    in_worklist_[id.value] = 0;
    if (head_ > 65536 && head_ * 2 > worklist_.size()) {
      worklist_.erase(worklist_.begin(), worklist_.begin() + static_cast<std::ptrdiff_t>(head_));
      head_ = 0;
    }
    if (!module().record(id).parent.valid()) continue;
    const Instruction i = at(id);
    if (!i.has_users() && MayErase(i)) {
      EraseUnused(id, InstructionId());
      continue;
    }
    if (i.shape().has_dynamic_dims() || i.shape().has_unbounded_dims()) continue;
    bool dynamic = false;
    for (Instruction operand : i.operands()) {
      dynamic |= operand.shape().has_dynamic_dims() || operand.shape().has_unbounded_dims();
    }
    if (dynamic) continue;
    if (MixesTypes(i)) continue;
    bool mixes = false;
    for (Instruction operand : i.operands()) mixes |= MixesTypes(operand);
    if (mixes) continue;
    if (limit_ != nullptr && limit_->limit >= 0 && limit_->applied >= limit_->limit) break;
    const bool last = limit_ != nullptr && limit_->applied + 1 == limit_->limit;
    const std::string text = last ? ToString(i) : std::string();
    for (uint16_t rule : rules_.of(i.opcode())) {
      // A rule that did not apply may have changed these.
      SetInsertionPoint(id);
      SetMetadata(i.metadata_id());
      WithName("");
      made_.clear();
      const size_t computations = module().computation_id_bound();
      if (!dropped_metadata_.empty()) dropped_metadata_.clear();
      if (rules_[rule].apply(*this, i)) {
        ++applied_[rule];
        if (limit_ != nullptr) ++limit_->applied;
        if (last) {
          limit_->rule = rules_[rule].name;
          limit_->instruction = text;
        }
        changed_ = true;
        break;
      }
      DiscardMade(computations);
    }
  }
  return changed_;
}

void PatternRewriter::DiscardMade(size_t first_computation) {
  bool all = true;
  for (size_t k = made_.size(); k-- > 0;) {
    if (at(made_[k]).has_users()) {
      all = false;
    } else {
      module().Erase(made_[k]);
    }
  }
  if (!all) return;
  for (size_t id = module().computation_id_bound(); id-- > first_computation;) {
    module().EraseComputation(ComputationId(static_cast<uint32_t>(id)));
  }
}

void PatternRewriter::AddMetadataSource(InstructionId made, Instruction source) {
  if (!source.metadata_id().valid()) return;
  if (std::find(made_.begin(), made_.end(), made) != made_.end()) {
    module().SetMetadata(made, source.metadata_id());
  } else {
    MergeMetadata(module(), source.id(), made);
  }
}

bool PatternRewriter::IsReplaceable(Instruction i) const { return !i.has_control_edges() && !HasEffect(i); }

bool PatternRewriter::HasEffect(Instruction i) const {
  if (HasSideEffectNoRecurse(i)) return true;
  if (!MightHaveCalledComputations(i.opcode())) return false;
  if (!effects_) effects_.emplace(module());
  return effects_->Of(i);
}

bool PatternRewriter::MayErase(Instruction i) const {
  return !i.is_root() && i.opcode() != Opcode::kParameter && IsReplaceable(i);
}

bool PatternRewriter::Replace(Instruction old, InstructionId by, std::initializer_list<Instruction> absorbed) {
  if (old.id() == by || at(by).shape() != old.shape() || !IsReplaceable(old)) return false;
  ReplaceInPlace(old, by, absorbed);
  return true;
}

bool PatternRewriter::ReplaceEffect(Instruction old, InstructionId by) {
  if (old.id() == by || at(by).shape() != old.shape() || !MayReplaceEffect(old)) return false;
  ReplaceInPlace(old, by, {});
  return true;
}

// Replaces `old` by `by`.
void PatternRewriter::ReplaceInPlace(Instruction old, InstructionId by, std::initializer_list<Instruction> absorbed) {
  const Instruction replacement = at(by);
  PushUsers(old);
  const bool is_new = std::find(made_.begin(), made_.end(), by) != made_.end();
  if (is_new && replacement.opcode() != old.opcode()) {
    for (Instruction i : absorbed) {
      if (i.opcode() != replacement.opcode() || !i.metadata_id().valid()) continue;
      module().SetMetadata(by, context().metadata.Merge(i.metadata_id(), replacement.metadata_id()));
      break;
    }
  }
  for (Instruction i : absorbed) {
    MergeMetadata(module(), i.id(), by);
    MergeMetadataOfCallees(i, by);
  }
  MergeMetadataOfCallees(old, by);
  if (is_new) {
    if (const auto attributes = old.payload(Attr::kFrontendAttributes)) {
      module().SetAttr(by, Attr::kFrontendAttributes, *attributes);
    }
  }
  std::vector<InstructionId> operands;
  for (Instruction operand : old.operands()) operands.push_back(operand.id());
  hlokit::Replace(module(), old.id(), by);
  for (InstructionId id : operands) {
    if (module().record(id).parent.valid()) EraseUnused(id, by);
  }
  for (InstructionId id : made_) {
    if (module().record(id).parent.valid()) PushToWorklist(id);
  }
  PushToWorklist(by);
  changed_ = true;
}

bool PatternRewriter::ReplaceWithNew(Instruction old, Opcode opcode, Operands operands, Attrs attrs,
                                     std::initializer_list<Instruction> absorbed) {
  if (!IsReplaceable(old)) return false;
  return Replace(old, Make(opcode, old.shape(), operands, attrs), absorbed);
}

bool PatternRewriter::ReplaceOperand(Instruction user, int64_t index, InstructionId operand,
                                     std::initializer_list<Instruction> absorbed) {
  const InstructionId before = user.operand(index).id();
  if (before == operand) return false;
  for (Instruction i : absorbed) MergeMetadata(module(), i.id(), user.id());
  module().ReplaceOperand(user.id(), index, operand);
  EraseUnused(before, user.id());
  NotifyModified(user);
  return true;
}

void PatternRewriter::NotifyModified(Instruction instruction) {
  changed_ = true;
  PushToWorklist(instruction.id());
  PushUsers(instruction);
  for (InstructionId id : made_) {
    if (module().record(id).parent.valid()) PushToWorklist(id);
  }
}

void PatternRewriter::MergeMetadataOfCallees(Instruction i, InstructionId by) {
  if (!MightHaveCalledComputations(i.opcode()) || at(by).payload(Attr::kToApply) == i.payload(Attr::kToApply)) return;
  MergeMetadataOfComputations(module(), i.called_computations(), by);
}

void PatternRewriter::EraseUnused(InstructionId first, InstructionId by) {
  dead_.push_back({first, by.valid()});
  while (!dead_.empty()) {
    const auto [id, carry] = dead_.back();
    dead_.pop_back();
    if (!module().record(id).parent.valid()) continue;
    const Instruction i = at(id);
    if (i.has_users() || !MayErase(i)) {
      // Rules that require a single user may apply now.
      if (HasOneUser(i)) PushUsers(i);
      PushToWorklist(id);
      continue;
    }
    const bool matters = carry && !dropped_metadata_.contains(id.value);
    if (matters) {
      MergeMetadata(module(), id, by);
      MergeMetadataOfCallees(i, by);
    }
    for (Instruction operand : i.operands()) dead_.push_back({operand.id(), matters});
    module().Erase(id);
    changed_ = true;
  }
}

}  // namespace hlokit
