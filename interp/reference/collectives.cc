// SPDX-License-Identifier: Apache-2.0
// Collectives over the devices of a complete group: members, and the results of each.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "interp/reference/ops.h"
#include "ir/core/str_cat.h"
#include "ir/sharding/collective_groups.h"

namespace hlokit::reference {
namespace {

int64_t MemberCount(const Group& group) { return static_cast<int64_t>(group.devices.size()); }

// Allocates an array of zeros of each shape as the results of each device. Returns false after an error.
bool AllocateResults(Group& group, const std::vector<Shape>& shapes) {
  for (size_t m = 0; m < group.devices.size(); ++m) {
    group.results.emplace_back();
    for (Shape shape : shapes) {
      group.results[m].push_back(group.run.Allocate(shape));
      if (group.results[m].back() == nullptr) return false;
    }
  }
  return true;
}

// Returns the shapes that the group computes: for a start, its value after the operands.
std::vector<Shape> ComputedShapes(const Group& group) {
  std::vector<Shape> shapes = LeafShapes(group.instruction.shape());
  const bool starts = HasTrait(group.instruction.opcode(), kStartsAsync);
  if (starts)
    shapes.erase(shapes.begin(),
                 shapes.begin() + static_cast<int64_t>(std::min(group.operands[0].size(), shapes.size())));
  return shapes;
}

// Reports an error and returns false unless the group has `size` members.
bool HasSize(Group& group, int64_t size) {
  if (size == MemberCount(group)) return true;
  group.run.Fail(StrCat("the shapes are those of groups of ", size, " devices; in this run, of ",
                        group.run.options.num_replicas, " x ", group.run.options.num_partitions,
                        " devices (replicas x partitions), a group has ", group.devices.size()));
  return false;
}

// ChunkElement returns the position of element i of chunk `chunk` in an array divided into `chunks` along a dimension.
// ChunkOf is its inverse: the chunk of element i of the whole, and the position in it.
int64_t ChunkElement(const Array& whole, int64_t dim, int64_t chunks, int64_t chunk, int64_t i) {
  const int64_t inner = ElementCount(whole.dims().subspan(static_cast<size_t>(dim))), part = inner / chunks;
  return i / part * inner + chunk * part + i % part;
}
std::pair<int64_t, int64_t> ChunkOf(const Array& whole, int64_t dim, int64_t chunks, int64_t i) {
  const int64_t inner = ElementCount(whole.dims().subspan(static_cast<size_t>(dim))), part = inner / chunks;
  return {i % inner / part, i / inner * part + i % part};
}

// An element of an operand of a member; member -1: zero.
struct Source {
  int64_t member, operand, element;
};

// Fills results of these shapes with operand elements: element i of result k of member m is source(m, k, i).
template <typename SourceOf>
void Exchange(Group& group, const std::vector<Shape>& shapes, SourceOf source_of) {
  if (!AllocateResults(group, shapes)) return;
  for (int64_t m = 0; m < MemberCount(group); ++m) {
    for (size_t k = 0; k < shapes.size(); ++k) {
      Array& out = *group.results[static_cast<size_t>(m)][k];
      for (int64_t i = 0; i < out.count() && group.run.Tick(); ++i) {
        const Source from = source_of(m, static_cast<int64_t>(k), i);
        if (from.member < 0) break;
        const Leaf& operand = group.operands[static_cast<size_t>(from.member)][static_cast<size_t>(from.operand)];
        out.CopyElement(i, *operand, from.element);
      }
    }
  }
}

// Returns f(f(x0, x1), x2), ... of operand k over the members in order, in the type of the function; null after an
// error.
Leaf Combined(Group& group, size_t k) {
  Run& run = group.run;
  const Computation function = group.instruction.computation_attr(Attr::kToApply);
  if (function.parameter_count() != 2 || k >= group.operands[0].size()) {
    run.Fail("the function or the result of the collective does not fit its operands");
  }
  if (run.failed()) return nullptr;
  const ElementType type = function.parameter(0).shape().element_type();
  const Leaf first = Converted(run, group.operands[0][k], type);
  const std::shared_ptr<Array> total = first == nullptr ? nullptr : run.Allocate(first->shape());
  if (total == nullptr) return nullptr;
  total->CopyBytes(*first);
  for (size_t m = 1; m < group.devices.size(); ++m) {
    const Leaf next = Converted(run, group.operands[m][k], type);
    for (int64_t i = 0; next != nullptr && i < total->count() && run.Tick(); ++i) {
      const std::optional<SlotValue> sum = run.Apply(function, {run.ElementOf(*total, i), run.ElementOf(*next, i)});
      if (sum) total->CopyElement(i, *(*sum)[0], 0);
    }
  }
  return run.failed() ? nullptr : total;
}

// Returns true for collectives whose groups need not contain all devices: the others get zeros.
bool MayOmitDevices(Opcode opcode) {
  return opcode == Opcode::kCollectiveBroadcast || opcode == Opcode::kCollectiveReduce;
}

// Returns true if the group is one of those of the text, false if it is a device that they omit.
bool IsInText(const Group& group) {
  const auto groups = GetParticipatingDevicesGroups(group.instruction, group.run.options.num_replicas,
                                                    group.run.options.num_partitions);
  return groups.ok() &&
         std::any_of(groups->begin(), groups->end(), [&](const auto& g) { return Contains(g, group.devices[0]); });
}

// Returns true if the result is an array for each operand, but for their roots that follow them.
bool HasResultForEachOperand(const Group& group, size_t results) {
  if (!group.instruction.bool_attr(Attr::kHasDynamicRoot)) return group.operands[0].size() == results;
  return group.operands[0].size() == results + 1 &&
         group.operands[0].back()->count() == static_cast<int64_t>(results) &&
         IsInteger(group.operands[0].back()->shape().element_type());
}

// Returns the position in the group of the root of operand k of `count`: the first member or, with a dynamic root, the
// one that the last operand of this member says. nullopt after an error.
std::optional<int64_t> RootOf(Group& group, size_t member, size_t k, size_t count) {
  if (!group.instruction.bool_attr(Attr::kHasDynamicRoot)) return 0;
  const int64_t root = group.operands[member][count]->Integer(static_cast<int64_t>(k));
  if (root >= 0 && root < MemberCount(group)) return root;
  group.run.Fail(StrCat("the root of operand ", k, " is ", root, "; the group has ", MemberCount(group), " devices"));
  return std::nullopt;
}

// Returns source-target pairs as positions in the group; nullopt after an error.
std::optional<std::vector<std::pair<size_t, size_t>>> PairsOf(Group& group) {
  std::vector<std::pair<size_t, size_t>> pairs;
  const Dims list = group.instruction.list_attr(Attr::kSourceTargetPairs);
  for (size_t n = 0; n + 2 < list.size(); n += 3) {
    for (int64_t id : {list[n + 1], list[n + 2]}) {
      if (id >= 0 && id < MemberCount(group)) continue;
      const bool replicas = GetCollectiveOpGroupMode(group.instruction) == CollectiveOpGroupMode::kCrossReplica;
      group.run.Fail(StrCat("source_target_pairs name ", replicas ? "replica " : "partition ", id, ", but there are ",
                            group.run.options.num_replicas, " x ", group.run.options.num_partitions,
                            " devices (replicas x partitions)"));
      return std::nullopt;
    }
    pairs.emplace_back(list[n + 1], list[n + 2]);
  }
  return pairs;
}

// Runs collective-permute with slice_sizes: operands are an input, an output and offsets into each. Each pair moves
// slices of the source's inputs into the target's outputs: all of them, or the next one if the source is in several
// pairs.
void PermuteSlices(Group& group, const std::vector<std::pair<size_t, size_t>>& pairs) {
  const Instruction at = group.instruction;
  std::vector<size_t> begins = {0};  // of the leaves of each operand
  for (Instruction operand : at.operands()) begins.push_back(begins.back() + LeafShapes(operand.shape()).size());
  std::vector<std::vector<int64_t>> sizes;
  const Dims list = at.list_attr(Attr::kPermuteSliceSizes);
  for (size_t i = 0; i < list.size();) {
    const size_t n = std::min(static_cast<size_t>(std::max<int64_t>(list[i], 0)), list.size() - i - 1);
    sizes.emplace_back(list.begin() + static_cast<int64_t>(i) + 1, list.begin() + static_cast<int64_t>(i + 1 + n));
    i += n + 1;
  }
  const size_t buffers = begins[1];
  if (at.operand_count() != 4 || buffers == 0 || begins[2] != 2 * buffers || sizes.size() % buffers != 0 ||
      begins[4] - begins[3] != begins[3] - begins[2]) {
    return group.run.Fail("buffers, offsets and slice_sizes do not fit each other");
  }
  std::vector<Shape> outputs;
  for (size_t k = 0; k < buffers; ++k) outputs.push_back(group.operands[0][buffers + k]->shape());
  if (!AllocateResults(group, outputs)) return;
  for (size_t m = 0; m < group.devices.size(); ++m) {
    for (size_t k = 0; k < buffers; ++k) group.results[m][k]->CopyBytes(*group.operands[m][buffers + k]);
  }
  const size_t each = sizes.size() / buffers;
  std::vector<size_t> sent(group.devices.size(), 0);  // pairs of each source so far
  for (const auto& [source, target] : pairs) {
    const auto same_source = [source = source](const auto& pair) { return pair.first == source; };
    const bool several = std::count_if(pairs.begin(), pairs.end(), same_source) > 1;
    const size_t number = sent[source]++;
    size_t offset = 0;  // of the slice's offsets among those of all slices
    for (size_t s = 0; s < sizes.size(); offset += sizes[s].size(), ++s) {
      if (several && s % each != number) continue;
      const Array& input = *group.operands[source][s / each];
      Array& output = *group.results[target][s / each];
      bool inside = input.dims().size() == sizes[s].size() && output.dims().size() == sizes[s].size() &&
                    begins[2] + offset + sizes[s].size() <= begins[3];
      Index from, to;
      for (size_t d = 0; inside && d < sizes[s].size(); ++d) {
        from.push_back(IndexAt(*group.operands[source][begins[2] + offset + d], 0));
        to.push_back(IndexAt(*group.operands[target][begins[3] + offset + d], 0));
        inside = sizes[s][d] >= 0 && from[d] >= 0 && from[d] <= input.dims()[d] - sizes[s][d] && to[d] >= 0 &&
                 to[d] <= output.dims()[d] - sizes[s][d];
      }
      if (!inside) {
        return group.run.Fail(StrCat("the slice that ", group.run.DeviceName(group.devices[source]), " sends to ",
                                     group.run.DeviceName(group.devices[target]), " does not lie inside the buffers"));
      }
      if (std::find(sizes[s].begin(), sizes[s].end(), 0) != sizes[s].end()) continue;
      Index index(sizes[s].size(), 0);
      do {
        Index source_index = index, target_index = index;
        for (size_t d = 0; d < index.size(); ++d) source_index[d] += from[d], target_index[d] += to[d];
        output.CopyElement(PositionOf(target_index, output.dims()), input, PositionOf(source_index, input.dims()));
      } while (group.run.Tick() && NextIndex(sizes[s], &index));
    }
  }
}

bool IsPermute(Opcode opcode) { return SynchronousOpcode(opcode) == Opcode::kCollectivePermute; }

}  // namespace

absl::StatusOr<std::vector<int64_t>> GroupOf(Run& run, Instruction collective, int64_t device) {
  const int64_t replicas = run.options.num_replicas, partitions = run.options.num_partitions;
  if (HasTrait(collective.opcode(), kTransfers)) return std::vector<int64_t>{device};
  absl::StatusOr<std::vector<std::vector<int64_t>>> groups =
      IsPermute(collective.opcode()) ? DeviceRows(GetCollectiveOpGroupMode(collective), replicas, partitions)
                                     : GetParticipatingDevicesGroups(collective, replicas, partitions);
  if (!groups.ok()) return groups.status();
  std::vector<int64_t> found;
  std::vector<bool> seen(static_cast<size_t>(replicas * partitions), false);
  for (const std::vector<int64_t>& group : *groups) {
    for (int64_t d : group) {
      if (seen[static_cast<size_t>(d)]) {
        return absl::InvalidArgumentError("a device is in two replica groups, or twice in one");
      }
      seen[static_cast<size_t>(d)] = true;
      if (d == device) found = group;
    }
  }
  const bool may_omit = MayOmitDevices(collective.opcode());
  if (found.empty() && may_omit) return std::vector<int64_t>{device};
  const auto absent = std::find(seen.begin(), seen.end(), false);
  if (absent != seen.end() && !may_omit) {
    return absl::InvalidArgumentError(StrCat(run.DeviceName(absent - seen.begin()),
                                             " is in none of the replica groups; the run has ", replicas, " x ",
                                             partitions, " devices"));
  }
  return found;
}

SlotValue CollectiveValue(Run& run, Instruction collective, const SlotValue& operands, const SlotValue& results) {
  const Opcode opcode = collective.opcode();
  if (opcode != Opcode::kAllGatherStart && opcode != Opcode::kCollectivePermuteStart) return results;
  // Operands (with slices the inputs), results, and backend-specific elements.
  const std::vector<Shape> shapes = LeafShapes(collective.shape());
  const bool slices = collective.has(Attr::kPermuteSliceSizes);
  SlotValue value(operands.begin(), slices ? operands.begin() + static_cast<int64_t>(results.size()) : operands.end());
  value.insert(value.end(), results.begin(), results.end());
  if (value.size() > shapes.size()) run.Fail("the result of the start does not fit its operands");
  for (size_t i = value.size(); i < shapes.size() && !run.failed(); ++i) value.push_back(run.Allocate(shapes[i]));
  return value;
}

namespace ops {

// `all-gather`, `all-gather-start`
void AllGather(Group& group) {
  const Dims dims = group.instruction.list_attr(Attr::kDimensions);
  const std::vector<Shape> shapes = ComputedShapes(group);
  if (dims.size() != 1 || shapes.size() != group.operands[0].size()) {
    return group.run.Fail("the dimension does not fit the operands");
  }
  for (size_t k = 0; k < shapes.size(); ++k) {
    const int64_t part = group.operands[0][k]->dim(dims[0]);
    if (part != 0 && !HasSize(group, shapes[k].dim(dims[0]) / part)) return;
  }
  Exchange(group, shapes, [&](int64_t m, int64_t k, int64_t i) {
    const Array& whole = *group.results[static_cast<size_t>(m)][static_cast<size_t>(k)];
    const auto [member, element] = ChunkOf(whole, dims[0], MemberCount(group), i);
    return Source{member, k, element};
  });
}

// `all-reduce`, `all-reduce-start`
void AllReduce(Group& group) {
  if (!AllocateResults(group, LeafShapes(group.instruction.shape()))) return;
  for (size_t k = 0; k < group.results[0].size(); ++k) {
    const Leaf total = Combined(group, k);
    if (total == nullptr) return;
    for (auto& results : group.results) ConvertElements(group.run, *total, results[k].get());
  }
}

// `reduce-scatter`
void ReduceScatter(Group& group) {
  const Dims dims = group.instruction.list_attr(Attr::kDimensions);
  if (dims.size() != 1) return group.run.Fail("the dimension does not fit the operands");
  if (!AllocateResults(group, LeafShapes(group.instruction.shape()))) return;
  for (size_t k = 0; k < group.results[0].size(); ++k) {
    const Shape chunk = group.results[0][k]->shape();
    const Leaf total = Combined(group, k);
    if (total == nullptr) return;
    if (chunk.dim(dims[0]) != 0 && !HasSize(group, total->dim(dims[0]) / chunk.dim(dims[0]))) return;
    const Leaf converted = Converted(group.run, total, chunk.element_type());
    for (int64_t m = 0; converted != nullptr && m < MemberCount(group); ++m) {
      Array& out = *group.results[static_cast<size_t>(m)][k];
      for (int64_t i = 0; i < out.count() && group.run.Tick(); ++i) {
        out.CopyElement(i, *converted, ChunkElement(*converted, dims[0], MemberCount(group), m, i));
      }
    }
  }
}

// `all-to-all`: chunks of the only operand along a dimension, or whole operands without a dimension.
void AllToAll(Group& group) {
  const bool tuple = !group.instruction.has(Attr::kDimensions);
  const Dims dims = group.instruction.list_attr(Attr::kDimensions);
  const int64_t n = MemberCount(group);
  if (tuple && !HasSize(group, static_cast<int64_t>(group.operands[0].size()))) return;
  if (!tuple && (dims.size() != 1 || group.operands[0].empty() || group.operands[0][0]->dim(dims[0]) % n != 0)) {
    return group.run.Fail(StrCat("groups of ", n, " devices do not divide the dimension"));
  }
  Exchange(group, LeafShapes(group.instruction.shape()), [&](int64_t m, int64_t k, int64_t i) {
    if (tuple) return Source{k, m, i};
    const auto [member, element] = ChunkOf(*group.results[static_cast<size_t>(m)][0], dims[0], n, i);
    return Source{member, 0, ChunkElement(*group.operands[0][0], dims[0], n, m, element)};
  });
}

// `collective-broadcast`: from the first member or, with a dynamic root, from the members that the last operand names.
// Devices outside of all groups get zeros.
void CollectiveBroadcast(Group& group) {
  const std::vector<Shape> shapes = LeafShapes(group.instruction.shape());
  if (!HasResultForEachOperand(group, shapes.size())) return group.run.Fail("the result does not fit the operands");
  std::vector<int64_t> roots(shapes.size(), -1);
  const bool present = IsInText(group);
  for (size_t k = 0; present && k < roots.size(); ++k) {
    const std::optional<int64_t> root = RootOf(group, 0, k, roots.size());
    if (!root) return;
    roots[k] = *root;
  }
  Exchange(group, shapes, [&](int64_t, int64_t k, int64_t i) { return Source{roots[static_cast<size_t>(k)], k, i}; });
}

// `collective-reduce`: an all-reduce whose result only the root keeps, the first member or, with a dynamic root, the
// one that the last operand names. Other members and devices outside of all groups get zeros.
void CollectiveReduce(Group& group) {
  const std::vector<Shape> shapes = LeafShapes(group.instruction.shape());
  if (!HasResultForEachOperand(group, shapes.size())) return group.run.Fail("the result does not fit the operands");
  if (!AllocateResults(group, shapes) || !IsInText(group)) return;
  for (size_t k = 0; k < shapes.size(); ++k) {
    const Leaf total = Combined(group, k);
    if (total == nullptr) return;
    for (size_t m = 0; m < group.devices.size(); ++m) {
      const std::optional<int64_t> root = RootOf(group, m, k, shapes.size());
      if (!root) return;
      if (*root == static_cast<int64_t>(m)) ConvertElements(group.run, *total, group.results[m][k].get());
    }
  }
}

// `collective-permute`, `collective-permute-start`
void CollectivePermute(Group& group) {
  const auto pairs = PairsOf(group);
  if (!pairs) return;
  if (group.instruction.has(Attr::kPermuteSliceSizes)) return PermuteSlices(group, *pairs);
  std::vector<Shape> shapes;
  for (const Leaf& leaf : group.operands[0]) shapes.push_back(leaf->shape());
  std::vector<int64_t> source_of(group.devices.size(), -1);
  for (const auto& [source, target] : *pairs) source_of[target] = static_cast<int64_t>(source);
  Exchange(group, shapes, [&](int64_t m, int64_t k, int64_t i) {
    return Source{source_of[static_cast<size_t>(m)], k, i};
  });
}

// `ragged-all-to-all`: input, output, input offsets, send sizes, output offsets, receive sizes; rows are slices of
// dimension 0. A device has the same number of offsets and sizes for each member.
void RaggedAllToAll(Group& group) {
  const SlotValue& first = group.operands[0];
  const int64_t n = MemberCount(group);
  if (first.size() != 6 || first[0]->rank() < 1 || first[1]->rank() != first[0]->rank() ||
      first[1]->type() != first[0]->type() || !IsInteger(first[2]->type())) {
    return group.run.Fail("the operands do not fit each other");
  }
  if (first[2]->count() % n != 0) {
    return group.run.Fail(StrCat(first[2]->count(), " offsets cannot be divided among the ", n, " devices of a group"));
  }
  if (!AllocateResults(group, {first[1]->shape()})) return;
  const int64_t row = ElementCount(first[0]->dims().subspan(1)), per_member = first[2]->count() / n;
  for (size_t m = 0; m < group.devices.size(); ++m) group.results[m][0]->CopyBytes(*group.operands[m][1]);
  for (int64_t s = 0; s < n; ++s) {
    for (int64_t at = 0; at < n * per_member; ++at) {
      const int64_t t = at / per_member;
      const SlotValue &sender = group.operands[static_cast<size_t>(s)],
                      &receiver = group.operands[static_cast<size_t>(t)];
      const int64_t from = IndexAt(*sender[2], at), size = IndexAt(*sender[3], at), to = IndexAt(*sender[4], at);
      const int64_t expected = IndexAt(*receiver[5], s * per_member + at % per_member);
      const std::string names[] = {group.run.DeviceName(group.devices[static_cast<size_t>(s)]),
                                   group.run.DeviceName(group.devices[static_cast<size_t>(t)])};
      if (size != expected) {
        return group.run.Fail(StrCat(names[0], " sends ", size, " rows to ", names[1], ", which expects ", expected));
      }
      const int64_t rows[] = {sender[0]->dim(0), receiver[1]->dim(0)};
      if (size < 0 || from < 0 || from > rows[0] - size || to < 0 || to > rows[1] - size) {
        return group.run.Fail(StrCat(names[0], " sends ", size, " rows from ", from, " to ", to, " of ", names[1],
                                     "; the input has ", rows[0], ", the output ", rows[1]));
      }
      for (int64_t i = 0; i < size * row && group.run.Tick(); ++i) {
        group.results[static_cast<size_t>(t)][0]->CopyElement(to * row + i, *sender[0], from * row + i);
      }
    }
  }
}

}  // namespace ops

namespace fill_ops {

// `replica-id`, `partition-id`
void ReplicaId(Op& op) { op.out().SetInteger(0, op.run.device->replica); }
void PartitionId(Op& op) { op.out().SetInteger(0, op.run.device->partition); }

}  // namespace fill_ops
}  // namespace hlokit::reference
