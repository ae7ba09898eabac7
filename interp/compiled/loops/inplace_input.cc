// SPDX-License-Identifier: Apache-2.0
#include "interp/compiled/loops/inplace_input.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "interp/compiled/loops/loop_builder.h"
#include "interp/exact/kernels/index_operand.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp::compiled {
namespace {

constexpr int64_t kMaxParts = 16;

bool IsArrayOf(Instruction i, ElementType type) { return i.shape().IsArray() && i.shape().element_type() == type; }

bool IsConcatenation(Instruction i) {
  const absl::Span<const int64_t> dimensions = i.list_attr(Attr::kDimensions);
  const Shape shape = i.shape();
  if (dimensions.size() != 1 || dimensions[0] < 0 || dimensions[0] >= shape.rank() || i.operand_count() < 2 ||
      i.operand_count() > kMaxParts) {
    return false;
  }
  int64_t total = 0;
  for (Instruction operand : i.operands()) {
    if (!IsArrayOf(operand, shape.element_type()) || operand.shape().rank() != shape.rank()) return false;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d != dimensions[0] && operand.shape().dim(d) != shape.dim(d)) return false;
    }
    total += operand.shape().dim(dimensions[0]);
  }
  return total == shape.dim(dimensions[0]);
}

bool IsPadding(Instruction i) {
  const Shape shape = i.shape();
  const PaddingView padding = PaddingView::Of(i);
  if (i.operand_count() != 2 || !IsArrayOf(i.operand(0), shape.element_type()) ||
      !IsArrayOf(i.operand(1), shape.element_type()) || i.operand(1).shape().rank() != 0 || !padding.ok() ||
      padding.rank() != shape.rank() || i.operand(0).shape().rank() != shape.rank()) {
    return false;
  }
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const int64_t size = i.operand(0).shape().dim(d);
    if (padding.interior(d) != 0 || padding.low(d) < 0 || padding.high(d) < 0 || size < 1 ||
        padding.low(d) > shape.dim(d) - size || padding.high(d) != shape.dim(d) - size - padding.low(d)) {
      return false;
    }
  }
  return true;
}

// Returns true if something overwrites a part of the array, which it can do in place once no slice is read.
bool IsUpdated(Instruction array) {
  constexpr int kMaxUsers = 64;  // of more, none are looked at
  int users = 0;
  for (Instruction user : array.users()) {
    if (user.opcode() == Opcode::kDynamicUpdateSlice || user.opcode() == Opcode::kScatter) return true;
    if (++users > kMaxUsers) return true;
  }
  return false;
}

bool IsDynamicSlice(Instruction i) {
  const Shape shape = i.shape();
  if (i.operand_count() < 2 || !IsArrayOf(i.operand(0), shape.element_type())) return false;
  const Shape from = i.operand(0).shape();
  if (from.rank() != shape.rank() || i.operand_count() != 1 + from.rank() || IsUpdated(i.operand(0))) return false;
  for (int64_t d = 0; d < from.rank(); ++d) {
    const Shape index = i.operand(1 + d).shape();
    if (shape.dim(d) > from.dim(d) || !index.IsArray() || index.rank() != 0 || !IsIndexType(index.element_type())) {
      return false;
    }
  }
  return true;
}

// The dimensions of an array that slices of a gather have, in order, and the dimensions of the result that are theirs.
struct Windows {
  std::vector<std::pair<int64_t, int64_t>> dims;  // of the array, of the result
  std::vector<int64_t> sizes;                     // by dimension of the array
};

std::optional<Windows> WindowsOf(Instruction i) {
  const GatherDims dims = GatherDims::Of(i);
  const Shape array = i.operand(0).shape(), shape = i.shape();
  Windows windows;
  windows.sizes.assign(static_cast<size_t>(array.rank()), 1);
  size_t next = 0;
  for (int64_t d = 0; d < array.rank(); ++d) {
    if (absl::c_linear_search(dims.collapsed_slice_dims, d) || absl::c_linear_search(dims.operand_batching_dims, d)) {
      continue;
    }
    if (next == dims.offset_dims.size()) return std::nullopt;
    const int64_t w = dims.offset_dims[next++];
    if (w < 0 || w >= shape.rank() || shape.dim(w) > array.dim(d)) return std::nullopt;
    windows.dims.emplace_back(d, w);
    windows.sizes[static_cast<size_t>(d)] = shape.dim(w);
  }
  if (next != dims.offset_dims.size()) return std::nullopt;
  return windows;
}

