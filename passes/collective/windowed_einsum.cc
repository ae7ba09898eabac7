// SPDX-License-Identifier: Apache-2.0
// Windowed einsums: a dot of a gathered operand, or one whose result is scattered, in as many steps as the group has
// devices, so that each shard travels while another is multiplied. After Wang et al., "Overlap Communication with
// Dependent Computation via Decomposition in Large Deep Learning Models", ASPLOS 2023. In each step a device passes a
// shard on to the one before it in the group:
//   dot(all-gather(x), w)   step k multiplies shard place + k. Along a free dimension of x the product is a part of the
//                           result, along a contracting one it is added, and w is sliced.
//   reduce-scatter(dot)     step k multiplies the slice of the operand for shard place + k + 1 and adds the sum that it
//                           received; the last step ends with the device's own shard.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/graph/attribute_views.h"
#include "ir/graph/traversal.h"
#include "ir/sharding/collective_groups.h"
#include "passes/analysis/call_graph.h"
#include "passes/analysis/cost.h"
#include "passes/annotations/annotations.h"
#include "passes/collective/collective_key.h"
#include "passes/collective/collectives.h"
#include "passes/collective/device_values.h"
#include "passes/core/pass_row.h"
#include "passes/rewrite/dead_operands.h"
#include "passes/rewrite/pattern_rewriter.h"

namespace hlokit {
namespace {

// What becomes of a dimension of a dot operand.
struct DotDimension {
  bool contracting;
  int64_t at;  // free: the dimension of the result; contracting: that of the other operand
};

// Returns nullopt for a batch dimension.
std::optional<DotDimension> DimensionOf(Instruction dot, int64_t operand, int64_t dimension) {
  const DotDims dims = DotDims::Of(dot);
  const auto position = [](absl::Span<const int64_t> list, int64_t value) {
    return std::find(list.begin(), list.end(), value) - list.begin();
  };
  const absl::Span<const int64_t> batch = operand == 0 ? dims.lhs_batch : dims.rhs_batch;
  const absl::Span<const int64_t> own = operand == 0 ? dims.lhs_contracting : dims.rhs_contracting;
  const absl::Span<const int64_t> other = operand == 0 ? dims.rhs_contracting : dims.lhs_contracting;
  const int64_t place = position(own, dimension);
  if (place < static_cast<int64_t>(own.size())) return DotDimension{true, other[static_cast<size_t>(place)]};
  if (position(batch, dimension) < static_cast<int64_t>(batch.size())) return std::nullopt;
  int64_t at = static_cast<int64_t>(batch.size());
  if (operand == 1) {
    at = dot.operand(0).shape().rank() - static_cast<int64_t>(other.size());
  }
  for (int64_t d = 0; d < dimension; ++d) {
    const bool free = position(own, d) == static_cast<int64_t>(own.size()) &&
                      position(batch, d) == static_cast<int64_t>(batch.size());
    at += free ? 1 : 0;
  }
  return DotDimension{false, at};
}

// The groups of a collective in terms of the ids that a collective-permute of the same kind names.
struct Ring {
  Opcode id;  // replica-id or partition-id
  bool has_channel;
  int64_t ids;                               // how many there are
  std::vector<std::vector<int64_t>> groups;  // of ids
  int64_t size() const { return static_cast<int64_t>(groups[0].size()); }
};

std::optional<Ring> RingOf(Instruction collective) {
  const std::optional<DeviceGroups> known = DeviceGroupsOf(collective);
  if (!known) return std::nullopt;
  const DeviceCounts counts = known->counts;
  switch (GetCollectiveOpGroupMode(collective)) {
    case CollectiveOpGroupMode::kCrossReplica: {
      Ring ring{Opcode::kReplicaId, false, counts.replicas, {}};
      for (const std::vector<int64_t>& group : known->groups) {
        if (group[0] % counts.partitions != 0) continue;  // the same in the other partitions
        std::vector<int64_t>& ids = ring.groups.emplace_back();
        for (int64_t device : group) ids.push_back(device / counts.partitions);
      }
      return ring;
    }
    case CollectiveOpGroupMode::kFlattenedId:
      if (counts.replicas != 1) return std::nullopt;
      return Ring{Opcode::kPartitionId, true, counts.partitions, known->groups};
    case CollectiveOpGroupMode::kCrossPartition:
    case CollectiveOpGroupMode::kCrossReplicaAndPartition:
      return std::nullopt;
  }
  return std::nullopt;
}

// Adds the steps of one windowed einsum before `position`.
class Windows {
 public:
  Windows(Module* module, InstructionId position, Ring ring, int64_t* next_channel)
      : module_(*module), builder_(module, position), ring_(std::move(ring)), next_channel_(*next_channel) {
    for (const std::vector<int64_t>& group : ring_.groups) {
      for (size_t n = 0; n < group.size(); ++n) {
        const int64_t to = group[n == 0 ? group.size() - 1 : n - 1];
        pairs_.insert(pairs_.end(), {2, group[n], to});
      }
    }
  }

