// SPDX-License-Identifier: Apache-2.0
// Rules of gather and scatter.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::kDynamicSize;
using mlir::NodeId;
using mlir::NodeKind;

bool Rules::DimsInRange(const Ints& list, std::string_view name, int64_t limit, std::string_view limit_name,
                        Words words) {
  for (int64_t d : list) {
    if (d >= 0 && d < limit) continue;
    return FailIn(words, StrCat("Expects each element of ", name, " to be in range [0, ", limit_name, ") i.e. [0, ",
                                limit, "). got: ", d, "."));
  }
  return true;
}

bool Rules::Sorted(const Ints& list, std::string_view name, bool ordered, Words words) {
  const bool gather = words == Words::kGather;
  const auto fail = [&](std::string_view what) {
    return FailIn(words, StrCat(gather ? "expects " : "Expects ", name, " to ", what, gather ? ", got: [" : "; got: [",
                                ListText(list), gather ? "]" : "]."));
  };
  Ints copy = list;
  std::sort(copy.begin(), copy.end());
  if (ordered && copy != list) return fail("be sorted");
  return std::adjacent_find(copy.begin(), copy.end()) == copy.end() || fail("not repeat");
}

bool Rules::Disjoint(const Ints& a, std::string_view a_name, const Ints& b, std::string_view b_name, Words words) {
  absl::flat_hash_set<int64_t> seen;
  for (const Ints* list : {&a, &b}) {
    for (int64_t dimension : *list) {
      if (seen.insert(dimension).second) continue;
      return FailIn(words, StrCat("has duplicated dimension from ", a_name, " and ", b_name, ": ", dimension));
    }
  }
  return true;
}