// Of rows: the minor dimension of the result is that of the array.
bool IsRowGather(Instruction i) {
  if (i.operand_count() != 2 || !IsArrayOf(i.operand(0), i.shape().element_type()) || !i.operand(1).shape().IsArray() ||
      !IsIndexType(i.operand(1).shape().element_type()) || IsUpdated(i.operand(0))) {
    return false;
  }
  const GatherDims dims = GatherDims::Of(i);
  const Shape array = i.operand(0).shape(), indices = i.operand(1).shape(), shape = i.shape();
  if (array.element_count() == 0 || dims.index_vector_dim < 0 || dims.index_vector_dim > indices.rank()) return false;
  const std::optional<Windows> windows = WindowsOf(i);
  if (!windows || windows->dims.empty()) return false;
  const auto [array_dim, result_dim] = windows->dims.back();
  if (result_dim != shape.rank() - 1 || array_dim != array.rank() - 1) return false;
  const int64_t count = dims.index_vector_dim == indices.rank() ? 1 : indices.dim(dims.index_vector_dim);
  if (count != static_cast<int64_t>(dims.start_index_map.size())) return false;
  for (int64_t d : dims.start_index_map) {
    if (d < 0 || d >= array.rank()) return false;
  }
  if (dims.operand_batching_dims.size() != dims.start_indices_batching_dims.size()) return false;
  int64_t index_dim = 0;
  for (int64_t w = 0; w < shape.rank(); ++w) {
    if (absl::c_linear_search(dims.offset_dims, w)) continue;
    if (index_dim == dims.index_vector_dim) ++index_dim;
    if (index_dim >= indices.rank() || indices.dim(index_dim) != shape.dim(w)) return false;
    for (size_t k = 0; k < dims.start_indices_batching_dims.size(); ++k) {
      if (dims.start_indices_batching_dims[k] != index_dim) continue;
      const int64_t d = dims.operand_batching_dims[k];
      if (d < 0 || d >= array.rank() || array.dim(d) != shape.dim(w)) return false;
    }
    ++index_dim;
  }
  return true;
}

// Makes the stride of dimensions of one element such that they join their neighbors.
void JoinSingles(absl::Span<const int64_t> loop_dims, InplaceInput::Part* part) {
  int64_t next = 1;
  for (size_t d = loop_dims.size(); d-- > 0;) {
    if (part->sizes[d] == 1) part->strides[d] = next;
    next = part->strides[d] * loop_dims[d];
  }
}

// Returns the last dimension of more than one element, or -1.
int64_t MinorDimension(absl::Span<const int64_t> dims) {
  int64_t d = static_cast<int64_t>(dims.size()) - 1;
  while (d >= 0 && dims[static_cast<size_t>(d)] == 1) --d;
  return d;
}

// Returns the elements of the dimensions from `d` on.
int64_t RunFrom(absl::Span<const int64_t> sizes, size_t d) { return ElementCount(sizes.subspan(d)); }

// Adds a box with the elements of an operand.
void AddPart(CompiledComputationBuilder& b, const View& operand, const MemoryOrder& order, Dims begin,
             absl::Span<const int64_t> loop_dims, InplaceInput* input) {
  View view = InMemoryOrder(b, operand, order);
  const int64_t minor = MinorDimension(loop_dims);
  const bool one_value = absl::c_all_of(StridesOf(view), [](int64_t stride) { return stride == 0; });
  if (!one_value && minor >= 0 && view.dims()[static_cast<size_t>(minor)] > 1 &&
      StridesOf(view)[static_cast<size_t>(minor)] != 1) {
    view = b.MakeDense(view);
  }
  input->parts.push_back(
      {view, std::move(begin), Dims(view.dims().begin(), view.dims().end()), StridesOf(view), one_value});
  if (!one_value) JoinSingles(loop_dims, &input->parts.back());
}

