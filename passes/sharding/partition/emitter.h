// SPDX-License-Identifier: Apache-2.0
// Emits the instructions of one partitioned computation: where this device's part begins, padding and masks,
// collectives over device axes, and reshards. Scalars that depend on the device are made once for a computation.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_EMITTER_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_EMITTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "ir/builder/builder.h"
#include "ir/graph/module.h"
#include "passes/sharding/partition/partition_remarks.h"
#include "passes/sharding/partition/reshard_plan.h"
#include "passes/sharding/partition/tiling_store.h"

namespace hlokit::spmd {

// What the computations of a module share.
struct ModuleState {
  explicit ModuleState(Module* module) : module(*module) {}

  Module& module;
  TilingStore tilings;
  int64_t partitions = 1;
  int64_t replicas = 1;
  int64_t next_channel = 1;
  absl::flat_hash_map<std::tuple<uint32_t, TilingRef, TilingRef>, ReshardPlan> plans;  // by shape
  // Reshards of the current instruction that gather an array whole although source and target divide it.
  struct FullGather {
    InstructionId part;
    Shape whole;
    TilingRef from, to;
  };
  std::vector<FullGather> full_gathers;
  bool records_reshards = false;
  std::vector<ReshardRecord> reshards;  // of the current instruction, for remarks
  std::map<std::pair<Opcode, ElementType>, ComputationId> reducers;

  const ReshardPlan& PlanFor(Shape whole, TilingRef from, TilingRef to);
  // A computation that applies a binary operation to two scalars.
  ComputationId Reducer(Opcode opcode, ElementType type);
};

class Emitter {
 public:
  Emitter(ModuleState* state, ComputationId computation)
      : state_(*state), builder_(&state->module, computation), computation_(computation) {}

  Builder& builder() { return builder_; }
  ModuleState& state() { return state_; }
  ComputationId computation() const { return computation_; }

  // ---- scalars, s32[] unless stated otherwise ----
  InstructionId Constant(int64_t value);
  // Returns a zero (or another number) of any type.
  InstructionId Scalar(ElementType type, double value);
  // Returns the position of this device in the order of `frame`.
  InstructionId Position(const Tiling& frame);
  // Returns the number of this device's tile along `axes`, in the order of `frame`.
  InstructionId TileNumber(const Tiling& frame, const AxisList& axes);
  // Returns the number times a constant.
  InstructionId Times(InstructionId number, int64_t factor);
  InstructionId Plus(InstructionId a, InstructionId b);
  InstructionId Divide(InstructionId number, int64_t divisor);

  // ---- parts of arrays ----
  InstructionId SliceTo(InstructionId array, absl::Span<const int64_t> sizes);
  InstructionId Slice(InstructionId array, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits);
  // Pads at the end, with zeros.
  InstructionId PadTo(InstructionId array, absl::Span<const int64_t> sizes);
  InstructionId Pad(InstructionId array, InstructionId value, absl::Span<const int64_t> low,
                    absl::Span<const int64_t> high);
  InstructionId DynamicSlice(InstructionId array, absl::Span<const InstructionId> starts,
                             absl::Span<const int64_t> sizes);
  InstructionId Reshape(InstructionId array, absl::Span<const int64_t> sizes);
  InstructionId Transpose(InstructionId array, absl::Span<const int64_t> dims);
  InstructionId Concatenate(absl::Span<const InstructionId> arrays, int64_t dim);
  InstructionId Splat(Shape shape, InstructionId scalar);
  // Returns the iota along `dim`, s32, of these sizes.
  InstructionId Iota(absl::Span<const int64_t> sizes, int64_t dim);
  InstructionId Select(InstructionId mask, InstructionId on_true, InstructionId on_false);
  // Returns the part of this device with what is behind the end of the whole array in `dims` replaced by the scalar
  // `value`. Returns the part itself where the sizes divide.
  InstructionId MaskPadding(InstructionId part, Shape whole, const Tiling& tiling, absl::Span<const int64_t> dims,
                            InstructionId value);

  // ---- collectives over `axes` in the order of `frame`: devices that differ only there are a group ----
  InstructionId AllReduce(InstructionId array, const Tiling& frame, const AxisList& axes, ComputationId reducer);
  InstructionId ReduceScatter(InstructionId array, const Tiling& frame, const AxisList& axes, int64_t dim,
                              ComputationId reducer);
  InstructionId AllGather(InstructionId array, const Tiling& frame, const AxisList& axes, int64_t dim);
  // Exchanges the parts of dimension `dim`, whose size is a multiple of the group's.
  InstructionId AllToAll(InstructionId array, const Tiling& frame, const AxisList& axes, int64_t dim);
  // `pairs`: source, target, …
  InstructionId Permute(InstructionId array, absl::Span<const std::pair<int64_t, int64_t>> pairs);
  // Returns the array of the device whose tile along `axes` is source[tile]; -1: of none.
  InstructionId FromTiles(InstructionId array, const Tiling& frame, const AxisList& axes,
                          const std::vector<int64_t>& source);
  // Returns the elements begin … end-1 along `dim` of the part of tile source[tile], -1: of none. Devices that want
  // none get anything: what one exchange has for others serves them too.
  InstructionId SliceFromTiles(InstructionId part, int64_t dim, int64_t begin, int64_t end, const Tiling& frame,
                               const AxisList& axes, const std::vector<int64_t>& source);

