// SPDX-License-Identifier: Apache-2.0
// Values that come from nowhere in the computation: parameters, constants, iotas, random numbers, transfers; and
// custom-calls.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "ir/ops/opcode_set.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/manual_region.h"
#include "passes/sharding/partition/partitioner.h"

namespace hlokit::spmd {
namespace {

// Returns true if all elements are equal.
bool IsSplat(const LiteralRecord& literal) {
  const int64_t count = literal.shape.element_count();
  if (literal.elided || count < 1) return false;
  const size_t size = literal.size_bytes / static_cast<size_t>(count);
  return std::memcmp(literal.data, literal.data + size, literal.size_bytes - size) == 0;
}

// Returns the integers that have the bits of a float type.
std::optional<ElementType> BitsType(ElementType type) {
  if (!IsFloat(type)) return std::nullopt;
  for (const ElementType bits :
       {ElementType::kU4, ElementType::kU8, ElementType::kU16, ElementType::kU32, ElementType::kU64}) {
    if (BitsOf(bits) == BitsOf(type)) return bits;
  }
  return std::nullopt;
}

}  // namespace

InstructionId ComputationPartitioner::Parameter(Instruction i) {
  const LeafTilings& tilings = job_.parameters[ToSize(i.parameter_number())];
  const MetadataId previous = builder().SetMetadata(i.metadata_id());
  const InstructionId id = Clone(i, {}, LocalShapeOf(i.shape(), tilings));
  const bool entry = module_.computation(job_.source).is_entry();
  if (const std::optional<uint32_t> sharding = i.payload(Attr::kSharding); entry && sharding) {
    module_.SetAttr(id, Attr::kSharding, *sharding);
  }
  builder().SetMetadata(previous);
  Value leaves = Unpack(id, i.shape(), tilings);
  if (entry) {
    for (size_t k = 0; k < leaves.size(); ++k) {
      const bool alone = leaves[k].shape.IsArray() && state_.partitions > 1;
      if (alone) leaves[k].owner = owner_.OnlyDevice(i, k).value_or(-1);
    }
  }
  SetValue(i, std::move(leaves));
  return id;
}

// What the other devices have does not count. Floats are summed as integers of their bits: one of the devices has other
// than zeros, and a sum of floats would change -0 and some NaN, or have no zero at all (f8e8m0fnu).
InstructionId ComputationPartitioner::FromOwner(InstructionId array, InstructionId is_owner, const Tiling& frame,
                                                const AxisList& axes) {
  const Shape shape = builder().shape_of(array);
  const ElementType type = shape.element_type();
  if (const std::optional<ElementType> bits = BitsType(type)) {
    const Shape integers = builder().shapes().WithElementType(shape, *bits);
    const InstructionId as_bits = builder().Make(Opcode::kBitcastConvert, integers, {array});
    return builder().Make(Opcode::kBitcastConvert, shape, {FromOwner(as_bits, is_owner, frame, axes)});
  }
  const InstructionId zero = emitter_.Splat(shape, emitter_.Scalar(type, 0));
  const InstructionId part = emitter_.Select(emitter_.Splat(shape, is_owner), array, zero);
  const Opcode sum = type == ElementType::kPred ? Opcode::kOr : Opcode::kAdd;
  return emitter_.AllReduce(part, frame, axes, state_.Reducer(sum, type));
}

InstructionId ComputationPartitioner::Shared(const Leaf& leaf) {
  Tiling frame;
  frame.kind = ShardingKind::kTiled;
  frame.device_count = state_.partitions;
  const InstructionId owner = emitter_.Constant(leaf.owner);
  const InstructionId is_owner = builder().MakeCompare(ComparisonDirection::kEq, emitter_.Position(frame), owner);
  return FromOwner(leaf.id, is_owner, frame, {{1, state_.partitions}});
}

void ComputationPartitioner::Share(Instruction i, int64_t except) {
  const auto value = values_.find(i.id().value);
  if (value == values_.end()) return;
  for (Leaf& leaf : value->second) {
    if (leaf.owner < 0 || leaf.owner == except) continue;
    leaf.id = Shared(leaf);
    leaf.owner = -1;
  }
}

int64_t ComputationPartitioner::OwnerOf(Instruction i) const {
  const std::vector<Shape> shapes = Leaves(i.shape());
  int64_t device = -1;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const std::optional<int64_t> own = owner_.OnlyDevice(i, k);
    if (!own || (device >= 0 && *own != device) || !shapes[k].IsArray()) return -1;
    device = *own;
  }
  return device;
}