  Builder& builder() { return builder_; }

  // Returns size * ((place of the device + k) mod group size), an s32.
  InstructionId Start(int64_t k, int64_t size) {
    const Shape shape = builder_.shapes().Array(ElementType::kS32, {ring_.ids});
    Literal table = Literal::Zeros(shape);
    for (const std::vector<int64_t>& group : ring_.groups) {
      for (int64_t n = 0; n < ring_.size(); ++n) {
        const auto start = static_cast<int32_t>((n + k) % ring_.size() * size);
        const auto at = static_cast<size_t>(group[static_cast<size_t>(n)]);
        std::memcpy(table.data() + at * sizeof(start), &start, sizeof(start));
      }
    }
    if (!id_.valid()) id_ = builder_.Make(ring_.id, builder_.shapes().Scalar(ElementType::kU32), {});
    const InstructionId starts[] = {builder_.MakeConstant(table), id_};
    const InstructionId start = builder_.Make(Opcode::kDynamicSlice, builder_.shapes().Array(ElementType::kS32, {1}),
                                              starts, {builder_.List(Attr::kDynamicSliceSizes, {1})});
    return builder_.MakeReshape(start, builder_.shapes().Scalar(ElementType::kS32));
  }

  // Returns `array` of the next device of the group.
  InstructionId PassOn(InstructionId array) {
    std::vector<AttrValue> attrs = {builder_.List(Attr::kSourceTargetPairs, pairs_)};
    if (ring_.has_channel) attrs.push_back(builder_.Int(Attr::kChannelId, next_channel_++));
    return builder_.Make(Opcode::kCollectivePermute, builder_.shape_of(array), {array}, attrs);
  }

  InstructionId SliceAt(InstructionId array, int64_t dimension, InstructionId start, int64_t size) {
    const Shape whole = builder_.shape_of(array);
    std::vector<int64_t> sizes(whole.dims().begin(), whole.dims().end());
    sizes[static_cast<size_t>(dimension)] = size;
    std::vector<InstructionId> operands = Starts(whole.rank(), dimension, start);
    operands.insert(operands.begin(), array);
    return builder_.Make(Opcode::kDynamicSlice, builder_.shapes().Array(whole.element_type(), sizes), operands,
                         {builder_.List(Attr::kDynamicSliceSizes, sizes)});
  }

  InstructionId UpdateAt(InstructionId array, InstructionId part, int64_t dimension, InstructionId start) {
    std::vector<InstructionId> operands = Starts(builder_.shape_of(array).rank(), dimension, start);
    operands.insert(operands.begin(), {array, part});
    return builder_.Make(Opcode::kDynamicUpdateSlice, builder_.shape_of(array), operands);
  }

  // Returns the dot of other operands, of the given result.
  InstructionId Dot(Instruction dot, InstructionId lhs, InstructionId rhs, Shape shape) {
    const MetadataScope scope(&builder_, dot.metadata_id());
    std::vector<AttrValue> attrs;
    for (AttrValue attr : dot.attrs()) {
      if (!IsCommon(attr.attr) || attr.attr == Attr::kBackendConfig) attrs.push_back(attr);
    }
    return builder_.Make(Opcode::kDot, shape, {lhs, rhs}, attrs);
  }

  const Ring& ring() const { return ring_; }

 private:
  std::vector<InstructionId> Starts(int64_t rank, int64_t dimension, InstructionId start) {
    std::vector<InstructionId> starts(static_cast<size_t>(rank), start);
    for (int64_t d = 0; d < rank; ++d) {
      if (d == dimension) continue;
      if (!zero_.valid()) zero_ = builder_.MakeScalarConstant(ElementType::kS32, 0);
      starts[static_cast<size_t>(d)] = zero_;
    }
    return starts;
  }

