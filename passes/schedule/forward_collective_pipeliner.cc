// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/forward_collective_pipeliner.h"

#include <algorithm>

#include "ir/builder/builder.h"
#include "ir/core/saturating.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/change_loop.h"
#include "passes/rewrite/loop_body_cloner.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/schedule/loop_collectives.h"

namespace hlokit {
namespace {

constexpr uint8_t kLoopInvariant = 1;       // the same in all iterations
constexpr uint8_t kInductionDependent = 2;  // depends on the induction variable alone
constexpr int kMaxChainLength = 16;

bool MayWait(Instruction i, const SideEffects& effects) {
  if (!IsSyncCollective(i) || i.operand_count() != 1 || !IsRecomputable(i, effects)) return false;
  const Shape given = i.operand(0).shape();
  return given.IsArray() && !given.has_dynamic_dims() && !given.has_unbounded_dims();
}

}  // namespace

ForwardCollectivePipeliner::ForwardCollectivePipeliner(Module* module, const CanonicalLoop& loop, int64_t counter,
                                                       const SideEffects& effects, int64_t* next_channel)
    : module_(*module), loop_(loop), counter_(counter), effects_(effects), next_channel_(*next_channel) {
  ClassifyLoopValues();
  std::vector<uint8_t> taken(static_cast<size_t>(loop.size), 0);
  for (InstructionId id : PostOrder(loop.body)) {
    const Instruction i = module_.instruction(id);
    Sink sink;
    if (!MayWait(i, effects) || known_[id.value] != 0 || !MatchSink(i, &sink)) continue;
    if (taken[static_cast<size_t>(sink.element)]++ != 0) continue;
    // Received from the previous iteration and carried to the next.
    bytes_ = SaturatingAdd(bytes_, SaturatingMultiply(BufferBytes(i.operand(0).shape()), 2));
    sinks_.push_back(std::move(sink));
  }
}

void ForwardCollectivePipeliner::ClassifyLoopValues() {
  known_.assign(module_.instruction_id_bound(), 0);
  for (InstructionId id : PostOrder(loop_.body)) {
    const Instruction i = module_.instruction(id);
    if (IsStateElement(i, loop_.body)) {
      const int64_t index = i.int_attr(Attr::kIndex);
      if (loop_.unchanged[static_cast<size_t>(index)]) known_[id.value] = kLoopInvariant;
      if (index == counter_) known_[id.value] = kInductionDependent;
      continue;
    }
    if (IsSyncCollective(i) || !IsRecomputable(i, effects_)) continue;
    uint8_t known = kLoopInvariant;
    for (Instruction operand : i.operands()) {
      const uint8_t of_operand = known_[operand.id().value];
      known = of_operand == 0 || known == 0 ? uint8_t{0} : std::max(known, of_operand);
    }
    known_[id.value] = known;
  }
}

// Returns true if `update` is the only user of the element and the root is the only user of `update`.
bool ForwardCollectivePipeliner::IsOnlyUpdatedBy(Instruction update, int64_t element) const {
  const Instruction old = update.operand(0);
  if (!IsStateElement(old, loop_.body, element) || !HasOneUse(old) || !HasOneUse(update)) {
    return false;
  }
  for (Instruction state : {loop_.body.parameter(0), loop_.condition.parameter(0)}) {
    for (const auto use : state.uses()) {
      if (use.user.opcode() != Opcode::kGetTupleElement) return false;
      if (use.user.int_attr(Attr::kIndex) == element && use.user != old) return false;
    }
  }
  return loop_.body.root().operand(element) == update;
}

bool ForwardCollectivePipeliner::MatchSink(Instruction collective, Sink* sink) const {
  // The operand is loop-carried already.
  if (IsStateElement(collective.operand(0), loop_.body)) return false;
  sink->collective = collective.id();
  Instruction value = collective;
  for (int length = 0; length < kMaxChainLength; ++length) {
    if (value.is_root() || !HasOneUse(value)) return false;
    const auto use = *value.uses().begin();
    const Instruction user = use.user;
    if (user.has_control_edges() || user.has(Attr::kSharding)) {
      return false;
    }
    if (user.opcode() == Opcode::kDynamicUpdateSlice) {
      if (use.operand_index != 1) return false;
      sink->update = user.id();
      for (int64_t k = 2; k < user.operand_count(); ++k) {
        const uint8_t known = known_[user.operand(k).id().value];
        if (known == 0) return false;
        if (known == kInductionDependent) sink->starts.push_back(k);
      }
      const Instruction old = user.operand(0);
      if (!IsStateElement(old, loop_.body)) return false;
      sink->element = old.int_attr(Attr::kIndex);
      return IsOnlyUpdatedBy(user, sink->element);
    }
    if (IsSyncCollective(user) || !IsRecomputable(user, effects_)) return false;
    for (Instruction operand : user.operands()) {
      if (operand != value && known_[operand.id().value] != kLoopInvariant) return false;
    }
    value = user;
  }
  return false;
}

absl::Status ForwardCollectivePipeliner::Run() {
  const ComputationId outer = loop_.loop.record().parent;
  // Before the loop: zeros, and the start indices of the first iteration.
  std::vector<InstructionId> first;
  LoopBodyCloner before(
      &module_, loop_.body, outer, loop_.loop.id(),
      [this](Instruction element) { return InitElement(module_, loop_, element.int_attr(Attr::kIndex)); },
      &next_channel_);
  for (const Sink& sink : sinks_) {
    const Instruction operand = module_.instruction(sink.collective).operand(0);
    const Shape shape = operand.shape();
    Builder builder(&module_, loop_.loop.id());
    const MetadataScope scope(&builder, operand.record().metadata);
    const Builder::Result zero =
        builder.Constant(Literal::Zeros(module_.context().shapes.Scalar(shape.element_type())));
    if (!zero.ok()) return zero.status();
    const Builder::Result zeros = builder.Broadcast(*zero, shape.dims(), {});
    if (!zeros.ok()) return zeros.status();
    module_.SetShape(*zeros, shape);
    first.push_back(*zeros);
    for (int64_t k : sink.starts) {
      first.push_back(before.Clone(module_.instruction(sink.update).operand(k).id()));
    }
  }
  // Redirect the users of the arrays after the loop.
  RewriteLoopState(module_, loop_, std::vector<uint8_t>(static_cast<size_t>(loop_.size), 1), first);
  std::vector<std::vector<InstructionId>> readers(static_cast<size_t>(loop_.size));
  for (const auto use : loop_.loop.uses()) {
    readers[static_cast<size_t>(use.user.int_attr(Attr::kIndex))].push_back(use.user.id());
  }
  // In the body: the collective and the update take the value that the previous iteration carried.
  const InstructionId root = loop_.body.root().id();
  int64_t place = loop_.size;
  const auto swap = [&](InstructionId user, int64_t operand) {
    const InstructionId given = module_.instruction(root).operand(place).id();
    const InstructionId own = module_.instruction(user).operand(operand).id();
    module_.MoveBefore(given, loop_.body.record().first);
    module_.ReplaceOperand(user, operand, given);
    module_.ReplaceOperand(root, place++, own);
  };
  for (const Sink& sink : sinks_) {
    swap(sink.collective, 0);
    for (int64_t k : sink.starts) swap(sink.update, k);
  }
  // After the loop: the value of the last iteration.
  const InstructionId next = module_.record(loop_.loop.id()).next;
  Builder builder(&module_, outer, next);
  builder.SetMetadata(module_.record(loop_.loop.id()).metadata);
  const auto after = [&](Instruction seen) {
    return builder.MakeElement(loop_.loop.id(), seen.int_attr(Attr::kIndex));
  };
  LoopBodyCloner epilogue(&module_, loop_.body, outer, next, after, &next_channel_);
  for (const Sink& sink : sinks_) {
    const InstructionId last = epilogue.Clone(sink.update);
    for (InstructionId reader : readers[static_cast<size_t>(sink.element)]) {
      MergeMetadata(module_, reader, last);
      module_.ReplaceAllUses(reader, last);
    }
  }
  // Only now: clones are inserted before the next instruction after the loop, which may be a reader.
  for (const Sink& sink : sinks_) {
    for (InstructionId reader : readers[static_cast<size_t>(sink.element)]) module_.Erase(reader);
  }
  return absl::OkStatus();
}

}  // namespace hlokit
