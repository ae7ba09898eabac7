// SPDX-License-Identifier: Apache-2.0
// Moves all-reduces out of loops that only add up their results: gradients of microbatches are then reduced once.
#include <optional>
#include <vector>

#include "ir/builder/builder.h"
#include "passes/analysis/loop.h"
#include "passes/annotations/annotations.h"
#include "passes/collective/collective_key.h"
#include "passes/collective/collectives.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/change_loop.h"
#include "passes/rewrite/pattern_rewriter.h"
#include "passes/rewrite/splat.h"

namespace hlokit {
namespace {

// An element of the state to which each iteration adds the result of an all-reduce.
struct Accumulation {
  int64_t element;
  InstructionId sum;
  int64_t addend;            // operand index of the converted or plain all-reduce
  InstructionId all_reduce;  // with addition
};

// Who reads an element of the state in a computation.
struct Readers {
  int64_t count = 0;
  Instruction last;  // invalid if a root does
};

// Returns the readers of each of the `size` elements.
std::vector<Readers> ReadersOfElements(Computation computation, int64_t size) {
  std::vector<Readers> readers(static_cast<size_t>(size));
  for (const auto& use : computation.parameter(0).uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) continue;
    Readers& of = readers[static_cast<size_t>(use.user.int_attr(Attr::kIndex))];
    for (const auto& reader : use.user.uses()) {
      of.last = reader.user;
      ++of.count;
    }
    if (use.user.is_root()) {
      of.last = Instruction();
      ++of.count;
    }
  }
  return readers;
}

// `in_condition`, `in_body`: the readers of the element.
std::optional<Accumulation> MatchAccumulation(const CanonicalLoop& loop, int64_t element, const Readers& in_condition,
                                              const Readers& in_body) {
  const Instruction sum = loop.body.root().operand(element);
  if (sum.opcode() != Opcode::kAdd || !HasOneUse(sum) || sum.has_control_edges()) return std::nullopt;
  if (in_condition.count != 0 || in_body.count != 1 || in_body.last != sum) return std::nullopt;
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction reduced = sum.operand(k);
    if (reduced.opcode() != Opcode::kAllReduce || reduced.operand_count() != 1 || !HasOneUse(reduced)) continue;
    if (!IsStateElement(sum.operand(1 - k), loop.body, element) || !CollectiveKey(reduced)) continue;
    if (ReducerOpcode(reduced.computation_attr(Attr::kToApply)) != Opcode::kAdd) continue;
    const Shape shape = sum.shape();
    if (reduced.shape() != shape || reduced.operand(0).shape() != shape) continue;
    if (sum.operand(1 - k).shape() != shape || shape.element_type() == ElementType::kPred) continue;
    return Accumulation{element, sum.id(), k, reduced.id()};
  }
  return std::nullopt;
}

// Returns true if the loop has users besides get-tuple-element, which see the whole state.
bool IsUsedAsAWhole(Instruction loop) {
  if (loop.is_root()) return true;
  for (const auto& use : loop.uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) return true;
  }
  return false;
}

// Lets the users of the state have a tuple of its elements instead, so that elements can be replaced.
void SplitWholeUses(Module& module, Instruction loop) {
  if (!IsUsedAsAWhole(loop)) return;
  std::vector<std::pair<InstructionId, int64_t>> whole;
  for (const auto& use : loop.uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) whole.emplace_back(use.user.id(), use.operand_index);
  }
  Builder builder(&module, loop.record().parent);
  builder.SetInsertionPointAfter(loop.id());
  builder.SetMetadata(loop.metadata_id());
  std::vector<InstructionId> elements;
  for (int64_t k = 0; k < loop.shape().tuple_size(); ++k) elements.push_back(builder.MakeElement(loop.id(), k));
  const InstructionId tuple = builder.Make(Opcode::kTuple, loop.shape(), elements);
  for (const auto& [user, index] : whole) module.ReplaceOperand(user, index, tuple);
  if (loop.is_root()) module.SetRoot(loop.record().parent, tuple);
}

// Replaces the operand of the loop by a tuple in which `element` is zero. Returns the initial value.
InstructionId StartAtZero(Module& module, const CanonicalLoop& loop, int64_t element) {
  std::vector<InstructionId> elements;
  const Instruction init = loop.loop.operand(0);
  CanonicalLoop current = loop;
  current.init = init;
  for (int64_t k = 0; k < loop.size; ++k) elements.push_back(InitElement(module, current, k));
  const InstructionId start = elements[static_cast<size_t>(element)];
  const std::optional<Splat> splat = SplatOf(module.instruction(start));
  if (splat && splat->IsZero() && !splat->IsNegativeZero()) return start;
  Builder builder(&module, loop.loop.id());
  builder.SetMetadata(module.record(start).metadata);
  const Shape shape = module.instruction(start).shape();
  elements[static_cast<size_t>(element)] =
      builder.MakeSplat(shape, builder.MakeScalarConstant(shape.element_type(), 0));
  builder.SetMetadata(init.metadata_id());
  const InstructionId tuple = builder.Make(Opcode::kTuple, init.shape(), elements);
  module.ReplaceOperand(loop.loop.id(), 0, tuple);
  if (!init.has_users() && init.opcode() == Opcode::kTuple && !init.is_root() && !init.has_control_edges()) {
    module.Erase(init.id());
  }
  return start;
}

