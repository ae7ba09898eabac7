// SPDX-License-Identifier: Apache-2.0
// The calls are identities, so that they can be exchanged with any operation on one array.
#include "passes/schedule/host_offload_legalize.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/builder/builder.h"
#include "passes/analysis/loop.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/dead_operands.h"
#include "passes/rewrite/rule_pass.h"
#include "passes/schedule/host_buffers.h"

namespace hlokit {
namespace {

bool KeepsElements(Instruction i) {
  return HasTrait(i.opcode(), kReinterprets) && i.shape().IsArray() && i.operand(0).shape().IsArray();
}

bool IsExchangeable(PatternRewriter& rewriter, Instruction move) {
  return move.shape() == move.operand(0).shape() && !move.has(Attr::kOperandLayoutConstraints) &&
         rewriter.IsReplaceable(move);
}

// A copy of what was moved to the host becomes a copy that is moved to the host.
bool ChangeBeforeMoveToHost(PatternRewriter& rewriter, Instruction i) {
  const Instruction move = i.operand(0);
  if (!KeepsElements(i) || !IsMoveToHost(move) || !HasOneUse(move) || move.is_root() || !rewriter.IsReplaceable(i) ||
      !IsExchangeable(rewriter, move)) {
    return false;
  }
  const InstructionId changed = rewriter.Make(i.opcode(), i.shape(), {move.operand(0).id()}, OwnAttrs(i));
  return rewriter.Replace(i, rewriter.Make(Opcode::kCustomCall, i.shape(), {changed}, OwnAttrs(move)), {move});
}

// A copy that is moved to the device becomes a copy of what is moved to the device.
bool ChangeAfterMoveToDevice(PatternRewriter& rewriter, Instruction move) {
  if (!IsMoveToDevice(move) || !IsExchangeable(rewriter, move)) return false;
  const Instruction i = move.operand(0);
  if (!KeepsElements(i) || !HasOneUse(i) || i.is_root() || !rewriter.IsReplaceable(i)) return false;
  const Instruction source = i.operand(0);
  if (IsMoveToHost(source) && HasOneUse(source) && IsExchangeable(rewriter, source)) return false;
  const InstructionId moved = rewriter.Make(Opcode::kCustomCall, source.shape(), {source.id()}, OwnAttrs(move));
  return rewriter.Replace(move, rewriter.Make(i.opcode(), move.shape(), {moved}, OwnAttrs(i)), {i});
}

// Properties of a layout that depend on the sizes of the dimensions.
bool DependsOnSizes(const LayoutRecord& layout) {
  return layout.extras != nullptr &&
         (!layout.extras->split_configs.empty() || layout.extras->physical_record != nullptr);
}

// A slice of a copy in another layout, of which only the slice is moved to the device, becomes a copy of a slice.
bool CopyAfterSlice(PatternRewriter& rewriter, Instruction slice) {
  const Instruction copy = slice.operand(0);
  if (copy.opcode() != Opcode::kCopy || !copy.shape().has_layout() || !copy.operand(0).shape().has_layout() ||
      !slice.shape().has_layout() || DependsOnSizes(*copy.operand(0).shape().layout()) || slice.is_root() ||
      !slice.has_users() || !rewriter.IsReplaceable(slice) || !rewriter.IsReplaceable(copy)) {
    return false;
  }
  for (const auto& use : slice.uses()) {
    if (!IsMoveToDevice(use.user)) return false;
  }
  ShapeTable& shapes = rewriter.shapes();
  const Shape array = copy.operand(0).shape();
  // In the order, tiles and memory space of the array.
  const Shape part = shapes.WithLayout(shapes.Array(array.element_type(), slice.shape().dims()), array.layout());
  std::vector<InstructionId> operands = {copy.operand(0).id()};
  for (int64_t k = 1; k < slice.operand_count(); ++k) operands.push_back(slice.operand(k).id());
  const InstructionId taken = rewriter.Make(slice.opcode(), part, operands, OwnAttrs(slice));
  return rewriter.Replace(slice, rewriter.Make(Opcode::kCopy, slice.shape(), {taken}), {copy});
}

bool IsElement(Instruction i, int64_t index) {
  return i.opcode() == Opcode::kGetTupleElement && i.int_attr(Attr::kIndex) == index;
}

// Returns true if the loop reads element `index`, which it forwards unchanged, only in slices that are moved to the
// device, and nothing reads it after the loop.
bool OnlySlicesAreMoved(const CanonicalLoop& loop, int64_t index) {
  if (loop.unchanged[static_cast<size_t>(index)] == 0 || loop.loop.is_root()) return false;
  for (const auto& use : loop.loop.uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) return false;
    if (IsElement(use.user, index) && (use.user.has_users() || use.user.is_root())) return false;
  }
  for (const auto& use : loop.condition.parameter(0).uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement || IsElement(use.user, index)) return false;
  }
  bool any = false;
  for (const auto& use : loop.body.parameter(0).uses()) {
    if (use.user.opcode() != Opcode::kGetTupleElement) return false;
    if (!IsElement(use.user, index)) continue;
    for (const auto& [user, operand] : use.user.uses()) {
      if (user == loop.body.root()) continue;
      if (operand != 0 || !IsSlice(user) || !OnlyMovesToDevice(user)) return false;
      any = true;
    }
  }
  return any;
}

