// SPDX-License-Identifier: Apache-2.0
// Collective-permute: each target gets the operands of its source; devices that are not targets get zeros. With
// slice_sizes, moves slices of a buffer into a buffer of the target.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/devices/collective_groups.h"
#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

struct Pair {
  int64_t source;  // positions in the group
  int64_t target;
};

struct PermuteParams : CollectiveParams {
  std::vector<int64_t> bytes;  // of each operand

  void FillResults(const CollectiveMember& m) const override {
    for (size_t k = 0; k < bytes.size(); ++k) std::memset(m.results[k], 0, static_cast<size_t>(bytes[k]));
  }
  void ForEachPiece(absl::Span<const CollectiveMember>, int64_t, int64_t,
                    absl::FunctionRef<void(const CollectivePiece&)> piece) const override {
    for (size_t k = 0; k < bytes.size(); ++k) piece({k, 0, k, 0, bytes[k]});
  }
};

// A slice of one buffer: its sizes, and the operand leaves with its start.
struct PermuteSlice {
  Dims sizes;
  size_t buffer = 0;
  size_t from = 0;  // first of the offsets into the source's input
  size_t to = 0;    // first of the offsets into the target's output
};

struct PermuteInPlaceParams : CollectiveParams {
  std::vector<Pair> pairs;
  std::vector<std::vector<size_t>> pairs_of_source;
  std::vector<int64_t> slice_of_pair;  // slice number of a buffer; -1: all slices
  std::vector<Shape> inputs;           // leaves 0, 1, ... of the operands; the outputs follow
  std::vector<Shape> outputs;
  std::vector<PermuteSlice> slices;
  std::vector<int64_t> slice_number;  // index of each in its buffer
  std::vector<ElementType> types;     // of all leaves

  // Computes the offset in bytes of a slice. Returns false if it is out of bounds.
  bool Offset(const CollectiveMember& m, const PermuteSlice& slice, size_t first, Shape buffer, int64_t* offset) const {
    const Dims strides = DenseStrides(buffer.dims());
    *offset = 0;
    for (size_t d = 0; d < slice.sizes.size(); ++d) {
      const int64_t start = LoadIndex(types[first + d], m.operands[first + d]);
      if (start < 0 || start > buffer.dim(static_cast<int64_t>(d)) - slice.sizes[d]) return false;
      *offset += start * strides[d] * BytesOf(buffer.element_type());
    }
    return true;
  }

  // Calls `call` with each slice that pair `p` moves.
  void ForEachSlice(size_t p, absl::FunctionRef<bool(const PermuteSlice&)> call) const {
    for (size_t i = 0; i < slices.size(); ++i) {
      if (slice_of_pair[p] >= 0 && slice_number[i] != slice_of_pair[p]) continue;
      if (!call(slices[i])) return;
    }
  }

  bool Check(absl::Span<const CollectiveMember> members, RunContext& context) const override {
    for (size_t p = 0; p < pairs.size() && !context.failed(); ++p) {
      const CollectiveMember& source = members[pairs[p].source];
      const CollectiveMember& target = members[pairs[p].target];
      ForEachSlice(p, [&](const PermuteSlice& slice) {
        int64_t from, to;
        if (Offset(source, slice, slice.from, inputs[slice.buffer], &from) &&
            Offset(target, slice, slice.to, outputs[slice.buffer], &to)) {
          return true;
        }
        context.Fail(StrCat("the slice that ", DeviceName(source.device, context), " sends to ",
                            DeviceName(target.device, context), " does not lie inside the buffers"));
        return false;
      });
    }
    return !context.failed();
  }
  void FillResults(const CollectiveMember& m) const override {
    for (size_t k = 0; k < outputs.size(); ++k) {
      const size_t bytes = static_cast<size_t>(outputs[k].element_count() * BytesOf(outputs[k].element_type()));
      std::memcpy(m.results[k], m.operands[inputs.size() + k], bytes);
    }
  }
  void ForEachPiece(absl::Span<const CollectiveMember> members, int64_t from, int64_t to,
                    absl::FunctionRef<void(const CollectivePiece&)> piece) const override {
    for (size_t p : pairs_of_source[static_cast<size_t>(from)]) {
      if (pairs[p].target != to) continue;
      ForEachSlice(p, [&](const PermuteSlice& slice) {
        int64_t begin = 0, end = 0;
        Offset(members[static_cast<size_t>(from)], slice, slice.from, inputs[slice.buffer], &begin);
        Offset(members[static_cast<size_t>(to)], slice, slice.to, outputs[slice.buffer], &end);
        ForEachRow(slice, begin, end, piece);
        return true;
      });
    }
  }