// Returns false, and changes nothing, if the sum is not used after the loop.
bool MoveOut(Module& module, const CanonicalLoop& loop, const Accumulation& accumulation) {
  const InstructionId loop_id = loop.loop.id();
  std::vector<InstructionId> results;
  for (const auto& use : module.instruction(loop_id).uses()) {
    if (use.user.int_attr(Attr::kIndex) == accumulation.element) results.push_back(use.user.id());
  }
  if (results.empty()) return false;
  const InstructionId start = StartAtZero(module, loop, accumulation.element);
  // After the loop: start + all-reduce(sum of the operands).
  Builder builder(&module, module.record(loop_id).parent);
  builder.SetInsertionPointAfter(loop_id);
  builder.SetMetadata(module.record(loop_id).metadata);
  const InstructionId local = builder.MakeElement(loop_id, accumulation.element);
  const InstructionId reduced = builder.MakeClone(accumulation.all_reduce, {local});
  const std::optional<Splat> splat = SplatOf(module.instruction(start));
  InstructionId total = reduced;
  if (!splat || !splat->IsZero()) {
    builder.SetMetadata(module.record(accumulation.sum).metadata);
    total = builder.MakeLike(Opcode::kAdd, {start, reduced});
  }
  for (InstructionId result : results) Replace(module, result, total);
  // In the loop: without the all-reduce, whose metadata is on its clone.
  const InstructionId operand = module.instruction(accumulation.all_reduce).operand(0).id();
  module.ReplaceOperand(accumulation.sum, accumulation.addend, operand);
  module.Erase(accumulation.all_reduce);
  return true;
}

}  // namespace

absl::StatusOr<int64_t> MoveAllReducesOutOfLoops(Module& module) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  const std::vector<uint32_t> callers = CountCallers(module);
  int64_t moved = 0;
  for (InstructionId id : WhileLoops(module)) {
    const std::optional<CanonicalLoop> loop = MatchCanonicalLoop(module.instruction(id), callers);
    if (!loop || loop->loop.has_control_edges()) continue;
    const std::vector<Readers> in_condition = ReadersOfElements(loop->condition, loop->size);
    const std::vector<Readers> in_body = ReadersOfElements(loop->body, loop->size);
    std::vector<Accumulation> accumulations;
    for (int64_t k = 0; k < loop->size; ++k) {
      const size_t element = static_cast<size_t>(k);
      const std::optional<Accumulation> accumulation =
          MatchAccumulation(*loop, k, in_condition[element], in_body[element]);
      if (accumulation) accumulations.push_back(*accumulation);
    }
    if (accumulations.empty()) continue;
    SplitWholeUses(module, loop->loop);
    for (const Accumulation& accumulation : accumulations) {
      moved += MoveOut(module, *loop, accumulation) ? 1 : 0;
    }
  }
  return moved;
}

namespace {

class LoopAllReduceMotion : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = MoveAllReducesOutOfLoops(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("all-reduces moved out of loops", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(WhileLoopAllReduceCodeMotion) {
  return {.name = "while-loop-all-reduce-code-motion",
          .category = "collective",
          .summary = "reduce once after a loop what it reduces and adds up",
          .doc =
              "If a loop adds the result of an all-reduce to an element of its state and does not use the "
              "element otherwise, it adds up the operand instead, and the sum is reduced after it. XLA also "
              "follows reduce-scatters, conversions, slices and selections.",
          .example = R"(HloModule microbatches, replica_count=2

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

body {
  state = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[8] get-tuple-element(state), index=1
  gradient = f32[8] cosine(x)
  total = f32[8] all-reduce(gradient), replica_groups={{0,1}}, to_apply=sum
  accumulated = f32[8] get-tuple-element(state), index=2
  more = f32[8] add(accumulated, total)
  after = f32[8] add(x, gradient)
  ROOT r = (s32[], f32[8], f32[8]) tuple(next, after, more)
}

condition {
  state = (s32[], f32[8], f32[8]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(i, n), direction=LT
}

ENTRY main {
  x = f32[8] parameter(0)
  zero = s32[] constant(0)
  fzero = f32[] constant(0)
  zeros = f32[8] broadcast(fzero), dimensions={}
  init = (s32[], f32[8], f32[8]) tuple(zero, x, zeros)
  loop = (s32[], f32[8], f32[8]) while(init), condition=condition, body=body
  ROOT gradients = f32[8] get-tuple-element(loop), index=2
})",
          .preconditions = kNoSchedule,
          .tolerance = 1e-5,
          .create = MakePass<LoopAllReduceMotion>};
}

}  // namespace hlokit
