// SPDX-License-Identifier: Apache-2.0
// Lets collectives that move data move it in the narrower of the types that it has before and after. As in XLA's
// CollectiveQuantizer, the conversion may come with a scale: int8 weights are gathered before they are scaled to
// floats.
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "passes/analysis/call_graph.h"
#include "passes/annotations/annotations.h"
#include "passes/collective/collective_key.h"
#include "passes/collective/collectives.h"
#include "passes/collective/device_values.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/dead_operands.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {
namespace {

// Operations between a conversion and a collective are looked through up to this number.
constexpr size_t kMaxMovements = 64;

// A conversion before (after) a collective, and the multiplication or division by one scalar after (before) it, with
// the clamp between them if the conversion narrows, and operations that move elements between these and the collective.
struct ScaledConversion {
  Instruction convert;
  std::vector<Instruction> movements;  // operands first
  Instruction scaling;                 // these are invalid in a plain conversion
  Instruction clamp;
  int64_t scale = 0;  // operand index of the broadcast scale in `scaling`
};

int64_t WidthChange(Instruction convert) {
  return BitsOf(convert.shape().element_type()) - BitsOf(convert.operand(0).shape().element_type());
}

bool IsConversion(Instruction i, bool widens) {
  return i.opcode() == Opcode::kConvert && !i.has_control_edges() && (widens ? WidthChange(i) > 0 : WidthChange(i) < 0);
}

bool IsBroadcastScalar(Instruction i) { return IsBroadcastOfScalar(i) && !i.has_control_edges(); }

// Returns the operand index of the scale, or nullopt.
std::optional<int64_t> ScaleOperand(Instruction scaling) {
  const bool product = scaling.opcode() == Opcode::kMultiply;
  if ((!product && scaling.opcode() != Opcode::kDivide) || scaling.has_control_edges()) return std::nullopt;
  if (IsBroadcastScalar(scaling.operand(1))) return 1;
  if (product && IsBroadcastScalar(scaling.operand(0))) return 0;
  return std::nullopt;
}

bool IsOnlyUsedOnce(Instruction i) { return !i.is_root() && HasOneUse(i); }
Instruction OnlyUser(Instruction i) { return (*i.uses().begin()).user; }

bool IsClampBound(Instruction i) {
  const Instruction scalar = i.opcode() == Opcode::kBroadcast ? i.operand(0) : i;
  return scalar.opcode() == Opcode::kConstant && scalar.shape().IsScalar();
}

// Returns true if the operation is the same on elements of another type.
bool IsMovement(Instruction i) {
  const Opcode opcode = i.opcode();
  static constexpr OpcodeSet kMovements = {Opcode::kBitcast, Opcode::kCopy, Opcode::kReshape, Opcode::kSlice};
  if (!kMovements.Contains(opcode)) {
    return false;
  }
  if (i.has_control_edges() || i.has(Attr::kSharding)) return false;
  const Shape from = i.operand(0).shape(), to = i.shape();
  if (!from.IsArray() || !to.IsArray() || from.element_type() != to.element_type()) return false;
  if (opcode != Opcode::kBitcast) return true;
  // Tiles depend on the width.
  const auto plain = [](Shape shape) { return shape.has_layout() && shape.layout()->extras == nullptr; };
  return plain(from) && plain(to);
}

std::optional<ScaledConversion> MatchBefore(Instruction collective) {
  Instruction value = collective.operand(0);
  ScaledConversion match;
  while (IsMovement(value) && match.movements.size() < kMaxMovements) {
    match.movements.push_back(value);
    value = value.operand(0);
  }
  std::reverse(match.movements.begin(), match.movements.end());
  if (IsConversion(value, /*widens=*/true)) {
    match.convert = value;
    return match;
  }
  const std::optional<int64_t> scale = ScaleOperand(value);
  if (!scale || !IsConversion(value.operand(1 - *scale), /*widens=*/true)) return std::nullopt;
  match.convert = value.operand(1 - *scale);
  match.scaling = value;
  match.scale = *scale;
  return match;
}

std::optional<ScaledConversion> MatchAfter(Instruction collective) {
  ScaledConversion match;
  Instruction value = collective;
  while (IsOnlyUsedOnce(value) && IsMovement(OnlyUser(value)) && match.movements.size() < kMaxMovements) {
    value = OnlyUser(value);
    match.movements.push_back(value);
  }
  if (!IsOnlyUsedOnce(value)) return std::nullopt;
  const Instruction user = OnlyUser(value);
  if (IsConversion(user, /*widens=*/false)) {
    match.convert = user;
    return match;
  }
  const std::optional<int64_t> scale = ScaleOperand(user);
  if (!scale || user.operand(1 - *scale) != value || !IsOnlyUsedOnce(user)) return std::nullopt;
  const Instruction clamp = OnlyUser(user);
  if (clamp.opcode() != Opcode::kClamp || clamp.operand(1) != user || clamp.has_control_edges()) return std::nullopt;
  if (!IsClampBound(clamp.operand(0)) || !IsClampBound(clamp.operand(2)) || !IsOnlyUsedOnce(clamp)) return std::nullopt;
  if (!IsConversion(OnlyUser(clamp), /*widens=*/false)) return std::nullopt;
  match.convert = OnlyUser(clamp);
  match.scaling = user;
  match.clamp = clamp;
  match.scale = *scale;
  return match;
}

bool MovesWholeArray(Instruction i) {
  if (i.operand_count() != 1 || !i.shape().IsArray() || i.has(Attr::kPermuteSliceSizes)) return false;
  static constexpr OpcodeSet kMovingCollectives = {Opcode::kAllGather, Opcode::kAllToAll, Opcode::kCollectiveBroadcast,
                                                   Opcode::kCollectivePermute};
  return kMovingCollectives.Contains(i.opcode());
}

// Returns true if the scale can be applied on the other side of the collective: all members have the same scale, and
// every device receives data. (A device that receives none has zeros, which a clamp or a division may change.)
bool MayMoveScale(Instruction collective, const ScaledConversion& match, UniformValues& uniform) {
  if (!match.scaling.valid()) return true;
  if (!OpcodeSet{Opcode::kAllGather, Opcode::kAllToAll}.Contains(collective.opcode())) return false;
  return uniform.IsUniform(match.scaling.operand(match.scale).operand(0), collective);
}

class Quantizer {
 public:
  Quantizer(Module* module, Instruction collective, const ScaledConversion& match)
      : module_(*module), collective_(collective), match_(match), builder_(module, collective.id()) {}