bool ComputationPartitioner::OnOwner(Instruction i) {
  const int64_t device = OwnerOf(i);
  if (device < 0 || HasTrait(i.opcode(), kCollective) || HasDynamicShape(i)) return false;
  bool has = false;
  std::vector<InstructionId> operands;
  for (const Instruction operand : OperandsOf(i)) {
    if (!operand.shape().IsArray()) return false;
    const Leaf& leaf = LeafOf(operand);
    if (!leaf.tiling->replicated_everywhere() || (leaf.owner >= 0 && leaf.owner != device)) return false;
    has = has || leaf.owner == device;
    operands.push_back(leaf.id);
  }
  if (!has) return false;
  const LeafTilings whole(Leaves(i.shape()).size(), state_.tilings.Replicated());
  Value leaves = Unpack(Clone(i, operands, i.shape()), i.shape(), whole);
  for (Leaf& leaf : leaves) leaf.owner = device;
  SetValue(i, std::move(leaves));
  return true;
}

void ComputationPartitioner::Constant(Instruction i) {
  const LeafTilings wanted = WantedTilings(i);
  if (!i.shape().IsArray()) {
    Whole(i);  // a tuple
    return;
  }
  SetValue(i, {{MakePart(i, wanted[0]), i.shape(), wanted[0], i}});
}

void ComputationPartitioner::Iota(Instruction i) {
  const LeafTilings wanted = WantedTilings(i);
  SetValue(i, {{MakePart(i, wanted[0]), i.shape(), wanted[0], i}});
}

bool ComputationPartitioner::IsFree(Instruction i) const {
  if (i.shape().has_dynamic_dims() || !i.shape().IsArray()) return false;
  if (OpcodeSet{Opcode::kConstant, Opcode::kIota}.Contains(i.opcode())) return true;
  return IsBroadcastOfScalar(i) && LeafOf(i.operand(0)).tiling->replicated_everywhere();
}

InstructionId ComputationPartitioner::MakePart(Instruction i, TilingRef to) {
  InstructionId& part = free_parts_[{i.id().value, to}];
  if (part.valid()) return part;
  if (IsUnreduced(*to)) {
    // One member of each group has the value.
    Tiling reduced = to->tiled() ? *to : Tiling();
    reduced.unreduced.clear();
    reduced.Normalize();
    const TilingRef made = state_.tilings.Intern(std::move(reduced));
    const InstructionId value = MakePart(i, made);
    return free_parts_[{i.id().value, to}] = emitter_.Reshard(value, i.shape(), made, to);
  }
  const Shape shape = LocalShape(&module_.context().shapes, i.shape(), *to);
  const MetadataScope scope(&builder(), i.metadata_id());
  if (i.opcode() == Opcode::kIota) {
    const int64_t dim = i.int_attr(Attr::kIotaDimension);
    if (to->tiled() && !to->dims[ToSize(dim)].empty()) {
      // The part begins at a multiple of its size. Integers are added, so that floats are rounded once.
      const ElementType type = IsInteger(shape.element_type()) ? shape.element_type() : ElementType::kS32;
      const Shape integers = builder().shapes().WithElementType(shape, type);
      const InstructionId tile = emitter_.TileNumber(*to, to->dims[ToSize(dim)]);
      const InstructionId offset = builder().MakeConvert(emitter_.Times(tile, shape.dim(dim)), type);
      const InstructionId id = Clone(i, {}, integers);
      part = builder().Make(Opcode::kAdd, integers, {id, builder().MakeSplat(integers, offset)});
      if (type != shape.element_type()) part = builder().Make(Opcode::kConvert, shape, {part});
    } else {
      part = Clone(i, {}, shape);
    }
  } else if (i.opcode() == Opcode::kBroadcast) {
    part = Clone(i, {LeafOf(i.operand(0)).id}, shape);
  } else if (shape != i.shape() && IsSplat(i.literal())) {
    part = builder().MakeSplat(shape, builder().MakeScalar(shape.element_type(), i.literal().data));
  } else if (shape == i.shape()) {
    part = Clone(i, {}, shape);
  } else {
    const TilingRef whole = Unsharded(to, i.shape().rank());
    const InstructionId constant = MakePart(i, whole);
    part = emitter_.Reshard(constant, i.shape(), whole, to);
    free_parts_[{i.id().value, to}] = part;
  }
  return part;
}