bool Rules::CheckGather() {
  const NodeId from = operand(0), indices = operand(1);
  const NodeId numbers = m.attribute(op, "dimension_numbers");
  if (n.kind(numbers) != NodeKind::kFields) return true;
  const Ints offset = Field(numbers, "offset_dims"), collapsed = Field(numbers, "collapsed_slice_dims"),
             batching = Field(numbers, "operand_batching_dims"), map = Field(numbers, "start_index_map"),
             index_batching = Field(numbers, "start_indices_batching_dims");
  const int64_t vector = n.IntegerValue(n.Entry(numbers, "index_vector_dim")).value_or(0);
  constexpr Words kWords = Words::kGather;
  constexpr std::string_view kOperand = "rank-of('operand')", kIndices = "rank-of('start_indices')";
  if (vector < 0 || vector > rank(indices)) {
    return FailInference(StrCat("Expects index_vector_dim to be in range [0, ", kIndices, "] i.e. [0, ", rank(indices),
                                "]. got: ", vector, "."));
  }
  const int64_t bound = vector < rank(indices) ? sizes(indices)[static_cast<size_t>(vector)] : 1;
  if (!SizesAgree(bound, static_cast<int64_t>(map.size()))) {
    return FailInference(StrCat("start_index_map size (", map.size(), ") is not equal to size of index dimension (",
                                vector, ") of start_indices (", bound, ")"));
  }
  if (!Sorted(offset, "offset_dims", true, kWords) ||
      !Disjoint(collapsed, "collapsed_slice_dims", batching, "operand_batching_dims", kWords) ||
      !Sorted(collapsed, "collapsed_slice_dims", true, kWords) ||
      !DimsInRange(collapsed, "collapsed_slice_dims", rank(from), kOperand, kWords) ||
      !Sorted(batching, "operand_batching_dims", true, kWords) ||
      !DimsInRange(batching, "operand_batching_dims", rank(from), kOperand, kWords) ||
      !Sorted(index_batching, "start_indices_batching_dims", false, kWords) ||
      !DimsInRange(index_batching, "start_indices_batching_dims", rank(indices), kIndices, kWords)) {
    return false;
  }
  if (std::find(index_batching.begin(), index_batching.end(), vector) != index_batching.end()) {
    return FailInference(StrCat("expects start_indices_batching_dims not to include index_vector_dim ", vector));
  }
  if (index_batching.size() != batching.size()) {
    return FailInference("operand_batching_dims and start_indices_batching_dims should have the same size");
  }
  for (size_t i = 0; i < batching.size(); ++i) {
    const int64_t a = sizes(from)[static_cast<size_t>(batching[i])],
                  b = sizes(indices)[static_cast<size_t>(index_batching[i])];
    if (SizesAgree(a, b)) continue;
    return FailInference(StrCat("operand_batching_dims[", i, "] and start_indices_batching_dims[", i,
                                "] must have compatible sizes, but got ", a, " and ", b));
  }
  if (!Disjoint(map, "start_index_map", batching, "operand_batching_dims", kWords) ||
      !DimsInRange(map, "start_index_map", rank(from), kOperand, kWords)) {
    return false;
  }
  if (static_cast<int64_t>(offset.size() + collapsed.size() + batching.size()) != rank(from)) {
    return FailInference(StrCat("offset_dims size (", offset.size(), ") plus collapse_slice_dims size (",
                                collapsed.size(), ") plus operand_batching_dims size (", batching.size(),
                                ") is not equal to operand rank (", rank(from), ")"));
  }
  // The sizes of slices, as far as they are known.
  const bool dynamic = op.operand_count > 2;
  Ints slice = dynamic ? ConstantOf(2).value_or(Ints()) : List("slice_sizes");
  const int64_t count = dynamic ? sizes(operand(2))[0] : static_cast<int64_t>(slice.size());
  if (!SizesAgree(count, rank(from))) {
    return FailInference(StrCat("slice_sizes size (", count, ") not equal to operand rank (", rank(from), ")"));
  }
  if (static_cast<int64_t>(slice.size()) != rank(from)) slice.assign(static_cast<size_t>(rank(from)), kDynamicSize);
  for (size_t i = 0; i < slice.size() && i < sizes(from).size(); ++i) {
    const int64_t size = sizes(from)[i];
    if (slice[i] == kDynamicSize || (slice[i] >= 0 && (size == kDynamicSize || slice[i] <= size))) continue;
    return FailInference(
        StrCat("slice size (", slice[i], ") is out of bounds for operand dimension (", size, ") at index ", i));
  }
  for (const auto& [list, name] :
       {std::pair(&collapsed, "collapsed_slice_dims"), std::pair(&batching, "operand_batching_dims")}) {
    for (int64_t d : *list) {
      const int64_t size = slice[static_cast<size_t>(d)];
      if (size == kDynamicSize || size <= 1) continue;
      return FailInference(
          StrCat("Expects that for each dim in ", name, ", slice_sizes[dim] should be <= 1, but got ", size));
    }
  }
  const int64_t index_rank = rank(indices) - (vector < rank(indices) ? 1 : 0);
  const int64_t result_rank = index_rank + static_cast<int64_t>(offset.size());
  if (!DimsInRange(offset, "offset_dims", result_rank, "implied-result-rank", kWords)) return false;
  Ints shape;
  size_t at_index = 0, at_slice = 0;
  for (int64_t d = 0; d < result_rank; ++d) {
    if (std::find(offset.begin(), offset.end(), d) == offset.end()) {
      if (at_index == static_cast<size_t>(vector)) ++at_index;
      shape.push_back(sizes(indices)[at_index++]);
      continue;
    }
    const auto dropped = [&](size_t i) {
      const auto dimension = static_cast<int64_t>(i);
      return std::find(collapsed.begin(), collapsed.end(), dimension) != collapsed.end() ||
             std::find(batching.begin(), batching.end(), dimension) != batching.end();
    };
    while (dropped(at_slice)) ++at_slice;
    shape.push_back(slice[at_slice++]);
  }
  return CheckResults({TensorOf(shape, element(from))});
}

