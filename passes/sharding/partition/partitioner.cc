// SPDX-License-Identifier: Apache-2.0
// Idea: the program of one device is written beside the whole one, computation by computation, operands first; the old
// computations are erased at the end. An operation is computed on the parts that its handler asks for (reshard_plan.h),
// along the factors of its sharding rule where it has one, and otherwise whole on every device.
// Invariant: of each leaf of a value that is written, `id` is this device's part by `tiling`. Elements beyond the whole
// shape are padding that may hold anything: who would read them masks them first.
// Cost: linear in the instructions that are written. A callee is written once for each combination of tilings of its
// parameters and root with which it is called.
#include "passes/sharding/partition/partitioner.h"

#include <algorithm>
#include <utility>

#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/instruction_queries.h"
#include "ir/graph/traversal.h"
#include "ir/ops/opcode_set.h"
#include "ir/ops/opcode_table.h"
#include "ir/sharding/tile_assignment.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "ir/text/frontend_attributes.h"
#include "ir/types/fold_shape.h"
#include "passes/annotations/annotations.h"
#include "passes/rewrite/reducer.h"

namespace hlokit::spmd {
namespace {

constexpr OpcodeRow<PartitionHandler> kHandlerRows[] = {
#define OPCODE_PARTITION_HANDLER(name, handler) {Opcode::k##name, PartitionHandler::k##handler},
#include "passes/sharding/partition/opcode_partition_handlers.def"
};
constexpr auto kHandlers = MakeOpcodeTable<PartitionHandler>(
    kHandlerRows,
    {.elementwise = PartitionHandler::kByRule, .other = PartitionHandler::kWhole, .unknown = PartitionHandler::kWhole});

}  // namespace

std::optional<Opcode> BinaryOpcodeOf(Computation computation) {
  const Instruction root = CombinationOf(computation);
  if (!root.valid() || computation.instruction_count() != 3 || !HasTrait(root.opcode(), kElementwise)) {
    return std::nullopt;
  }
  return root.opcode();
}

absl::Status ComputationPartitioner::Error(Instruction i, std::string_view text) const {
  return absl::InvalidArgumentError(StrCat(i.name(), ": ", text));
}

absl::Status ComputationPartitioner::Run() {
  const Computation source = module_.computation(job_.source);
  std::vector<InstructionId> order = PostOrder(source);
  // Parameters first, by number, whether used or not.
  std::vector<InstructionId> parameters;
  for (int64_t p = 0; p < source.parameter_count(); ++p) parameters.push_back(Parameter(source.parameter(p)));
  module_.SetParameters(job_.target, std::move(parameters));
  for (InstructionId id : order) {
    const Instruction i = module_.instruction(id);
    const MetadataId previous = builder().SetMetadata(i.metadata_id());
    const auto first = static_cast<uint32_t>(module_.instruction_id_bound());
    const PartitionHandler handler = kHandlers[static_cast<size_t>(i.opcode())];
    // What one device has goes to all where another needs it.
    const bool passes = handler == PartitionHandler::kTuple || handler == PartitionHandler::kGetTupleElement;
    const bool done = handler == PartitionHandler::kByRule && OnOwner(i);
    if (!done && (!passes || i.has(Attr::kSharding))) {
      const int64_t owner = passes ? OwnerOf(i) : -1;
      for (const Instruction operand : OperandsOf(i)) Share(operand, owner);
    }
    if (absl::Status status = done ? absl::OkStatus() : Dispatch(i); !status.ok()) return status;
    builder().SetMetadata(previous);
    NoteGathers(i);
    RemarkCollectives(i, first);
    // What stands for it without being made for it has its metadata too.
    const auto value = values_.find(id.value);
    if (value == values_.end() || value->second.empty()) continue;
    if (const InstructionId part = value->second[0].id; part.valid()) MergeMetadata(module_, id, part);
  }
  const auto first = static_cast<uint32_t>(module_.instruction_id_bound());
  // The root, of which one device may have parts.
  const Instruction root = source.root();
  Value value = ValueOf(root);
  for (size_t k = 0; k < value.size(); ++k) {
    if (value[k].owner < 0 || (source.is_entry() && owner_.OnlyDevice(root, k) == value[k].owner)) continue;
    value[k].id = Shared(value[k]);
    value[k].owner = -1;
  }
  InstructionId id;
  if (root.shape().IsTuple()) {
    std::vector<InstructionId> leaves;
    for (size_t k = 0; k < value.size(); ++k) leaves.push_back(Reshard(value[k], job_.root[k]));
    id = Pack(root.shape(), leaves);
  } else {
    id = Reshard(value[0], job_.root[0]);
  }
  NoteGathers(root);
  RemarkCollectives(root, first);
  if (source.is_entry()) {
    // The layout of the whole result; a name and a sharding of its own.
    const Shape wanted = LocalShapeOf(root.shape(), job_.root);
    if (wanted.IsArray()) id = builder().MakeCopy(id, wanted);
    if (module_.instruction(id).opcode() == Opcode::kParameter) {
      id = builder().Make(Opcode::kCopy, builder().shape_of(id), {id});
    }
    if (const std::optional<uint32_t> sharding = root.payload(Attr::kSharding)) {
      module_.SetAttr(id, Attr::kSharding, *sharding);
    }
    owner_.TakeName(id, root);
  }
  module_.SetRoot(job_.target, id);
  return absl::OkStatus();
}

absl::Status ComputationPartitioner::Dispatch(Instruction i) {
  switch (kHandlers[static_cast<size_t>(i.opcode())]) {
    case PartitionHandler::kByRule:
      return ByRule(i);
    case PartitionHandler::kWhole:
      Whole(i);
      break;
    case PartitionHandler::kUnchanged:
      Unchanged(i);
      break;
    case PartitionHandler::kForwarding:
      SetValue(i, ValueOf(i.operand(0)));
      break;
    case PartitionHandler::kCopy:
      // A copy may convert.
      if (i.shape().IsArray() && i.shape().element_type() != i.operand(0).shape().element_type()) return ByRule(i);
      FinishCopy(i);
      break;
    case PartitionHandler::kBarrier:
      Barrier(i);
      break;
    case PartitionHandler::kCall:
      Call(i);
      break;
    case PartitionHandler::kConditional:
      Conditional(i);
      break;
    case PartitionHandler::kConstant:
      Constant(i);
      break;
    case PartitionHandler::kCustomCall:
      return CustomCall(i);
    case PartitionHandler::kGetTupleElement:
      GetTupleElement(i);
      break;
    case PartitionHandler::kInfeed:
      Infeed(i);
      break;
    case PartitionHandler::kIota:
      Iota(i);
      break;
    case PartitionHandler::kOutfeed:
      Outfeed(i);
      break;
    case PartitionHandler::kParameter:
      break;  // made already
    case PartitionHandler::kRng:
      Rng(i);
      break;
    case PartitionHandler::kTuple:
      Tuple(i);
      break;
    case PartitionHandler::kWhile:
      While(i);
      break;
  }
  return absl::OkStatus();
}

LeafTilings ComputationPartitioner::WantedTilings(Instruction i) {
  if (std::optional<LeafTilings> given = owner_.GivenTilings(i)) {
    // Within code for one device the text may leave out what is manual. Values that go in and out say it themselves.
    const std::string_view target = CustomCallTargetOf(i);
    const bool passes = HasTrait(i.opcode(), kControlFlow) || i.opcode() == Opcode::kGetTupleElement ||
                        target == "SPMDFullToShardShape" || target == "SPMDShardToFullShape";
    if (i.shape().IsArray() && !passes) (*given)[0] = Completed((*given)[0], ManualContext(i), i.shape().rank());
    return *std::move(given);
  }
  // Code for one device begets such code.
  const TilingRef context = ManualContext(i);
  LeafTilings tilings;
  if (CommunicatesWithinParts(i)) return {LeafOf(i.operand(0)).tiling};
  for (Shape leaf : Leaves(i.shape())) tilings.push_back(Unsharded(context, leaf.rank()));
  return tilings;
}

TilingRef ComputationPartitioner::ManualContext(Instruction i) {
  TilingRef context = state_.tilings.Replicated();
  for (const Instruction operand : OperandsOf(i)) {
    for (const Leaf& leaf : ValueOf(operand)) {
      if (leaf.tiling->kind == ShardingKind::kManual) context = leaf.tiling;
      if (leaf.tiling->tiled() && !leaf.tiling->manual.empty() && !context->tiled() &&
          context->kind != ShardingKind::kManual) {
        context = leaf.tiling;
      }
    }
  }
  return context;
}

bool ComputationPartitioner::CommunicatesWithinParts(Instruction i) const {
  static constexpr OpcodeSet kElementwiseCollectives = {Opcode::kAllReduce, Opcode::kCollectivePermute,
                                                        Opcode::kCollectiveBroadcast, Opcode::kCollectiveReduce};
  const bool elementwise = kElementwiseCollectives.Contains(i.opcode());
  if (!elementwise || i.operand_count() != 1 || !i.shape().IsArray()) return false;
  const TilingRef tiling = LeafOf(i.operand(0)).tiling;
  if (!tiling->tiled() || tiling->manual.empty() || tiling->tiles() == 1 || !tiling->unreduced.empty()) return false;
  if (!CheckManualGroups(i, {tiling}).ok()) return false;
  const absl::Span<const int64_t> pairs = i.list_attr(Attr::kSourceTargetPairs);  // of each pair its length first
  std::map<int64_t, int64_t> positions;
  for (int64_t p = 0; p < tiling->device_count && !pairs.empty(); ++p) positions[tiling->DeviceAt(p)] = p;
  for (size_t k = 0; k + 2 < pairs.size(); k += 3) {
    const auto from = positions.find(pairs[k + 1]), to = positions.find(pairs[k + 2]);
    if (from == positions.end() || to == positions.end()) return false;
    for (const AxisList& dim : tiling->dims) {
      if (hlokit::TileNumber(dim, from->second) != hlokit::TileNumber(dim, to->second)) return false;
    }
  }
  return true;
}

TilingRef ComputationPartitioner::Completed(TilingRef given, TilingRef context, int64_t rank) {
  if (given->kind == ShardingKind::kManual || !given->manual.empty()) return given;
  if (context->kind == ShardingKind::kManual) return context;
  if (!context->tiled() || context->manual.empty()) return given;
  if (given->replicated_everywhere()) return Unsharded(context, rank);
  if (!given->tiled() || given->order != context->order || given->device_count != context->device_count) return given;
  std::vector<const AxisList*> lists = {&context->manual, &given->unreduced};
  for (const AxisList& dim : given->dims) lists.push_back(&dim);
  if (!Complement(lists, given->device_count)) return given;
  Tiling tiling = *given;
  tiling.manual = context->manual;
  tiling.Normalize();
  return state_.tilings.Intern(std::move(tiling));
}

TilingRef ComputationPartitioner::Unsharded(TilingRef context, int64_t rank) {
  if (context->kind == ShardingKind::kManual) return context;
  if (!context->tiled() || context->manual.empty()) return state_.tilings.Replicated();
  Tiling tiling = *context;
  tiling.unreduced.clear();
  tiling.dims.assign(ToSize(rank), {});
  return state_.tilings.Intern(std::move(tiling));
}

bool ComputationPartitioner::IsManual(const LeafTilings& tilings) const {
  return std::any_of(tilings.begin(), tilings.end(), [](TilingRef t) { return t->kind == ShardingKind::kManual; });
}

bool ComputationPartitioner::HasDynamicShape(Instruction i) const {
  if (i.shape().has_dynamic_dims()) return true;
  for (const Instruction operand : OperandsOf(i)) {
    if (operand.shape().has_dynamic_dims()) return true;
  }
  return false;
}

void ComputationPartitioner::Finish(Instruction i, Value leaves) {
  const LeafTilings wanted = WantedTilings(i);
  for (size_t k = 0; k < leaves.size() && k < wanted.size(); ++k) {
    if (leaves[k].tiling == wanted[k]) continue;
    leaves[k].id = Reshard(leaves[k], wanted[k]);
    leaves[k].tiling = wanted[k];
  }
  SetValue(i, std::move(leaves));
}

void ComputationPartitioner::FinishCopy(Instruction i) {
  Value leaves = ValueOf(i.operand(0));
  const LeafTilings wanted = WantedTilings(i);
  for (size_t k = 0; k < leaves.size(); ++k) {
    Leaf& leaf = leaves[k];
    const InstructionId part = Reshard(leaf, wanted[k]);
    // A copy stands for it where nothing else has its name and its metadata, or its layout.
    const bool same = part == leaf.id;
    leaf.id = part;
    if (i.shape().IsArray()) {
      const Shape shape = LocalShape(&module_.context().shapes, i.shape(), *wanted[k]);
      if (same || builder().shape_of(part) != shape) leaf.id = builder().Make(Opcode::kCopy, shape, {part});
    } else if (same && leaf.shape.IsArray()) {
      leaf.id = builder().MakeLike(Opcode::kCopy, {part});
    }
    if (leaves.size() == 1) owner_.TakeName(leaf.id, i);
    leaf.tiling = wanted[k];
    leaf.source = Instruction();
  }
  SetValue(i, std::move(leaves));
}

InstructionId ComputationPartitioner::Clone(Instruction i, absl::Span<const InstructionId> operands, Shape shape) {
  const InstructionId id = builder().MakeClone(i.id(), operands);
  module_.SetShape(id, shape);
  module_.RemoveAttr(id, Attr::kSharding);
  module_.RemoveAttr(id, Attr::kControlPredecessors);
  if (i.has(Attr::kFrontendAttributes)) {
    // Shardings as Shardy writes them are of the whole.
    ListId rest = AttrReader(i).list_id(Attr::kFrontendAttributes);
    for (const std::string_view key : {"xla.sdy.sharding", "xla.sdy.sharding_rule"}) {
      rest = WithoutFrontendAttribute(&module_.context(), rest, key);
    }
    if (module_.context().list(rest).empty()) {
      module_.RemoveAttr(id, Attr::kFrontendAttributes);
    } else {
      module_.SetAttr(id, Attr::kFrontendAttributes, rest.value);
    }
  }
  owner_.TakeName(id, i);
  return id;
}

Value ComputationPartitioner::Unpack(InstructionId value, Shape whole, const LeafTilings& tilings) {
  const std::vector<Shape> shapes = Leaves(whole);
  Value leaves;
  std::vector<InstructionId> stack = {value};
  while (!stack.empty()) {
    const InstructionId id = stack.back();
    stack.pop_back();
    const Shape shape = builder().shape_of(id);
    if (!shape.IsTuple()) {
      const size_t k = leaves.size();
      leaves.push_back({id, shapes[k], tilings[k]});
      continue;
    }
    for (int64_t e = shape.tuple_size(); e-- > 0;) stack.push_back(builder().MakeElement(id, e));
  }
  return leaves;
}

InstructionId ComputationPartitioner::Pack(Shape whole, absl::Span<const InstructionId> leaves) {
  size_t next = 0;
  return FoldShape(
      whole, [&](Shape) { return leaves[next++]; },
      [&](const std::vector<InstructionId>& elements) { return builder().MakeTuple(elements); });
}

Shape ComputationPartitioner::LocalShapeOf(Shape whole, const LeafTilings& tilings) {
  ShapeTable& shapes = module_.context().shapes;
  size_t next = 0;
  return FoldShape(
      whole, [&](Shape leaf) { return LocalShape(&shapes, leaf, *tilings[next++]); },
      [&](const std::vector<Shape>& elements) { return shapes.Tuple(elements); });
}

InstructionId ComputationPartitioner::PackResharded(const Value& value, Shape whole, const LeafTilings& tilings) {
  std::vector<InstructionId> leaves;
  for (size_t k = 0; k < value.size(); ++k) leaves.push_back(Reshard(value[k], tilings[k]));
  return Pack(whole, leaves);
}

void ComputationPartitioner::NoteGathers(Instruction i) {
  if (owner_.options().diagnostics == nullptr) state_.full_gathers.clear();
  for (const ModuleState::FullGather& gather : state_.full_gathers) {
    owner_.warnings().AddFullGather(i, OperandWithPart(i, gather.part), gather.whole, *gather.from, *gather.to);
  }
  state_.full_gathers.clear();
}

Instruction ComputationPartitioner::OperandWithPart(Instruction i, InstructionId part) {
  for (const Instruction operand : OperandsOf(i)) {
    const auto value = values_.find(operand.id().value);
    if (value == values_.end()) continue;
    for (const Leaf& leaf : value->second) {
      if (leaf.id == part) return operand;
    }
  }
  return Instruction();
}

void ComputationPartitioner::RemarkCollectives(Instruction i, uint32_t first) {
  if (!state_.records_reshards) return;
  const auto end = static_cast<uint32_t>(module_.instruction_id_bound());
  for (const ReshardRecord& record : state_.reshards) {
    owner_.remarks().AddReshard(i, OperandWithPart(i, record.part), record);
  }
  constexpr size_t kMaxOperands = 4;
  std::vector<std::pair<Instruction, Tiling>> operands;
  for (const Instruction operand : OperandsOf(i)) {
    const auto value = values_.find(operand.id().value);
    if (value == values_.end() || value->second.size() != 1 || operands.size() == kMaxOperands) continue;
    operands.emplace_back(operand, *value->second[0].tiling);
  }
  owner_.remarks().AddOthers(i, first, end, state_.reshards, operands);
  state_.reshards.clear();
}

void ComputationPartitioner::Whole(Instruction i) {
  const LeafTilings wanted = WantedTilings(i);
  const TilingRef context = wanted.empty() ? state_.tilings.Replicated() : wanted[0];
  for (const Instruction operand : OperandsOf(i)) {
    if (owner_.options().diagnostics == nullptr && !owner_.remarks().enabled()) break;
    for (const Leaf& leaf : ValueOf(operand)) {
      if (leaf.source.valid() || !leaf.shape.IsArray() || leaf.tiling->tiles() == 1) continue;
      if (owner_.options().diagnostics != nullptr) {
        owner_.warnings().AddUndivided(i, operand, leaf.shape, *leaf.tiling);
      }
      owner_.remarks().AddComputedWhole(i, operand, *leaf.tiling);
    }
  }
  std::vector<InstructionId> operands;
  for (const Instruction operand : OperandsOf(i)) {
    const Value& value = ValueOf(operand);
    LeafTilings whole;
    for (const Leaf& leaf : value) whole.push_back(Unsharded(context, leaf.shape.rank()));
    operands.push_back(PackResharded(value, operand.shape(), whole));
    // What a bitcast returns depends on the layout.
    if (i.opcode() == Opcode::kBitcast) operands.back() = builder().MakeCopy(operands.back(), operand.shape());
  }
  const InstructionId id = Clone(i, operands, i.shape());
  LeafTilings whole;
  for (Shape leaf : Leaves(i.shape())) whole.push_back(Unsharded(context, leaf.rank()));
  Finish(i, Unpack(id, i.shape(), whole));
}

void ComputationPartitioner::Unchanged(Instruction i) {
  const LeafTilings wanted = WantedTilings(i);
  const bool manual = IsManual(wanted);
  const TilingRef context = wanted.empty() ? state_.tilings.Replicated() : wanted[0];
  std::vector<InstructionId> operands;
  for (const Instruction operand : OperandsOf(i)) {
    if (const auto found = in_progress_.find(operand.id().value); found != in_progress_.end()) {
      operands.push_back(found->second);
      continue;
    }
    const Value& value = ValueOf(operand);
    LeafTilings tilings;
    for (const Leaf& leaf : value) tilings.push_back(manual ? leaf.tiling : Unsharded(context, leaf.shape.rank()));
    operands.push_back(PackResharded(value, operand.shape(), tilings));
  }
  const InstructionId id = Clone(i, operands, i.shape());
  LeafTilings tilings;
  const std::vector<Shape> shapes = Leaves(i.shape());
  for (size_t k = 0; k < shapes.size(); ++k) {
    tilings.push_back(manual ? wanted[k] : Unsharded(context, shapes[k].rank()));
  }
  if (HasTrait(i.opcode(), kStartsAsync) || HasTrait(i.opcode(), kUpdatesAsync)) {
    in_progress_[i.id().value] = id;
    Value leaves;
    for (size_t k = 0; k < shapes.size(); ++k) leaves.push_back({id, shapes[k], tilings[k]});
    SetValue(i, std::move(leaves));
    return;
  }
  Finish(i, Unpack(id, i.shape(), tilings));
}

}  // namespace hlokit::spmd