  Module& module_;
  Builder builder_;
  const Ring ring_;
  int64_t& next_channel_;
  std::vector<int64_t> pairs_;  // 2, source, target of each pair
  InstructionId id_, zero_;
};

Shape WithSize(ShapeTable& shapes, Shape array, int64_t dimension, int64_t size) {
  std::vector<int64_t> sizes(array.dims().begin(), array.dims().end());
  sizes[static_cast<size_t>(dimension)] = size;
  return shapes.Array(array.element_type(), sizes);
}

class WindowedEinsums {
 public:
  WindowedEinsums(Module* module, const WindowedEinsumOptions& options) : module_(*module), options_(options) {
    for (Computation c : module->computations()) {
      for (Instruction i : c.instructions()) next_channel_ = std::max(next_channel_, i.int_attr(Attr::kChannelId) + 1);
    }
  }

  // Replaces the dot if one of its operands is gathered.
  bool Gather(Instruction dot) {
    for (int64_t k = 0; k < 2; ++k) {
      if (GatherOperand(dot, k)) return true;
    }
    return false;
  }

  // Replaces a reduce-scatter of a dot.
  bool Scatter(Instruction scatter) {
    const Instruction dot = scatter.operand(0);
    if (!IsPlainDot(dot) || !HasOneUse(dot) || dot.is_root()) return false;
    if (ReducerOpcode(scatter.computation_attr(Attr::kToApply)) != Opcode::kAdd) return false;
    const int64_t dimension = scatter.list_attr(Attr::kDimensions)[0];
    const std::optional<Ring> ring = SmallRing(scatter, dot.shape());
    if (!ring || scatter.shape().dim(dimension) * ring->size() != dot.shape().dim(dimension)) return false;
    for (int64_t k = 0; k < 2; ++k) {
      const Shape shape = dot.operand(k).shape();
      for (int64_t d = 0; d < shape.rank(); ++d) {
        const std::optional<DotDimension> to = DimensionOf(dot, k, d);
        if (!to || to->contracting || to->at != dimension) continue;
        ScatterOperand(scatter, dot, k, d, *ring);
        return true;
      }
    }
    return false;
  }

 private:
  bool IsPlainDot(Instruction i) const {
    return i.opcode() == Opcode::kDot && i.operand_count() == 2 && !i.has_control_edges() && !i.has(Attr::kSharding) &&
           !i.shape().has_dynamic_dims() && i.shape().element_type() != ElementType::kPred;
  }

  std::optional<Ring> SmallRing(Instruction collective, Shape moved) const {
    if (collective.operand_count() != 1 || !CollectiveKey(collective)) return std::nullopt;
    if (BufferBytes(moved) < options_.min_bytes) return std::nullopt;
    std::optional<Ring> ring = RingOf(collective);
    if (!ring || ring->size() < 2 || ring->size() > options_.max_group_size) return std::nullopt;
    return ring;
  }

  bool GatherOperand(Instruction dot, int64_t k) {
    const Instruction gather = dot.operand(k);
    if (!IsPlainDot(dot) || gather.opcode() != Opcode::kAllGather || !HasOneUse(gather)) return false;
    const int64_t dimension = gather.list_attr(Attr::kDimensions)[0];
    const std::optional<DotDimension> to = DimensionOf(dot, k, dimension);
    const std::optional<Ring> ring = SmallRing(gather, gather.shape());
    if (!to || !ring) return false;
    const int64_t size = gather.operand(0).shape().dim(dimension);
    if (size * ring->size() != gather.shape().dim(dimension)) return false;

    Windows windows(&module_, dot.id(), *ring, &next_channel_);
    Builder& builder = windows.builder();
    builder.SetMetadata(dot.metadata_id());
    InstructionId shard = gather.operand(0).id();
    const InstructionId other = dot.operand(1 - k).id();
    const Shape part = to->contracting ? dot.shape() : WithSize(builder.shapes(), dot.shape(), to->at, size);
    InstructionId result;
    if (!to->contracting) {
      result = builder.MakeSplat(dot.shape(), builder.MakeScalarConstant(dot.shape().element_type(), 0));
    }
    for (int64_t step = 0; step < ring->size(); ++step) {
      if (step > 0) {
        const MetadataScope scope(&builder, gather.metadata_id());
        shard = windows.PassOn(shard);
      }
      const InstructionId start = windows.Start(step, size);
      InstructionId operands[] = {shard, shard};
      operands[1 - k] = to->contracting ? windows.SliceAt(other, to->at, start, size) : other;
      const InstructionId product = windows.Dot(dot, operands[0], operands[1], part);
      if (!to->contracting) {
        result = windows.UpdateAt(result, product, to->at, start);
      } else {
        result = step == 0 ? product : builder.MakeLike(Opcode::kAdd, {result, product});
      }
    }
    Replace(module_, dot.id(), result);
    EraseDead(module_, gather.id(), shard);
    return true;
  }