bool AddConcatenation(CompiledComputationBuilder& b, Instruction i, const MemoryOrder& order,
                      absl::Span<const int64_t> loop_dims, int64_t min_run, InplaceInput* input) {
  const size_t along = static_cast<size_t>(
      std::find(order.begin(), order.end(), static_cast<size_t>(i.list_attr(Attr::kDimensions)[0])) - order.begin());
  const int64_t inner = RunFrom(loop_dims, along + 1);
  if (inner < min_run) {
    for (Instruction operand : i.operands()) {
      const int64_t run = operand.shape().dim(i.list_attr(Attr::kDimensions)[0]) * inner;
      if (run != 0 && run < min_run) return false;
    }
  }
  int64_t at = 0;
  for (Instruction operand : i.operands()) {
    if (operand.shape().element_count() == 0) continue;
    Dims begin(loop_dims.size(), 0);
    begin[along] = at;
    at += operand.shape().dim(i.list_attr(Attr::kDimensions)[0]);
    AddPart(b, b.leaves(operand)[0], order, std::move(begin), loop_dims, input);
  }
  return true;
}

bool AddPadding(CompiledComputationBuilder& b, Instruction i, const MemoryOrder& order,
                absl::Span<const int64_t> loop_dims, int64_t min_run, InplaceInput* input) {
  const PaddingView padding = PaddingView::Of(i);
  const Dims sizes = Permuted(i.operand(0).shape().dims(), order);
  // The last padded dimension divides rows.
  for (size_t d = loop_dims.size(); d-- > 0;) {
    if (sizes[d] == loop_dims[d]) continue;
    if (RunFrom(sizes, d) < min_run) return false;
    break;
  }
  Dims begin;
  for (size_t d : order) begin.push_back(padding.low(static_cast<int64_t>(d)));
  AddPart(b, b.leaves(i.operand(0))[0], order, std::move(begin), loop_dims, input);
  input->fill = b.leaves(i.operand(1))[0];
  return true;
}

// Returns true if the rows of the only part are runs of neighbors, along which no index changes.
bool HasLongRuns(absl::Span<const int64_t> loop_dims, const InplaceInput& input, int64_t min_run) {
  const int64_t minor = MinorDimension(loop_dims);
  if (minor < 0) return true;
  const size_t d = static_cast<size_t>(minor);
  for (const InplaceInput::Index& index : input.indices) {
    if (index.strides[d] != 0) return false;
    const bool changes = absl::c_any_of(index.strides, [](int64_t stride) { return stride != 0; });
    if (changes && loop_dims[d] < min_run) return false;
  }
  if (input.parts[0].strides[d] != 1) return false;
  // Dimensions before the minor one may continue its run.
  int64_t run = 1;
  for (size_t k = d + 1; k-- > 0 && (loop_dims[k] == 1 || input.parts[0].strides[k] == run);) run *= loop_dims[k];
  return run >= min_run;
}

bool AddDynamicSlice(CompiledComputationBuilder& b, Instruction i, const MemoryOrder& order,
                     absl::Span<const int64_t> loop_dims, int64_t min_run, InplaceInput* input) {
  const View array = b.leaves(i.operand(0))[0];
  const Dims strides = StridesOf(array);
  InplaceInput::Part part = {array, Dims(loop_dims.size(), 0), Dims(loop_dims.begin(), loop_dims.end()),
                             Permuted(strides, order)};
  JoinSingles(loop_dims, &part);
  input->parts.push_back(std::move(part));
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    InplaceInput::Index index = {b.leaves(i.operand(1 + d))[0], Dims(loop_dims.size(), 0)};
    index.limit = array.dims()[static_cast<size_t>(d)] - i.shape().dim(d);
    index.stride = strides[static_cast<size_t>(d)];
    if (index.limit > 0) input->indices.push_back(std::move(index));
  }
  return HasLongRuns(loop_dims, *input, min_run);
}