 private:
  // Calls `piece` for each row of the last dimension of a slice.
  void ForEachRow(const PermuteSlice& slice, int64_t from, int64_t to,
                  absl::FunctionRef<void(const CollectivePiece&)> piece) const {
    const Shape input = inputs[slice.buffer], output = outputs[slice.buffer];
    const Dims input_strides = DenseStrides(input.dims()), output_strides = DenseStrides(output.dims());
    const int64_t bytes = BytesOf(input.element_type());
    const size_t rank = slice.sizes.size();
    const int64_t row = (rank == 0 ? 1 : slice.sizes[rank - 1]) * bytes;
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < rank; ++d) rows *= slice.sizes[d];
    for (int64_t r = 0; r < rows; ++r) {
      int64_t rest = r, input_at = from, output_at = to;
      for (size_t d = rank > 0 ? rank - 1 : 0; d-- > 0;) {
        const int64_t at = rest % slice.sizes[d];
        rest /= slice.sizes[d];
        input_at += at * input_strides[d] * bytes;
        output_at += at * output_strides[d] * bytes;
      }
      piece({slice.buffer, input_at, slice.buffer, output_at, row});
    }
  }
};

// Fills groups, neighbors and pairs. Returns false after an error.
bool InitPairs(CompiledComputationBuilder& b, CollectiveParams* params, std::vector<Pair>* pairs) {
  const PrepareOptions& options = b.program().options();
  const CollectiveOpGroupMode mode = GetCollectiveOpGroupMode(b.instruction());
  params->groups = DeviceRows(mode, options.num_replicas, options.num_partitions);
  params->group_of.assign(static_cast<size_t>(options.num_replicas * options.num_partitions), 0);
  for (size_t g = 0; g < params->groups.size(); ++g) {
    for (int64_t d : params->groups[g]) params->group_of[static_cast<size_t>(d)] = static_cast<int64_t>(g);
  }
  const int64_t limit = static_cast<int64_t>(params->groups[0].size());
  params->neighbors.resize(params->groups[0].size());
  const absl::Span<const int64_t> list = b.instruction().list_attr(Attr::kSourceTargetPairs);
  for (size_t n = 0; n + 2 < list.size(); n += 3) {
    for (int64_t id : {list[n + 1], list[n + 2]}) {
      if (id >= 0 && id < limit) continue;
      b.EmitTrap(StrCat(
          "source_target_pairs name ", mode == CollectiveOpGroupMode::kCrossReplica ? "replica " : "partition ", id,
          ", but there are ", options.num_replicas, " x ", options.num_partitions, " devices (replicas x partitions)"));
      return false;
    }
    pairs->push_back({list[n + 1], list[n + 2]});
    std::vector<int64_t>& targets = params->neighbors[static_cast<size_t>(list[n + 1])];
    if (std::find(targets.begin(), targets.end(), list[n + 2]) == targets.end()) targets.push_back(list[n + 2]);
  }
  return true;
}

// Returns slice_sizes as a list for each slice.
std::vector<Dims> SliceSizes(Instruction instruction) {
  std::vector<Dims> sizes;
  const absl::Span<const int64_t> list = instruction.list_attr(Attr::kPermuteSliceSizes);
  for (size_t at = 0; at < list.size();) {
    const size_t n = static_cast<size_t>(std::clamp<int64_t>(list[at], 0, static_cast<int64_t>(list.size() - at - 1)));
    sizes.emplace_back(list.begin() + static_cast<int64_t>(at) + 1, list.begin() + static_cast<int64_t>(at + 1 + n));
    at += n + 1;
  }
  return sizes;
}