bool Rules::CheckScatter() {
  if (op.operand_count < 3 || op.operand_count % 2 == 0) return Fail("expects as many updates as inputs");
  const size_t count = op.operand_count / 2;
  const NodeId input = operand(0), indices = operand(count), updates = operand(count + 1);
  const NodeId numbers = m.attribute(op, "scatter_dimension_numbers");
  if (n.kind(numbers) != NodeKind::kFields) return true;
  for (size_t i = 1; i < count; ++i) {
    if (!ShapesAgree(sizes(operand(i)), sizes(input))) return Fail("Not all inputs have compatible shapes.");
    if (!ShapesAgree(sizes(operand(count + 1 + i)), sizes(updates)))
      return Fail("Not all updates have compatible shapes.");
  }
  const Ints window = Field(numbers, "update_window_dims"), inserted = Field(numbers, "inserted_window_dims"),
             batching = Field(numbers, "input_batching_dims"), map = Field(numbers, "scatter_dims_to_operand_dims"),
             index_batching = Field(numbers, "scatter_indices_batching_dims");
  const int64_t vector = n.IntegerValue(n.Entry(numbers, "index_vector_dim")).value_or(0);
  constexpr Words kWords = Words::kScatter;
  if (vector < 0 || vector > rank(indices)) {
    return Fail(
        StrCat("expects scatter index leaf dimension to be within [0, rank(scatter_indices) + 1. rank(scatter_"
               "indices) is ",
               rank(indices), " and scatter index leaf dimension is ", vector, "."));
  }
  const int64_t update_rank = rank(indices) - (vector < rank(indices) ? 1 : 0) + static_cast<int64_t>(window.size());
  if (rank(updates) != update_rank) {
    return Fail(
        StrCat("expects updates tensor must be of rank ", update_rank,
               " ( == rank-of('scatter_indices') - 1 + size-of('update_window_dims'), where 'scatter_indices' is "
               "expanded by a trailing 1 dimension if 'index_vector_dim' == rank-of('scatter_indices')), but got ",
               rank(updates), "."));
  }
  const int64_t matched = static_cast<int64_t>(window.size() + inserted.size() + batching.size());
  if (!Sorted(window, "update_window_dims", true, kWords) ||
      !Disjoint(inserted, "inserted_window_dims", batching, "input_batching_dims", kWords) ||
      !Sorted(inserted, "inserted_window_dims", true, kWords) ||
      !DimsInRange(inserted, "inserted_window_dims", rank(input), "rank-of('operand')", kWords) ||
      !Sorted(batching, "input_batching_dims", true, kWords) ||
      !DimsInRange(batching, "input_batching_dims", rank(input), "rank-of('operand')", kWords)) {
    return false;
  }
  if (matched != rank(input)) {
    return Fail(
        StrCat("Expects rank-of operand to match size-of('update_window_dims') + size-of('inserted_window_dims') "
               "+ size-of('input_batching_dims') i.e. ",
               matched, " but got ", rank(input), "."));
  }
  const int64_t bound = vector < rank(indices) ? sizes(indices)[static_cast<size_t>(vector)] : 1;
  if (!SizesAgree(bound, static_cast<int64_t>(map.size()))) {
    return Fail(StrCat("Scatter op has ", map.size(),
                       " elements in scatter_dims_to_operand_dims and the bound of dimension index_vector_dim=", vector,
                       " of scatter_indices is ", bound, ". These two numbers must be equal."));
  }
  if (!Sorted(map, "scatter_dims_to_operand_dims", false, kWords) ||
      !Disjoint(map, "scatter_dims_to_operand_dims", batching, "input_batching_dims", kWords) ||
      !DimsInRange(map, "scatter_dims_to_operand_dims", rank(input), "rank-of('operand')", kWords) ||
      !Sorted(index_batching, "scatter_indices_batching_dims", false, kWords) ||
      !DimsInRange(index_batching, "scatter_indices_batching_dims", rank(indices), "rank-of('scatter_indices')",
                   kWords)) {
    return false;
  }
  if (std::find(index_batching.begin(), index_batching.end(), vector) != index_batching.end()) {
    return Fail(StrCat("expects scatter_indices_batching_dims not to include index_vector_dim ", vector, "."));
  }
  if (index_batching.size() != batching.size()) {
    return Fail("input_batching_dims and scatter_indices_batching_dims should have the same size");
  }
  for (int64_t d : window) {
    if (d >= 0 && d < rank(updates)) continue;
    return Fail(StrCat("Expects each element of update_window_dims to be in range [0, rank-of('updates')) i.e. [0, ",
                       rank(updates), "). got: ", d, "."));
  }
  size_t at = 0;
  for (int64_t d = 0; d < rank(input); ++d) {
    if (std::find(inserted.begin(), inserted.end(), d) != inserted.end()) continue;
    if (std::find(batching.begin(), batching.end(), d) != batching.end()) continue;
    const int64_t size = sizes(updates)[static_cast<size_t>(window[at])], limit = sizes(input)[static_cast<size_t>(d)];
    if (size != mlir::kDynamicSize && limit != mlir::kDynamicSize && size > limit) {
      return Fail(
          StrCat("expects bounds of the window dimensions of updates to not exceed the bounds of the "
                 "corresponding dimensions of operand. For dimension ",
                 window[at], ", updates bound is ", size, ", operand bound is ", limit, "."));
    }
    ++at;
  }
  std::vector<NodeId> values, accumulators;
  for (size_t i = 0; i < count; ++i) {
    values.push_back(operand(count + 1 + i));
    accumulators.push_back(n.kind(operand(i)) == NodeKind::kTensorType ? operand(i) : NodeId());
  }
  // The accumulator of an element is a scalar of the input.
  std::vector<NodeId> scalars;
  for (NodeId type : accumulators) scalars.push_back(const_cast<mlir::NodeTable&>(n).Tensor({}, element(type)));
  return CheckReducer(0, values, scalars, Ints(sizes(updates).begin(), sizes(updates).end()));
}

}  // namespace hlokit::stablehlo