// The devices have random states of their own: the first one draws, so that the values are those of one program.
void ComputationPartitioner::Rng(Instruction i) {
  const LeafTilings wanted = WantedTilings(i);
  if (IsManual(wanted) || !i.shape().IsArray()) {
    Unchanged(i);
    return;
  }
  const TilingRef whole = Unsharded(wanted[0], i.shape().rank());
  std::vector<InstructionId> operands;
  for (const Instruction operand : OperandsOf(i)) operands.push_back(Reshard(LeafOf(operand), Unsharded(whole, 0)));
  InstructionId id = Clone(i, operands, i.shape());
  Tiling frame = whole->tiled() ? *whole : Tiling();
  if (!whole->tiled()) {
    frame.kind = ShardingKind::kTiled;
    frame.device_count = state_.partitions;
  }
  const AxisList others = Complement({&frame.manual}, frame.device_count).value_or(AxisList());
  if (SizeOf(others) > 1) {
    const InstructionId zero = emitter_.Constant(0);
    const InstructionId first =
        builder().MakeCompare(ComparisonDirection::kEq, emitter_.TileNumber(frame, others), zero);
    id = FromOwner(id, first, frame, others);
  }
  Finish(i, {{id, i.shape(), whole}});
}

void ComputationPartitioner::Infeed(Instruction i) {
  const LeafTilings wanted = WantedTilings(i);
  LeafTilings tilings = wanted;
  std::vector<InstructionId> operands;
  for (const Instruction operand : OperandsOf(i)) operands.push_back(LeafOf(operand).id);
  const InstructionId id = Clone(i, operands, LocalShapeOf(i.shape(), tilings));
  SetValue(i, Unpack(id, i.shape(), tilings));
}

void ComputationPartitioner::Outfeed(Instruction i) {
  const Value& value = ValueOf(i.operand(0));
  LeafTilings tilings;
  for (const Leaf& leaf : value) tilings.push_back(leaf.tiling);
  // Of the data, and perhaps the token after them.
  if (std::optional<LeafTilings> given = owner_.GivenTilings(i, i.operand(0).shape())) {
    if (given->size() == tilings.size()) tilings = *std::move(given);
  }
  std::vector<InstructionId> operands = {PackResharded(value, i.operand(0).shape(), tilings)};
  for (int64_t k = 1; k < i.operand_count(); ++k) operands.push_back(LeafOf(i.operand(k)).id);
  const InstructionId id = Clone(i, operands, i.shape());
  if (i.has(Attr::kOutfeedShape)) module_.SetAttr(id, Attr::kOutfeedShape, builder().shape_of(operands[0]).id().value);
  SetValue(i, {{id, i.shape(), state_.tilings.Replicated()}});
}

bool ComputationPartitioner::CallOnDevice(Instruction i) {
  const std::optional<int64_t> device = owner_.OnlyDevice(i);
  if (!device || *device >= state_.partitions || state_.partitions == 1 || HasDynamicShape(i)) return false;
  const bool typed = i.payload(Attr::kApiVersion) == static_cast<uint32_t>(CustomCallApiVersion::kTypedFfi);
  if (!typed && !i.bool_attr(Attr::kCustomCallHasSideEffect)) return false;
  const std::vector<Shape> leaf_shapes = Leaves(i.shape());
  if (i.shape().IsTuple() && static_cast<int64_t>(leaf_shapes.size()) != i.shape().tuple_size()) return false;
  std::vector<InstructionId> operands;
  for (const Instruction operand : OperandsOf(i)) {
    const Value& value = ValueOf(operand);
    operands.push_back(PackResharded(value, operand.shape(), LeafTilings(value.size(), state_.tilings.Replicated())));
  }
  const InstructionId arguments = builder().MakeTuple(operands);
  const Shape packed = builder().shape_of(arguments);
  ComputationId branches[2];
  for (const bool calls : {true, false}) {
    const ComputationId id = module_.AddComputation(module_.UniqueComputationName(calls ? "on_device" : "on_others"));
    Builder branch(&module_, id);
    const MetadataScope scope(&branch, i.metadata_id());
    const InstructionId parameter = branch.Make(Opcode::kParameter, packed, {}, {}, 0);
    std::vector<InstructionId> elements, tokens;
    for (size_t k = 0; k < operands.size(); ++k) {
      elements.push_back(branch.MakeElement(parameter, static_cast<int64_t>(k)));
      if (packed.element(static_cast<int64_t>(k)).IsToken()) tokens.push_back(elements.back());
    }
    if (calls) {
      const InstructionId call = branch.MakeClone(i.id(), elements);
      module_.SetShape(call, i.shape());
      module_.RemoveAttr(call, Attr::kSharding);
      module_.RemoveAttr(call, Attr::kControlPredecessors);
      branch.SetRoot(call);
    } else {
      std::vector<InstructionId> results;
      for (const Shape leaf : leaf_shapes) {
        static constexpr std::byte kZero[16] = {};
        results.push_back(leaf.IsArray() ? branch.MakeSplat(leaf, branch.MakeScalar(leaf.element_type(), kZero))
                                         : branch.Make(Opcode::kAfterAll, leaf, tokens));
      }
      branch.SetRoot(i.shape().IsTuple() ? branch.MakeTuple(results) : results[0]);
    }
    branches[calls ? 0 : 1] = id;
  }
  Tiling frame;
  frame.kind = ShardingKind::kTiled;
  frame.device_count = state_.partitions;
  const InstructionId is_device =
      builder().MakeCompare(ComparisonDirection::kEq, emitter_.Position(frame), emitter_.Constant(*device));
  const InstructionId result = builder().Make(
      Opcode::kConditional, i.shape(), {is_device, arguments, arguments},
      {Builder::Calls(Attr::kTrueComputation, branches[0]), Builder::Calls(Attr::kFalseComputation, branches[1])});
  Value leaves = Unpack(result, i.shape(), LeafTilings(leaf_shapes.size(), state_.tilings.Replicated()));
  for (Leaf& leaf : leaves) {
    if (leaf.shape.IsArray()) leaf.owner = *device;
  }
  SetValue(i, std::move(leaves));
  return true;
}