bool AddRowGather(CompiledComputationBuilder& b, Instruction i, const MemoryOrder& order,
                  absl::Span<const int64_t> loop_dims, int64_t min_run, InplaceInput* input) {
  const GatherDims dims = GatherDims::Of(i);
  const View array = b.leaves(i.operand(0))[0], indices = b.leaves(i.operand(1))[0];
  const Windows windows = *WindowsOf(i);
  const Dims array_strides = StridesOf(array), index_strides = StridesOf(indices);
  const size_t rank = loop_dims.size();
  // By dimension of the result.
  Dims from(rank, 0), of_index(rank, 0);
  for (const auto& [array_dim, result_dim] : windows.dims) {
    from[static_cast<size_t>(result_dim)] = array_strides[static_cast<size_t>(array_dim)];
  }
  int64_t index_dim = 0;
  for (size_t w = 0; w < rank; ++w) {
    if (absl::c_linear_search(dims.offset_dims, static_cast<int64_t>(w))) continue;
    if (index_dim == dims.index_vector_dim) ++index_dim;
    of_index[w] = index_strides[static_cast<size_t>(index_dim)];
    for (size_t k = 0; k < dims.start_indices_batching_dims.size(); ++k) {
      if (dims.start_indices_batching_dims[k] != index_dim) continue;
      from[w] = array_strides[static_cast<size_t>(dims.operand_batching_dims[k])];
    }
    ++index_dim;
  }
  input->parts.push_back({array, Dims(rank, 0), Dims(loop_dims.begin(), loop_dims.end()), Permuted(from, order)});
  for (size_t k = 0; k < dims.start_index_map.size(); ++k) {
    const size_t d = static_cast<size_t>(dims.start_index_map[k]);
    InplaceInput::Index index = {indices, Permuted(of_index, order)};
    if (dims.index_vector_dim < indices.shape.rank()) {
      index.view.offset +=
          static_cast<int64_t>(k) * index_strides[static_cast<size_t>(dims.index_vector_dim)] * BytesOf(indices.type());
    }
    index.limit = array.dims()[d] - windows.sizes[d];
    index.stride = array_strides[d];
    if (index.limit > 0) input->indices.push_back(std::move(index));
  }
  return HasLongRuns(loop_dims, *input, min_run);
}

// What a loop can read in place.
struct InplaceOpcode {
  Opcode opcode;
  bool (*fits)(Instruction i);
  bool (*add)(CompiledComputationBuilder& b, Instruction i, const MemoryOrder& order,
              absl::Span<const int64_t> loop_dims, int64_t min_run, InplaceInput* input);
};
constexpr InplaceOpcode kInplaceOpcodes[] = {
    {Opcode::kConcatenate, IsConcatenation, AddConcatenation},
    {Opcode::kPad, IsPadding, AddPadding},
    {Opcode::kDynamicSlice, IsDynamicSlice, AddDynamicSlice},
    {Opcode::kGather, IsRowGather, AddRowGather},
};

}  // namespace

bool IsInplaceInput(Instruction i) {
  if (!i.shape().IsArray() || !IsLoopType(i.shape().element_type()) || i.shape().element_count() == 0 ||
      i.shape().rank() == 0) {
    return false;
  }
  return absl::c_any_of(kInplaceOpcodes,
                        [&](const InplaceOpcode& row) { return row.opcode == i.opcode() && row.fits(i); });
}

std::optional<InplaceInput> MakeInplaceInput(CompiledComputationBuilder& b, Instruction i, const MemoryOrder& order,
                                             int64_t min_run) {
  const Dims loop_dims = Permuted(i.shape().dims(), order);
  InplaceInput input;
  input.type = i.shape().element_type();
  b.set_instruction(i);
  for (const InplaceOpcode& row : kInplaceOpcodes) {
    if (row.opcode == i.opcode() && row.add(b, i, order, loop_dims, min_run, &input)) return input;
  }
  return std::nullopt;
}

}  // namespace hlokit::interp::compiled