  void ScatterOperand(Instruction scatter, Instruction dot, int64_t k, int64_t dimension, const Ring& ring) {
    Windows windows(&module_, scatter.id(), ring, &next_channel_);
    Builder& builder = windows.builder();
    builder.SetMetadata(scatter.metadata_id());
    const InstructionId whole = dot.operand(k).id(), other = dot.operand(1 - k).id();
    const int64_t size = dot.operand(k).shape().dim(dimension) / ring.size();
    // An addition does what the reducer did.
    const MetadataId reducer = scatter.computation_attr(Attr::kToApply).root().metadata_id();
    const MetadataId added = module_.context().metadata.Merge(reducer, scatter.metadata_id());
    InstructionId sum, product;
    for (int64_t step = 0; step < ring.size(); ++step) {
      const InstructionId slice = windows.SliceAt(whole, dimension, windows.Start(step + 1, size), size);
      InstructionId operands[] = {slice, slice};
      operands[1 - k] = other;
      product = windows.Dot(dot, operands[0], operands[1], scatter.shape());
      if (step == 0) {
        sum = product;
        continue;
      }
      const InstructionId received = windows.PassOn(sum);
      const MetadataScope scope(&builder, added);
      sum = builder.MakeLike(Opcode::kAdd, {received, product});
    }
    MergeMetadataOfComputations(module_, scatter.called_computations(), sum);
    const InstructionId unused = dot.id();
    Replace(module_, scatter.id(), sum);
    EraseDead(module_, unused, product);
  }

  Module& module_;
  const WindowedEinsumOptions options_;
  int64_t next_channel_ = 1;
};

}  // namespace

absl::StatusOr<WindowedEinsumCounts> MakeWindowedEinsums(Module& module, const WindowedEinsumOptions& options) {
  WindowedEinsumCounts counts;
  if (module.header().is_scheduled || !module.entry().valid()) return counts;
  const CallGraph calls(module);
  const ComputationRoles roles = RolesOf(module);
  WindowedEinsums einsums(&module, options);
  for (Computation c : module.computations()) {
    if (!calls.IsSequential(c) || roles.async[c.id().value] != 0) continue;
    for (InstructionId id : PostOrder(c)) {
      const Instruction i = module.instruction(id);
      if (!i.record().parent.valid()) continue;
      if (i.opcode() == Opcode::kDot) {
        counts.gathered += einsums.Gather(i) ? 1 : 0;
      } else if (i.opcode() == Opcode::kReduceScatter && i.operand_count() == 1) {
        counts.scattered += einsums.Scatter(i) ? 1 : 0;
      }
    }
  }
  return counts;
}

namespace {

class WindowedEinsumHandler : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const absl::StatusOr<WindowedEinsumCounts> counts =
        MakeWindowedEinsums(module, {options().Int("min-bytes"), options().Int("max-group-size")});
    if (!counts.ok()) return counts.status();
    if (counts->gathered > 0) Count("dots of gathered operands divided", counts->gathered);
    if (counts->scattered > 0) Count("dots with scattered results divided", counts->scattered);
    return counts->gathered + counts->scattered > 0;
  }
};

}  // namespace

HLOKIT_PASS(WindowedEinsumHandler) {
  return {.name = "windowed-einsum-handler",
          .category = "collective",
          .summary = "divide dots of gathered operands and with scattered results into steps",
          .doc =
              "A dot of an all-gather, or a reduce-scatter of a dot, becomes one dot for each device of the "
              "group, and collective-permutes that pass shards on meanwhile. XLA's partitioner makes loops "
              "of this form, which its pass prepares for several streams; here the steps are made, unrolled.",
          .example = R"(HloModule rows, num_partitions=2

ENTRY main {
  x = f32[4,8] parameter(0)
  w = f32[8,3] parameter(1)
  all = f32[8,8] all-gather(x), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true
  ROOT y = f32[8,3] dot(all, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})",
          .options = {{.name = "min-bytes",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "0",
                       .doc = "minimum bytes of the gathered operand or of the result before it is scattered"},
                      {.name = "max-group-size",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "16",
                       .doc = "maximum number of devices of a group, which is the number of steps",
                       .min = 2}},
          .preconditions = kNoSchedule,
          .tolerance = 1e-5,
          .create = MakePass<WindowedEinsumHandler>};
}

}  // namespace hlokit