  // Converts after the collective. Returns the new collective.
  InstructionId ConvertAfter() {
    const InstructionId moved = Move(Movements(match_.convert.operand(0).id()));
    const Shape shape = collective_.shape();
    InstructionId result = Like(match_.convert, shape, {moved});
    if (match_.scaling.valid()) result = Scale(result, shape);
    const InstructionId last = collective_.operand(0).id();
    Replace(module_, collective_.id(), result);
    EraseDead(module_, last, result);
    return moved;
  }

  // Converts before the collective. Returns the new collective.
  InstructionId ConvertBefore() {
    builder_.SetInsertionPoint(match_.convert.id());
    const Shape shape = collective_.operand(0).shape();
    InstructionId value = collective_.operand(0).id();
    if (match_.scaling.valid()) {
      value = Scale(value, shape);
      const InstructionId low = Bound(0, shape), high = Bound(2, shape);
      value = Like(match_.clamp, shape, {low, value, high});
    }
    const Shape narrow = builder_.shapes().WithElementType(shape, match_.convert.shape().element_type());
    value = Like(match_.convert, narrow, {value});
    const InstructionId moved = Move(value);
    const InstructionId last = match_.convert.operand(0).id();
    Replace(module_, match_.convert.id(), Movements(moved));
    if (last != collective_.id()) EraseDead(module_, last, moved);
    EraseDead(module_, collective_.id(), moved);
    return moved;
  }