bool ChangesOnlyLayout(Instruction copy) {
  if (copy.opcode() != Opcode::kCopy || copy.is_root() || copy.has_control_edges() || copy.has(Attr::kSharding)) {
    return false;
  }
  const Shape from = copy.operand(0).shape(), to = copy.shape();
  return from.IsArray() && from != to && from.has_layout() && to.has_layout() && from.layout()->extras == nullptr &&
         Compatible(from, to);
}

// Lets the loop carry the operand of the copy, element `index` of its state, and copy it before each slice.
void SinkCopy(Module& module, const CanonicalLoop& loop, int64_t index) {
  const Instruction copy = loop.init.operand(index);
  const Shape carried = copy.operand(0).shape();
  std::vector<Shape> elements(loop.loop.shape().elements().begin(), loop.loop.shape().elements().end());
  elements[static_cast<size_t>(index)] = carried;
  const Shape state = module.context().shapes.Tuple(elements);
  module.ReplaceOperand(loop.init.id(), index, copy.operand(0).id());
  for (Instruction i : {loop.init, loop.loop, loop.body.parameter(0), loop.body.root(), loop.condition.parameter(0)}) {
    module.SetShape(i.id(), state);
  }
  for (Instruction element : loop.loop.users()) {
    if (IsElement(element, index)) module.SetShape(element.id(), carried);
  }
  InstructionId last;
  for (Instruction element : loop.body.parameter(0).users()) {
    if (!IsElement(element, index)) continue;
    module.SetShape(element.id(), carried);
    for (Instruction slice : element.users()) {
      if (slice == loop.body.root()) continue;
      Builder builder(&module, slice.id());
      builder.SetMetadata(copy.metadata_id());
      last = builder.Make(Opcode::kCopy, copy.shape(), {element.id()});
      module.ReplaceOperand(slice.id(), 0, last);
    }
  }
  EraseDead(module, copy.id(), last);
}

}  // namespace

int64_t SinkHostCopiesIntoLoops(Module& module) {
  const std::vector<uint32_t> callers = CountCallers(module);
  int64_t sunk = 0;
  for (InstructionId id : WhileLoops(module)) {
    const std::optional<CanonicalLoop> loop = MatchCanonicalLoop(module.instruction(id), callers);
    if (!loop || loop->init.opcode() != Opcode::kTuple || !HasOneUse(loop->init) || loop->init.is_root()) continue;
    for (int64_t k = 0; k < loop->size; ++k) {
      if (!ChangesOnlyLayout(loop->init.operand(k)) || !OnlySlicesAreMoved(*loop, k)) continue;
      SinkCopy(module, *loop, k);
      ++sunk;
    }
  }
  return sunk;
}

void AddHostOffloadLegalizeRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kCopy, Opcode::kReshape, Opcode::kBitcast}, "changes moved before moves to the host",
             ChangeBeforeMoveToHost);
  rules->Add({Opcode::kCustomCall}, "changes moved after moves to the device", ChangeAfterMoveToDevice);
  rules->Add({Opcode::kSlice, Opcode::kDynamicSlice}, "copies moved after slices", CopyAfterSlice);
}

namespace {

class HostOffloadLegalize : public RulesOf<AddHostOffloadLegalizeRules, RewriteScope::kSequential> {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    if (module.header().is_scheduled) return false;
    const int64_t sunk = SinkHostCopiesIntoLoops(module);
    if (sunk > 0) Count("copies moved into loops", sunk);
    const absl::StatusOr<bool> changed = RulePass::Run(module);
    if (!changed.ok()) return changed.status();
    return sunk > 0 || *changed;
  }
};

}  // namespace

HLOKIT_PASS(HostOffloadLegalize) {
  return {.name = "host-offload-legalize",
          .category = "schedule",
          .summary = "move changes of layout and shape away from calls that move arrays to the host",
          .doc =
              "Copies, reshapes and bitcasts after MoveToHost come before it, those before MoveToDevice after "
              "it, also past slices, so that host-offloader finds the calls next to what it replaces. A copy before a "
              "loop that only moves slices of it to the device moves into the loop. XLA's follows arrays "
              "through any tuples and loops to the copies between the calls, and moves these down; here a copy "
              "in the loop that stores the slices stays.",
          .example = R"(ENTRY e {
  x = f32[8,4] parameter(0)
  there = f32[8,4] custom-call(x), custom_call_target="MoveToHost"
  flat = f32[32] reshape(there)
  back = f32[32] custom-call(flat), custom_call_target="MoveToDevice"
  ROOT y = f32[32] negate(back)
})",
          .preconditions = kNoSchedule,
          .create = MakePass<HostOffloadLegalize>};
}

}  // namespace hlokit