void PrepareInPlace(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  auto params = std::make_unique<PermuteInPlaceParams>();
  if (instruction.operand_count() != 4) {
    b.FailMismatch("an input, an output and offsets into each");
    return;
  }
  if (!InitPairs(b, params.get(), &params->pairs)) return;
  std::vector<View> views;
  b.AppendDense(instruction.operand(0), &views);
  for (const View& v : views) params->inputs.push_back(v.shape);
  const size_t outputs = views.size();
  b.AppendDense(instruction.operand(1), &views);
  for (size_t i = outputs; i < views.size(); ++i) params->outputs.push_back(views[i].shape);
  const size_t from = views.size();
  b.AppendDense(instruction.operand(2), &views);
  const size_t to = views.size();
  b.AppendDense(instruction.operand(3), &views);
  const size_t buffers = params->inputs.size();
  const std::vector<Dims> sizes = SliceSizes(instruction);
  bool fits = buffers > 0 && params->outputs.size() == buffers && to - from == views.size() - to &&
              sizes.size() % std::max<size_t>(buffers, 1) == 0;
  for (const View& v : views) {
    params->types.push_back(v.type());
    fits = fits && v.shape.IsArray();
  }
  // Slices are grouped by buffer; their offsets have the same order.
  const size_t each = fits ? sizes.size() / buffers : 0;
  size_t offset = 0;
  for (size_t i = 0; fits && i < sizes.size(); ++i) {
    PermuteSlice slice;
    slice.sizes = sizes[i];
    slice.buffer = i / each;
    slice.from = from + offset;
    slice.to = to + offset;
    offset += sizes[i].size();
    const Shape input = params->inputs[slice.buffer];
    const Shape output = params->outputs[slice.buffer];
    fits = offset <= to - from && input.rank() == static_cast<int64_t>(sizes[i].size()) &&
           output.rank() == input.rank() && output.element_type() == input.element_type();
    for (size_t d = 0; fits && d < sizes[i].size(); ++d) {
      fits = sizes[i][d] >= 0 && IsInteger(params->types[slice.from + d]) && IsInteger(params->types[slice.to + d]);
    }
    params->slices.push_back(slice);
    params->slice_number.push_back(static_cast<int64_t>(i % each));
  }
  if (!fits || offset != to - from) {
    b.FailMismatch("buffers of one type and integer offsets for each dimension of slice_sizes");
    return;
  }
  params->pairs_of_source.resize(params->neighbors.size());
  for (size_t p = 0; p < params->pairs.size(); ++p) {
    params->pairs_of_source[static_cast<size_t>(params->pairs[p].source)].push_back(p);
  }
  // A device that is a source once per slice sends one slice with each pair; otherwise its only pair sends all.
  for (size_t p = 0; p < params->pairs.size(); ++p) {
    int64_t before = 0, all = 0;
    for (size_t q = 0; q < params->pairs.size(); ++q) {
      if (params->pairs[q].source != params->pairs[p].source) continue;
      ++all;
      if (q < p) ++before;
    }
    params->slice_of_pair.push_back(all > 1 ? before : -1);
  }
  for (size_t k = from; k < views.size(); ++k) {
    params->shared_operands.push_back({k, views[k].count() * BytesOf(views[k].type())});
  }
  const std::vector<Shape> results = params->outputs;
  const std::vector<View> shown(views.begin(), views.begin() + static_cast<int64_t>(buffers));
  params->starts = HasTrait(b.instruction().opcode(), kStartsAsync) && b.program().options().among_processes();
  const ViewList moved = b.EmitCollective(std::move(params), views, results);
  SetPermuteResults(b, shown, moved);
}

}  // namespace

void PrepareCollectivePermute(CompiledComputationBuilder& b) {
  if (b.instruction().has(Attr::kPermuteSliceSizes)) {
    PrepareInPlace(b);
    return;
  }
  auto params = std::make_unique<PermuteParams>();
  std::vector<Pair> pairs;
  if (!InitPairs(b, params.get(), &pairs)) return;
  std::vector<View> views;
  for (Instruction operand : b.instruction().operands()) b.AppendDense(operand, &views);
  std::vector<Shape> results;
  for (const View& v : views) {
    results.push_back(v.shape);
    params->bytes.push_back(v.shape.IsArray() ? v.count() * BytesOf(v.type()) : 0);
  }
  params->starts = HasTrait(b.instruction().opcode(), kStartsAsync) && b.program().options().among_processes();
  const ViewList moved = b.EmitCollective(std::move(params), views, results);
  SetPermuteResults(b, views, moved);
}

}  // namespace hlokit::interp