absl::Status ComputationPartitioner::CustomCall(Instruction i) {
  const std::string_view target = i.string_attr(Attr::kCustomCallTarget);
  const bool passes_operand = target == "Sharding" || target == "ShardBarrierFrom" || target == "ShardBarrierTo" ||
                              target == "xla.sdy.FuncResultSharding";
  if (passes_operand && i.operand_count() == 1 && !Compatible(i.shape(), i.operand(0).shape())) {
    return Error(i, "the custom-call returns its operand, but has another shape");
  }
  if (i.operand_count() == 1 && (target == "Sharding" || target == "ShardBarrierFrom" || target == "ShardBarrierTo")) {
    FinishCopy(i);
    return absl::OkStatus();
  }
  if (i.operand_count() == 1 && target == "xla.sdy.FuncResultSharding") {
    // Shardy's mark of a result of the entry, whose sharding is that of the root.
    if (owner_.GivenTilings(i)) {
      FinishCopy(i);
    } else {
      SetValue(i, ValueOf(i.operand(0)));
    }
    return absl::OkStatus();
  }
  if (i.operand_count() == 1 && (target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape")) {
    // The part of a device is the same on both sides.
    LeafTilings wanted = WantedTilings(i);
    Value leaves = ValueOf(i.operand(0));
    const std::vector<Shape> shapes = Leaves(i.shape());
    if (leaves.size() != shapes.size()) return Error(i, "the conversion has another number of results than operands");
    if (target == "SPMDFullToShardShape") {
      // What is manual around it stays so.
      for (size_t k = 0; k < wanted.size() && k < leaves.size(); ++k) {
        const Tiling &outer = *leaves[k].tiling, &inner = *wanted[k];
        if (!outer.tiled() || outer.manual.empty() || !inner.tiled() || outer.order != inner.order) continue;
        const auto region = [](const Tiling& t) { return sharding::ManualRegion{t.manual, t.device_count, t.order}; };
        const std::optional<sharding::ManualRegion> both = sharding::Union(region(outer), region(inner));
        if (both) wanted[k] = state_.tilings.Intern(sharding::InRegion(inner, shapes[k].rank(), *both));
      }
    }
    const auto fits = [&](size_t k) {
      const Shape have = builder().shape_of(leaves[k].id);
      return !have.IsArray() || Compatible(have, LocalShape(&module_.context().shapes, shapes[k], *wanted[k]));
    };
    for (size_t k = 0; k < leaves.size() && k < shapes.size(); ++k) {
      // A value that the manual code has whole, whatever the sharding before says.
      if (!fits(k)) leaves[k].id = Reshard(leaves[k], Unsharded(leaves[k].tiling, leaves[k].shape.rank()));
      leaves[k].shape = shapes[k];
      leaves[k].tiling = wanted[k];
      leaves[k].source = Instruction();
      if (!fits(k)) {
        return Error(i, "the part of a device has another shape on the other side of the conversion");
      }
      if (shapes[k].IsArray()) leaves[k].id = builder().MakeLike(Opcode::kCopy, {leaves[k].id});
    }
    SetValue(i, std::move(leaves));
    return absl::OkStatus();
  }
  if (MultiSlice(i) || RotateRight(i)) return absl::OkStatus();
  const RuleClass rule_class = RuleClassOf(i);
  if ((rule_class == RuleClass::kCustomCall || rule_class == RuleClass::kStated) && !RuleOf(i).known) {
    if (IsManual(WantedTilings(i))) {
      Unchanged(i);
    } else if (!CallOnDevice(i)) {
      Whole(i);
    }
    return absl::OkStatus();
  }
  return ByRule(i);
}

}  // namespace hlokit::spmd
