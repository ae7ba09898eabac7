// SPDX-License-Identifier: Apache-2.0
// Sharding rules of gather, scatter and dynamic slices.
#include <algorithm>
#include <optional>
#include <vector>

#include "ir/graph/attribute_views.h"
#include "ir/ops/opcode_set.h"
#include "ir/sharding/tile_assignment.h"
#include "passes/sharding/rule_builder.h"

namespace hlokit::sharding {
namespace {

bool IsListed(absl::Span<const int64_t> dims, int64_t dim) {
  return std::find(dims.begin(), dims.end(), dim) != dims.end();
}

constexpr int kMaxFollowed = 32;

// Returns the dimension along which each element of `i` equals its index; nullopt if there is none that can be seen.
std::optional<int64_t> IotaDimension(Instruction i) {
  for (int n = 0; n < kMaxFollowed; ++n) {
    const Opcode opcode = i.opcode();
    if (opcode == Opcode::kIota) return i.int_attr(Attr::kIotaDimension);
    if (OpcodeSet{Opcode::kCopy, Opcode::kConvert}.Contains(opcode)) {
      i = i.operand(0);
      continue;
    }
    if (opcode == Opcode::kCustomCall) {
      if (i.operand_count() != 1 || i.string_attr(Attr::kCustomCallTarget) != "Sharding") return std::nullopt;
      i = i.operand(0);
      continue;
    }
    return std::nullopt;
  }
  return std::nullopt;
}

// Operand dimension `operand` is indexed by an iota along dimension `indices` of the indices: with an index i in the
// indices goes index i in the operand.
struct ParallelDims {
  int64_t operand;
  int64_t indices;
};
// `index_map`: the operand dimension of each component of an index; the size of the slices there is one.
std::vector<ParallelDims> FindParallelDims(Instruction indices, int64_t index_vector_dim,
                                           absl::Span<const int64_t> index_map, Shape operand) {
  std::vector<ParallelDims> found;
  std::vector<bool> taken(ToSize(indices.shape().rank()));
  const auto add = [&](Instruction component, size_t first) {
    const std::optional<int64_t> dim = IotaDimension(component);
    if (!dim || *dim == index_vector_dim || *dim >= indices.shape().rank() || first >= index_map.size()) return;
    if (taken[ToSize(*dim)] || operand.dim(index_map[first]) != indices.shape().dim(*dim)) return;
    taken[ToSize(*dim)] = true;
    found.push_back({index_map[first], *dim});
  };
  Instruction source = indices;
  for (int n = 0; n < kMaxFollowed && source.opcode() == Opcode::kCopy; ++n) source = source.operand(0);
  if (source.opcode() == Opcode::kConcatenate && !source.list_attr(Attr::kDimensions).empty() &&
      source.list_attr(Attr::kDimensions)[0] == index_vector_dim) {
    size_t first = 0;
    for (Instruction part : source.operands()) {
      const int64_t size = part.shape().dim(index_vector_dim);
      if (size == 1) add(part, first);
      first += ToSize(size);
    }
  } else if (index_map.size() == 1) {
    add(source, 0);
  }
  return found;
}

// Returns the factor of operand dimension `dim`, if it is one of the indices', or -1.
int32_t ParallelFactor(absl::Span<const ParallelDims> parallel, absl::Span<const int32_t> by_indices_dim, int64_t dim) {
  for (const ParallelDims& p : parallel) {
    if (p.operand == dim) return by_indices_dim[ToSize(p.indices)];
  }
  return -1;
}

// Returns the kind of an operand dimension that has no factor of the indices. `whole`: each window spans it.
FactorKind KindOfIndexed(bool whole, bool batching) {
  if (whole) return FactorKind::kParallel;
  return batching ? FactorKind::kWhole : FactorKind::kLookedUp;
}

}  // namespace

void MakeGatherRule(RuleBuilder& b) {
  const GatherDims dims = GatherDims::Of(b.instruction());
  const Shape operand = b.operand(0), indices = b.operand(1), result = b.result();
  std::vector<ParallelDims> parallel =
      FindParallelDims(b.instruction().operand(1), dims.index_vector_dim, dims.start_index_map, operand);
  std::erase_if(parallel, [&](const ParallelDims& p) {
    return dims.slice_sizes[ToSize(p.operand)] != 1 || IsListed(dims.operand_batching_dims, p.operand) ||
           IsListed(dims.start_indices_batching_dims, p.indices);
  });
  for (size_t i = 0; i < dims.operand_batching_dims.size(); ++i) {
    // Sizes may differ.
    if (operand.dim(dims.operand_batching_dims[i]) != indices.dim(dims.start_indices_batching_dims[i])) continue;
    parallel.push_back({dims.operand_batching_dims[i], dims.start_indices_batching_dims[i]});
  }
  // The dimensions of the indices are those of the result that are not in a slice.
  std::vector<int32_t> by_indices_dim(ToSize(indices.rank()), -1);
  int64_t out = 0;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == dims.index_vector_dim) continue;
    while (IsListed(dims.offset_dims, out)) ++out;
    by_indices_dim[ToSize(d)] = b.Add(indices.dim(d));
    b.Operand(1, d, by_indices_dim[ToSize(d)]);
    b.Result(0, out++, by_indices_dim[ToSize(d)]);
  }
  size_t offset = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const bool in_slice = !IsListed(dims.collapsed_slice_dims, d) && !IsListed(dims.operand_batching_dims, d);
    const int64_t result_dim = in_slice && offset < dims.offset_dims.size() ? dims.offset_dims[offset++] : -1;
    if (const int32_t factor = ParallelFactor(parallel, by_indices_dim, d); factor >= 0) {
      b.Operand(0, d, factor);
      continue;
    }
    const bool whole = dims.slice_sizes[ToSize(d)] == operand.dim(d);
    const int32_t factor = b.Add(operand.dim(d), KindOfIndexed(whole, IsListed(dims.operand_batching_dims, d)));
    b.Operand(0, d, factor);
    if (whole && result_dim >= 0 && result_dim < result.rank()) b.Result(0, result_dim, factor);
  }
}