 private:
  // Returns the operations between conversion and collective, on another array.
  InstructionId Movements(InstructionId value) {
    const ElementType type = builder_.shape_of(value).element_type();
    for (Instruction movement : match_.movements) {
      value = builder_.MakeClone(movement.id(), {value});
      module_.SetShape(value, builder_.shapes().WithElementType(movement.shape(), type));
    }
    return value;
  }
  InstructionId Like(Instruction source, Shape shape, Builder::Operands operands) {
    const MetadataScope scope(&builder_, source.metadata_id());
    return builder_.Make(source.opcode(), shape, operands);
  }
  // Returns the collective of another operand.
  InstructionId Move(InstructionId operand) {
    const InstructionId moved = builder_.MakeClone(collective_.id(), {operand});
    const ElementType type = module_.instruction(operand).shape().element_type();
    module_.SetShape(moved, builder_.shapes().WithElementType(collective_.shape(), type));
    return moved;
  }
  InstructionId Splat(Instruction broadcast, Shape shape) {
    const MetadataScope scope(&builder_, broadcast.metadata_id());
    return builder_.MakeSplat(shape, broadcast.operand(0).id());
  }
  InstructionId Scale(InstructionId value, Shape shape) {
    const InstructionId scale = Splat(match_.scaling.operand(match_.scale), shape);
    InstructionId operands[] = {value, value};
    operands[match_.scale] = scale;
    return Like(match_.scaling, shape, operands);
  }
  InstructionId Bound(int64_t operand, Shape shape) {
    const Instruction bound = match_.clamp.operand(operand);
    return bound.opcode() == Opcode::kBroadcast ? Splat(bound, shape) : bound.id();
  }

  Module& module_;
  const Instruction collective_;
  const ScaledConversion match_;
  Builder builder_;
};

int64_t QuantizeOnce(Module& module) {
  const CallGraph calls(module);
  const ComputationRoles roles = RolesOf(module);
  UniformValues uniform(&module);
  int64_t moved = 0;
  for (Computation c : module.computations()) {
    if (!calls.IsSequential(c) || roles.async[c.id().value] != 0) continue;
    std::vector<InstructionId> open = PostOrder(c);
    std::reverse(open.begin(), open.end());
    while (!open.empty()) {
      const Instruction i = module.instruction(open.back());
      open.pop_back();
      if (!i.record().parent.valid() || !MovesWholeArray(i) || !CollectiveKey(i)) continue;
      const std::optional<ScaledConversion> before = MatchBefore(i);
      if (before && MayMoveScale(i, *before, uniform)) {
        open.push_back(Quantizer(&module, i, *before).ConvertAfter());
        ++moved;
        continue;
      }
      const std::optional<ScaledConversion> after = MatchAfter(i);
      if (after && MayMoveScale(i, *after, uniform)) {
        open.push_back(Quantizer(&module, i, *after).ConvertBefore());
        ++moved;
      }
    }
  }
  return moved;
}

}  // namespace

absl::StatusOr<int64_t> QuantizeCollectives(Module& module) {
  if (module.header().is_scheduled || !module.entry().valid()) return 0;
  // Of new collectives it becomes known in the next round that their results are equal on all devices.
  constexpr int kMaxRounds = 16;
  int64_t moved = 0;
  for (int round = 0; round < kMaxRounds; ++round) {
    const int64_t more = QuantizeOnce(module);
    if (more == 0) break;
    moved += more;
  }
  return moved;
}

namespace {

class CollectiveQuantizer : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<int64_t> count = QuantizeCollectives(module);
    if (!count.ok()) return count.status();
    if (*count > 0) Count("collectives narrowed", *count);
    return *count > 0;
  }
};

}  // namespace

HLOKIT_PASS(CollectiveQuantizer) {
  return {.name = "collective-quantizer",
          .category = "collective",
          .summary = "move data between devices in the narrower type",
          .doc =
              "A widening conversion before an all-gather, all-to-all, collective-broadcast or "
              "collective-permute moves behind it, a narrowing one after it before it; for all-gather and "
              "all-to-all also with the product or quotient by a scale that is equal in each group. Between "
              "them may be bitcasts, copies, reshapes and slices. XLA's also moves the scale across the "
              "other two, and takes only modules with one replica.",
          .example = R"(HloModule weights, replica_count=2

ENTRY main {
  w = s8[4] parameter(0)
  wide = f32[4] convert(w)
  scale = f32[] constant(0.5)
  scales = f32[4] broadcast(scale), dimensions={}
  scaled = f32[4] multiply(wide, scales)
  ROOT all = f32[8] all-gather(scaled), replica_groups={{0,1}}, dimensions={0}
})",
          .preconditions = kNoSchedule,
          .create = MakePass<CollectiveQuantizer>};
}

}  // namespace hlokit
