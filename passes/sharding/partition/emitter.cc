// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/emitter.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/replica_groups.h"
#include "ir/sharding/tile_assignment.h"

namespace hlokit::spmd {

const ReshardPlan& ModuleState::PlanFor(Shape whole, TilingRef from, TilingRef to) {
  const auto key = std::make_tuple(whole.WithoutLayout().id().value, from, to);
  const auto found = plans.find(key);
  if (found != plans.end()) return found->second;
  return plans.emplace(key, PlanReshard(whole.dims(), BytesOf(whole.element_type()), *from, *to)).first->second;
}

ComputationId ModuleState::Reducer(Opcode opcode, ElementType type) {
  ComputationId& reducer = reducers[{opcode, type}];
  if (!reducer.valid()) {
    Builder builder(&module, ComputationId());
    reducer = builder.MakeReducer(opcode, type);
  }
  return reducer;
}

InstructionId Emitter::Constant(int64_t value) {
  InstructionId& constant = constants_[value];
  if (!constant.valid()) constant = builder_.MakeScalarConstant(ElementType::kS32, static_cast<double>(value));
  return constant;
}

InstructionId Emitter::Scalar(ElementType type, double value) {
  InstructionId& scalar = scalars_[{type, value}];
  if (!scalar.valid()) scalar = builder_.MakeScalarConstant(type, value);
  return scalar;
}

InstructionId Emitter::Binary(Opcode opcode, InstructionId a, InstructionId b) {
  return builder_.Make(opcode, builder_.shape_of(a), {a, b});
}

InstructionId Emitter::Position(const Tiling& frame) {
  InstructionId& position = positions_[frame.order];
  if (position.valid()) return position;
  const Shape scalar = builder_.shapes().Scalar(ElementType::kS32);
  if (frame.order.empty()) {
    const InstructionId id = builder_.Make(Opcode::kPartitionId, builder_.shapes().Scalar(ElementType::kU32), {});
    position = builder_.MakeConvert(id, ElementType::kS32);
    return position;
  }
  // The position of each device, from a table.
  const int64_t devices = std::max(state_.partitions, frame.device_count);
  Literal table = Literal::Zeros(builder_.shapes().Array(ElementType::kS32, {devices}));
  for (size_t i = 0; i < frame.order.size(); ++i) {
    if (frame.order[i] < devices) table.values<int32_t>()[ToSize(frame.order[i])] = static_cast<int32_t>(i);
  }
  const InstructionId device = Position(Tiling());
  const InstructionId constant = builder_.MakeConstant(table);
  const InstructionId starts[] = {device};
  const InstructionId element = DynamicSlice(constant, starts, {1});
  position = builder_.MakeReshape(element, scalar);
  positions_[frame.order] = position;
  return position;
}

InstructionId Emitter::Times(InstructionId number, int64_t factor) {
  if (factor == 1) return number;
  InstructionId& product = products_[{number.value, factor}];
  if (!product.valid()) {
    const InstructionId constant = Constant(factor);
    product = Binary(Opcode::kMultiply, number, constant);
  }
  return product;
}

InstructionId Emitter::Plus(InstructionId a, InstructionId b) { return Binary(Opcode::kAdd, a, b); }

InstructionId Emitter::Divide(InstructionId number, int64_t divisor) {
  return Binary(Opcode::kDivide, number, Constant(divisor));
}

InstructionId Emitter::TileNumber(const Tiling& frame, const AxisList& axes) {
  if (axes.empty()) return Constant(0);
  std::vector<int64_t> key;
  for (const DeviceAxis& axis : axes) key.insert(key.end(), {axis.stride, axis.size});
  const auto found = tiles_.find({frame.order, key});
  if (found != tiles_.end()) return found->second;
  const InstructionId position = Position(frame);
  InstructionId sum;
  int64_t weight = SizeOf(axes);
  for (const DeviceAxis& axis : axes) {
    weight /= axis.size;
    InstructionId digit = position;
    if (axis.stride != 1) digit = Binary(Opcode::kDivide, digit, Constant(axis.stride));
    const int64_t devices = frame.order.empty() ? state_.partitions : frame.device_count;
    if (axis.end() != devices) digit = Binary(Opcode::kRemainder, digit, Constant(axis.size));
    digit = Times(digit, weight);
    sum = sum.valid() ? Plus(sum, digit) : digit;
  }
  tiles_[{frame.order, key}] = sum;
  return sum;
}

Shape Emitter::Sized(InstructionId array, absl::Span<const int64_t> sizes) {
  return builder_.shapes().Array(builder_.shape_of(array).element_type(), sizes);
}

InstructionId Emitter::Slice(InstructionId array, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits) {
  const Shape shape = builder_.shape_of(array);
  std::vector<int64_t> ranges, sizes;
  bool all = true;
  for (size_t d = 0; d < starts.size(); ++d) {
    all = all && starts[d] == 0 && limits[d] == shape.dim(static_cast<int64_t>(d));
    ranges.insert(ranges.end(), {starts[d], limits[d], 1});
    sizes.push_back(limits[d] - starts[d]);
  }
  if (all) return array;
  return builder_.Make(Opcode::kSlice, Sized(array, sizes), {array}, {builder_.List(Attr::kSlice, ranges)});
}

InstructionId Emitter::SliceTo(InstructionId array, absl::Span<const int64_t> sizes) {
  return Slice(array, std::vector<int64_t>(sizes.size(), 0), sizes);
}

InstructionId Emitter::Pad(InstructionId array, InstructionId value, absl::Span<const int64_t> low,
                           absl::Span<const int64_t> high) {
  const Shape shape = builder_.shape_of(array);
  std::vector<int64_t> padding, sizes;
  bool none = true;
  for (size_t d = 0; d < low.size(); ++d) {
    none = none && low[d] == 0 && high[d] == 0;
    padding.insert(padding.end(), {low[d], high[d], 0});
    sizes.push_back(shape.dim(static_cast<int64_t>(d)) + low[d] + high[d]);
  }
  if (none) return array;
  return builder_.Make(Opcode::kPad, Sized(array, sizes), {array, value}, {builder_.List(Attr::kPadding, padding)});
}

InstructionId Emitter::PadTo(InstructionId array, absl::Span<const int64_t> sizes) {
  const Shape shape = builder_.shape_of(array);
  std::vector<int64_t> low(sizes.size(), 0), high;
  for (size_t d = 0; d < sizes.size(); ++d) high.push_back(sizes[d] - shape.dim(static_cast<int64_t>(d)));
  if (std::all_of(high.begin(), high.end(), [](int64_t h) { return h == 0; })) return array;
  return Pad(array, Scalar(shape.element_type(), 0), low, high);
}

InstructionId Emitter::DynamicSlice(InstructionId array, absl::Span<const InstructionId> starts,
                                    absl::Span<const int64_t> sizes) {
  std::vector<InstructionId> operands = {array};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return builder_.Make(Opcode::kDynamicSlice, Sized(array, sizes), operands,
                       {builder_.List(Attr::kDynamicSliceSizes, sizes)});
}

InstructionId Emitter::Reshape(InstructionId array, absl::Span<const int64_t> sizes) {
  const absl::Span<const int64_t> dims = builder_.shape_of(array).dims();
  if (std::equal(dims.begin(), dims.end(), sizes.begin(), sizes.end())) return array;
  return builder_.Make(Opcode::kReshape, Sized(array, sizes), {array});
}

InstructionId Emitter::Transpose(InstructionId array, absl::Span<const int64_t> dims) {
  const Shape shape = builder_.shape_of(array);
  std::vector<int64_t> sizes;
  for (int64_t d : dims) sizes.push_back(shape.dim(d));
  if (std::is_sorted(dims.begin(), dims.end())) return array;
  return builder_.Make(Opcode::kTranspose, Sized(array, sizes), {array}, {builder_.List(Attr::kDimensions, dims)});
}

InstructionId Emitter::Concatenate(absl::Span<const InstructionId> arrays, int64_t dim) {
  if (arrays.size() == 1) return arrays[0];
  const absl::Span<const int64_t> first = builder_.shape_of(arrays[0]).dims();
  std::vector<int64_t> sizes(first.begin(), first.end());
  sizes[ToSize(dim)] = 0;
  for (InstructionId array : arrays) sizes[ToSize(dim)] += builder_.shape_of(array).dim(dim);
  return builder_.Make(Opcode::kConcatenate, Sized(arrays[0], sizes), arrays,
                       {builder_.List(Attr::kDimensions, {dim})});
}

InstructionId Emitter::Splat(Shape shape, InstructionId scalar) {
  return builder_.MakeSplat(builder_.shapes().Array(builder_.shape_of(scalar).element_type(), shape.dims()), scalar);
}

InstructionId Emitter::Iota(absl::Span<const int64_t> sizes, int64_t dim) {
  return builder_.Make(Opcode::kIota, builder_.shapes().Array(ElementType::kS32, sizes), {},
                       {builder_.Int(Attr::kIotaDimension, dim)});
}

InstructionId Emitter::Select(InstructionId mask, InstructionId on_true, InstructionId on_false) {
  return builder_.Make(Opcode::kSelect, builder_.shape_of(on_true), {mask, on_true, on_false});
}

InstructionId Emitter::MaskPadding(InstructionId part, Shape whole, const Tiling& tiling,
                                   absl::Span<const int64_t> dims, InstructionId value) {
  if (!tiling.tiled()) return part;
  const Shape shape = builder_.shape_of(part);
  InstructionId mask;
  for (int64_t d : dims) {
    const AxisList& axes = tiling.dims[ToSize(d)];
    const int64_t local = shape.dim(d);
    if (axes.empty() || local * SizeOf(axes) == whole.dim(d)) continue;
    const InstructionId tile = TileNumber(tiling, axes);
    std::vector<int64_t> sizes(shape.dims().begin(), shape.dims().end());
    InstructionId& known = masks_[{sizes, d, whole.dim(d), tile.value}];
    if (!known.valid()) {
      // Index within the part against what is left behind its start.
      const InstructionId start = Times(tile, local);
      const InstructionId left = Splat(shape, Binary(Opcode::kSubtract, Constant(whole.dim(d)), start));
      known = builder_.MakeCompare(ComparisonDirection::kLt, Iota(sizes, d), left);
    }
    mask = mask.valid() ? Binary(Opcode::kAnd, mask, known) : known;
  }
  if (!mask.valid()) return part;
  return Select(mask, part, Splat(shape, value));
}

// ---- collectives ----

AttrValue Emitter::Groups(const Tiling& frame, const AxisList& axes, bool global) {
  // Other axes number the groups, these the devices of a group.
  AxisList all = Complement({&axes}, frame.device_count).value_or(AxisList());
  const bool replicas = global && state_.replicas > 1;
  if (replicas) all.insert(all.begin(), {state_.partitions, state_.replicas});
  const int64_t size = SizeOf(axes);
  const int64_t groups = SizeOf(all);
  all.insert(all.end(), axes.begin(), axes.end());
  std::vector<size_t> by_stride(all.size());
  for (size_t i = 0; i < all.size(); ++i) by_stride[i] = i;
  std::sort(by_stride.begin(), by_stride.end(), [&](size_t a, size_t b) { return all[a].stride > all[b].stride; });
  IotaTileAssignment iota;
  iota.perm.resize(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    iota.reshape.push_back(all[by_stride[i]].size);
    iota.perm[by_stride[i]] = static_cast<int64_t>(i);
  }
  ReplicaGroups result;
  result.kind = ReplicaGroups::Kind::kIota;
  result.tiles = TileAssignment::Iota({groups, size}, std::move(iota));
  if (!frame.order.empty() || groups * size <= 8) {
    // Few devices are easier to read as a list.
    result.kind = ReplicaGroups::Kind::kList;
    for (int64_t g = 0; g < groups; ++g) {
      std::vector<int64_t>& group = result.groups.emplace_back();
      for (int64_t i = 0; i < size; ++i) {
        const int64_t position = result.tiles.At(g * size + i);
        const int64_t replica = replicas ? position / state_.partitions : 0;
        group.push_back(replica * state_.partitions + frame.DeviceAt(position - replica * state_.partitions));
      }
    }
    result.tiles = TileAssignment();
  }
  return {Attr::kReplicaGroups, EncodeReplicaGroups(&builder_.context(), result).value};
}

AttrValue Emitter::Channel() { return builder_.Int(Attr::kChannelId, state_.next_channel++); }

std::vector<AttrValue> Emitter::CollectiveAttrs(const Tiling& frame, const AxisList& axes) {
  return {Channel(), Groups(frame, axes, true), Builder::Bool(Attr::kUseGlobalDeviceIds, true)};
}

InstructionId Emitter::AllReduce(InstructionId array, const Tiling& frame, const AxisList& axes,
                                 ComputationId reducer) {
  if (axes.empty()) return array;
  std::vector<AttrValue> attrs = CollectiveAttrs(frame, axes);
  attrs.push_back(Builder::Calls(Attr::kToApply, reducer));
  return builder_.Make(Opcode::kAllReduce, builder_.shape_of(array), {array}, attrs);
}

InstructionId Emitter::ReduceScatter(InstructionId array, const Tiling& frame, const AxisList& axes, int64_t dim,
                                     ComputationId reducer) {
  std::vector<AttrValue> attrs = CollectiveAttrs(frame, axes);
  attrs.push_back(Builder::Calls(Attr::kToApply, reducer));
  attrs.push_back(builder_.List(Attr::kDimensions, {dim}));
  const absl::Span<const int64_t> dims = builder_.shape_of(array).dims();
  std::vector<int64_t> sizes(dims.begin(), dims.end());
  sizes[ToSize(dim)] /= SizeOf(axes);
  return builder_.Make(Opcode::kReduceScatter, Sized(array, sizes), {array}, attrs);
}

InstructionId Emitter::AllGather(InstructionId array, const Tiling& frame, const AxisList& axes, int64_t dim) {
  std::vector<AttrValue> attrs = CollectiveAttrs(frame, axes);
  attrs.push_back(builder_.List(Attr::kDimensions, {dim}));
  const absl::Span<const int64_t> dims = builder_.shape_of(array).dims();
  std::vector<int64_t> sizes(dims.begin(), dims.end());
  sizes[ToSize(dim)] *= SizeOf(axes);
  return builder_.Make(Opcode::kAllGather, Sized(array, sizes), {array}, attrs);
}

InstructionId Emitter::AllToAll(InstructionId array, const Tiling& frame, const AxisList& axes, int64_t dim) {
  return builder_.Make(Opcode::kAllToAll, builder_.shape_of(array), {array},
                       {Channel(), Groups(frame, axes, false), builder_.List(Attr::kDimensions, {dim})});
}

InstructionId Emitter::Permute(InstructionId array, absl::Span<const std::pair<int64_t, int64_t>> pairs) {
  std::vector<int64_t> list;
  for (const auto& [source, target] : pairs) list.insert(list.end(), {2, source, target});
  return builder_.Make(Opcode::kCollectivePermute, builder_.shape_of(array), {array},
                       {Channel(), builder_.List(Attr::kSourceTargetPairs, list)});
}

std::vector<std::pair<int64_t, int64_t>> Emitter::PairsOf(const Tiling& frame, const AxisList& axes,
                                                          const std::vector<int64_t>& source) {
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t position = 0; position < frame.device_count; ++position) {
    const int64_t other = source[ToSize(hlokit::TileNumber(axes, position))];
    if (other < 0) continue;
    pairs.emplace_back(frame.DeviceAt(PositionWithTile(axes, position, other)), frame.DeviceAt(position));
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

InstructionId Emitter::FromTiles(InstructionId array, const Tiling& frame, const AxisList& axes,
                                 const std::vector<int64_t>& source) {
  const std::vector<std::pair<int64_t, int64_t>> pairs = PairsOf(frame, axes, source);
  if (pairs.empty()) return Splat(builder_.shape_of(array), Scalar(builder_.shape_of(array).element_type(), 0));
  return Permute(array, pairs);
}

InstructionId Emitter::SliceFromTiles(InstructionId part, int64_t dim, int64_t begin, int64_t end, const Tiling& frame,
                                      const AxisList& axes, const std::vector<int64_t>& source) {
  std::vector<std::pair<int64_t, int64_t>> pairs = PairsOf(frame, axes, source);
  std::vector<std::pair<InstructionId, std::vector<std::pair<int64_t, int64_t>>>>& made =
      exchanges_[{part.value, dim, begin, end}];
  for (auto& [id, known] : made) {
    // One exchange serves both, unless a device would send to two, or get from two.
    std::vector<std::pair<int64_t, int64_t>> both = known;
    both.insert(both.end(), pairs.begin(), pairs.end());
    std::sort(both.begin(), both.end());
    both.erase(std::unique(both.begin(), both.end()), both.end());
    absl::flat_hash_set<int64_t> sources, targets;
    const bool fits = std::all_of(both.begin(), both.end(), [&](const auto& pair) {
      return sources.insert(pair.first).second && targets.insert(pair.second).second;
    });
    if (!fits) continue;
    std::vector<int64_t> list;
    for (const auto& [from, to] : both) list.insert(list.end(), {2, from, to});
    state_.module.SetAttr(id, Attr::kSourceTargetPairs, state_.module.ListPayload(list));
    known = std::move(both);
    return id;
  }
  std::vector<int64_t> limits = ToVector(builder_.shape_of(part).dims()), starts(limits.size(), 0);
  starts[ToSize(dim)] = begin;
  limits[ToSize(dim)] = end;
  const InstructionId slice = Slice(part, starts, limits);
  const InstructionId id = Permute(slice, pairs);
  made.emplace_back(id, std::move(pairs));
  return id;
}

}  // namespace hlokit::spmd
