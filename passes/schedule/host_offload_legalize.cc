// SPDX-License-Identifier: Apache-2.0
// The calls are identities, so that they can be exchanged with any operation on one array.
#include "passes/schedule/host_offload_legalize.h"

#include <algorithm>
#include <string_view>

#include "passes/schedule/host_buffers.h"

namespace hlokit {
namespace {

bool KeepsElements(Instruction i) {
  return (i.opcode() == Opcode::kCopy || i.opcode() == Opcode::kReshape || i.opcode() == Opcode::kBitcast) &&
         i.shape().IsArray() && i.operand(0).shape().IsArray();
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

// A slice of a copy in another layout, of which only the slice is moved to the device, becomes a copy of a slice.
bool CopyAfterSlice(PatternRewriter& rewriter, Instruction slice) {
  const Instruction copy = slice.operand(0);
  if (copy.opcode() != Opcode::kCopy || !copy.shape().has_layout() || !copy.operand(0).shape().has_layout() ||
      !slice.shape().has_layout() || slice.is_root() || !slice.has_users() || !rewriter.IsReplaceable(slice) ||
      !rewriter.IsReplaceable(copy)) {
    return false;
  }
  for (const auto& use : slice.uses()) {
    if (!IsMoveToDevice(use.user)) return false;
  }
  ShapeTable& shapes = rewriter.shapes();
  const Shape array = copy.operand(0).shape();
  const Shape part = shapes.WithLayout(shapes.Array(array.element_type(), slice.shape().dims()),
                                       shapes.Layout(array.layout()->minor_to_major));
  std::vector<InstructionId> operands = {copy.operand(0).id()};
  for (int64_t k = 1; k < slice.operand_count(); ++k) operands.push_back(slice.operand(k).id());
  const InstructionId taken = rewriter.Make(slice.opcode(), part, operands, OwnAttrs(slice));
  return rewriter.Replace(slice, rewriter.Make(Opcode::kCopy, slice.shape(), {taken}), {copy});
}

}  // namespace

void AddHostOffloadLegalizeRules(RewritePatternSet* rules) {
  rules->Add({Opcode::kCopy, Opcode::kReshape, Opcode::kBitcast}, "changes moved before moves to the host",
             ChangeBeforeMoveToHost);
  rules->Add({Opcode::kCustomCall}, "changes moved after moves to the device", ChangeAfterMoveToDevice);
  rules->Add({Opcode::kSlice, Opcode::kDynamicSlice}, "copies moved after slices", CopyAfterSlice);
}

}  // namespace hlokit