void MakeScatterRule(RuleBuilder& b) {
  const ScatterDims dims = ScatterDims::Of(b.instruction());
  const int64_t count = b.operand_count() / 2;
  const int64_t indices_operand = count, first_update = count + 1;
  const Shape operand = b.operand(0), indices = b.operand(indices_operand), updates = b.operand(first_update);
  const auto on_updates = [&](int64_t dim, int32_t factor) {
    for (int64_t i = 0; i < count; ++i) b.Operand(first_update + i, dim, factor);
  };
  std::vector<ParallelDims> parallel = FindParallelDims(b.instruction().operand(indices_operand), dims.index_vector_dim,
                                                        dims.scatter_dims_to_operand_dims, operand);
  std::erase_if(parallel, [&](const ParallelDims& p) {
    return !IsListed(dims.inserted_window_dims, p.operand) || IsListed(dims.scatter_indices_batching_dims, p.indices);
  });
  for (size_t i = 0; i < dims.input_batching_dims.size(); ++i) {
    if (operand.dim(dims.input_batching_dims[i]) != indices.dim(dims.scatter_indices_batching_dims[i])) continue;
    parallel.push_back({dims.input_batching_dims[i], dims.scatter_indices_batching_dims[i]});
  }
  std::vector<int32_t> by_indices_dim(ToSize(indices.rank()), -1);
  int64_t out = 0;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d == dims.index_vector_dim) continue;
    while (IsListed(dims.update_window_dims, out)) ++out;
    const bool is_parallel =
        std::any_of(parallel.begin(), parallel.end(), [&](const ParallelDims& p) { return p.indices == d; });
    by_indices_dim[ToSize(d)] = b.Add(indices.dim(d), is_parallel ? FactorKind::kParallel : FactorKind::kReduced);
    b.Operand(indices_operand, d, by_indices_dim[ToSize(d)]);
    on_updates(out++, by_indices_dim[ToSize(d)]);
  }
  size_t window = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const bool in_window = !IsListed(dims.inserted_window_dims, d) && !IsListed(dims.input_batching_dims, d);
    const int64_t update_dim =
        in_window && window < dims.update_window_dims.size() ? dims.update_window_dims[window++] : -1;
    int32_t factor = ParallelFactor(parallel, by_indices_dim, d);
    if (factor < 0) {
      const bool whole = update_dim >= 0 && update_dim < updates.rank() && updates.dim(update_dim) == operand.dim(d);
      factor = b.Add(operand.dim(d), KindOfIndexed(whole, IsListed(dims.input_batching_dims, d)));
      if (whole) on_updates(update_dim, factor);
    }
    for (int64_t i = 0; i < count; ++i) b.Operand(i, d, factor);
    for (int64_t i = 0; i < b.result_count(); ++i) b.Result(i, d, factor);
  }
}

void MakeDynamicSliceRule(RuleBuilder& b) {
  for (int64_t d = 0; d < b.result().rank(); ++d) {
    const bool whole = b.operand(0).dim(d) == b.result().dim(d);
    const int32_t factor = b.Add(b.operand(0).dim(d), whole ? FactorKind::kParallel : FactorKind::kLookedUp);
    b.Operand(0, d, factor);
    if (whole) b.Result(0, d, factor);
  }
}

void MakeDynamicUpdateSliceRule(RuleBuilder& b) {
  for (int64_t d = 0; d < b.result().rank(); ++d) {
    const bool whole = b.operand(1).dim(d) == b.result().dim(d);
    const int32_t factor = b.Add(b.result().dim(d), whole ? FactorKind::kParallel : FactorKind::kLookedUp);
    b.Operand(0, d, factor);
    if (whole) b.Operand(1, d, factor);
    b.Result(0, d, factor);
  }
}

}  // namespace hlokit::sharding