  // ---- resharding (reshard.cc) ----
  // Returns the part of `whole` under `to`, of an array whose part under `from` is `part`.
  InstructionId Reshard(InstructionId part, Shape whole, TilingRef from, TilingRef to);
  // Notes that the part was cut from `source`, which is the same array under `tiling`: what the part would have to be
  // completed for is taken from there.
  void SetOrigin(InstructionId part, Shape whole, InstructionId source, TilingRef tiling) {
    origins_[part.value] = {whole, source, tiling};
  }
  // Returns the array that the part was cut from if it is whole on each device; invalid otherwise.
  InstructionId WholeOrigin(InstructionId part) const {
    const auto found = origins_.find(part.value);
    const bool whole = found != origins_.end() && found->second.tiling->replicated_everywhere();
    return whole ? found->second.source : InstructionId();
  }
  // Combines results that are partial over the axes `partial`, of an array whose part has `dims`, and reshards: by
  // reduce-scatters where `to` takes the axes.
  InstructionId CombineAndReshard(InstructionId part, Shape whole, const Tiling& frame, std::vector<AxisList> dims,
                                  const AxisList& partial, const std::function<ComputationId()>& reducer, TilingRef to,
                                  std::optional<ReductionOp> combines);

 private:
  // The devices that send and get, for FromTiles.
  static std::vector<std::pair<int64_t, int64_t>> PairsOf(const Tiling& frame, const AxisList& axes,
                                                          const std::vector<int64_t>& source);
  Shape Sized(InstructionId array, absl::Span<const int64_t> sizes);
  InstructionId Binary(Opcode opcode, InstructionId a, InstructionId b);
  // The groups as an attribute; with the ids of devices of all replicas if `global`.
  AttrValue Groups(const Tiling& frame, const AxisList& axes, bool global);
  std::vector<AttrValue> CollectiveAttrs(const Tiling& frame, const AxisList& axes);
  AttrValue Channel();

  InstructionId EmitSlice(InstructionId part, Shape whole, const Tiling& before, const ReshardStep& step);
  InstructionId EmitGather(InstructionId part, Shape whole, const ReshardStep& step);
  InstructionId EmitAllToAll(InstructionId part, Shape whole, const ReshardStep& step);
  InstructionId EmitPermute(InstructionId part, const Tiling& before, const ReshardStep& step);
  InstructionId ReduceUnreduced(InstructionId part, Shape whole, TilingRef* tiling);
  // Returns an array of identities of a reduction.
  InstructionId Nones(Shape shape, ReductionOp reduction);
  // Makes a value that all devices along `axes` have an unreduced one.
  InstructionId MakeUnreduced(InstructionId part, const Tiling& to, const AxisList& axes);
  // Reduces an unreduced value along the axes of which `to` is not unreduced, and updates its tiling. Returns false if
  // `to` is unreduced otherwise.
  bool ReduceDifference(InstructionId* value, Shape whole, TilingRef* from, const Tiling& to);
  // Places a part that is tiled along axes of which `to` is unreduced among identities; nullopt if it is not so tiled.
  std::optional<InstructionId> PlaceUnreduced(InstructionId part, Shape whole, const Tiling& from, const Tiling& to);

  // Returns the part under `to` from what `part` was cut from, if that needs less; invalid otherwise.
  InstructionId FromOrigin(InstructionId part, Shape whole, TilingRef from, TilingRef to);

  struct Origin {
    Shape whole;
    InstructionId source;
    TilingRef tiling = nullptr;
  };

  ModuleState& state_;
  Builder builder_;
  ComputationId computation_;
  absl::flat_hash_map<int64_t, InstructionId> constants_;
  std::map<std::pair<ElementType, double>, InstructionId> scalars_;
  std::map<std::vector<int64_t>, InstructionId> positions_;                               // by order
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, InstructionId> tiles_;  // by order and axes
  std::map<std::pair<uint32_t, int64_t>, InstructionId> products_;
  std::map<std::tuple<std::vector<int64_t>, int64_t, int64_t, uint32_t>, InstructionId> masks_;
  std::map<std::tuple<uint32_t, TilingRef, TilingRef>, InstructionId> reshards_;
  absl::flat_hash_map<uint32_t, Origin> origins_;  // by part
  absl::flat_hash_set<uint32_t> bypassed_;         // parts in whose place their origin was taken
  // By part, dimension, first and last element: permutes and their pairs.
  std::map<std::tuple<uint32_t, int64_t, int64_t, int64_t>,
           std::vector<std::pair<InstructionId, std::vector<std::pair<int64_t, int64_t>>>>>
      exchanges_;
};

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_EMITTER_H_
