// SPDX-License-Identifier: Apache-2.0
// Gathers, scatters and dynamic slices.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/random/dimension_numbers_generator.h"

namespace hlokit::random_test {

bool DimensionNumbersGenerator::MakeIndexed() {
  if (case_.opcode == Opcode::kGather || case_.opcode == Opcode::kScatter) {
    MakeGatherOrScatter();
    return true;
  }
  if (case_.opcode != Opcode::kDynamicSlice && case_.opcode != Opcode::kDynamicUpdateSlice) return false;
  MakeDynamicSlice();
  return true;
}

void DimensionNumbersGenerator::MakeGatherOrScatter() {
  const bool gathers = case_.opcode == Opcode::kGather;
  const Dims array = SomeDims(0, 4);
  const auto rank = static_cast<int64_t>(array.size());
  Dims batching, dropped, windows;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t role = random_.In(0, 9);
    (role < 2 ? batching : role < 5 ? dropped : windows).push_back(d);
  }
  // The dimensions of the indices but for that of index vectors.
  const auto pairs = static_cast<int64_t>(batching.size());
  const int64_t batch_rank = pairs + random_.In(0, 2);
  Dims indices(static_cast<size_t>(batch_rank));
  for (int64_t& d : indices) d = Size();
  Dims index_batching = Distinct(batch_rank, pairs);
  for (size_t i = 0; i < batching.size(); ++i) {
    if (!random_.OneIn(6)) indices[static_cast<size_t>(index_batching[i])] = array[static_cast<size_t>(batching[i])];
  }
  const bool implicit = rank > 0 && random_.OneIn(4);  // index vectors of one component
  const Dims map = Distinct(rank, implicit ? 1 : random_.In(0, rank));
  const int64_t vector_dim = implicit ? batch_rank : random_.In(0, batch_rank);
  const Dims batch_sizes = indices;
  if (!implicit) {
    indices.insert(indices.begin() + vector_dim, static_cast<int64_t>(map.size()));
    for (int64_t& d : index_batching) d += d >= vector_dim ? 1 : 0;
  }
  // The other array: windows among the dimensions of the indices.
  const auto window_rank = static_cast<int64_t>(windows.size());
  const Dims window_dims = Sorted(Distinct(batch_rank + window_rank, window_rank));
  Dims slice_sizes(array.size()), other;
  for (size_t d = 0; d < array.size(); ++d) {
    const bool is_window = std::count(windows.begin(), windows.end(), static_cast<int64_t>(d)) != 0;
    const int64_t most = is_window ? array[d] : std::min<int64_t>(array[d], 1);
    slice_sizes[d] = random_.OneIn(is_window ? 2 : 20) ? random_.In(0, most) : most;
    if (random_.OneIn(40)) slice_sizes[d] = Number(slice_sizes[d] + 1);
  }
  size_t window = 0, batch = 0;
  for (int64_t d = 0; d < batch_rank + window_rank; ++d) {
    const bool is_window = std::count(window_dims.begin(), window_dims.end(), d) != 0;
    other.push_back(is_window ? slice_sizes[static_cast<size_t>(windows[window++])] : batch_sizes[batch++]);
  }
  const int64_t largest = array.empty() ? 1 : *std::max_element(array.begin(), array.end());
  const ElementType type = AnyType();
  if (gathers) {
    AddOperand({type, array});
    AddIndices({IndexType(), indices}, largest);
  } else {
    const int64_t count = random_.OneIn(4) ? random_.In(2, 3) : 1;
    std::vector<ElementType> types, accumulators, elements;
    for (int64_t k = 0; k < count; ++k) {
      types.push_back(k == 0 ? type : AnyType());
      accumulators.push_back(Near(types.back()));
      elements.push_back(Near(types.back()));
      AddOperand({types.back(), array});
    }
    AddIndices({IndexType(), indices}, largest);
    for (int64_t& d : other) d = random_.OneIn(60) ? Size() : d;
    for (ElementType t : types) AddOperand({Near(t), other});
    Attribute("to_apply", Reducer(accumulators, elements));
  }
  ListAttribute(gathers ? "offset_dims" : "update_window_dims", Odd(window_dims, batch_rank + window_rank));
  ListAttribute(gathers ? "collapsed_slice_dims" : "inserted_window_dims", Odd(dropped, rank));
  ListAttribute(gathers ? "start_index_map" : "scatter_dims_to_operand_dims", Odd(map, rank));
  ListAttribute(gathers ? "operand_batching_dims" : "input_batching_dims", Odd(batching, rank));
  ListAttribute(gathers ? "start_indices_batching_dims" : "scatter_indices_batching_dims",
                Odd(index_batching, batch_rank + 1));
  Attribute("index_vector_dim", StrCat(Number(vector_dim)));
  if (gathers) ListAttribute("slice_sizes", slice_sizes);
}

void DimensionNumbersGenerator::MakeDynamicSlice() {
  const bool updates = case_.opcode == Opcode::kDynamicUpdateSlice;
  const Dims array = SomeDims(0, 4);
  Dims part;
  for (int64_t d : array) part.push_back(random_.OneIn(4) ? d : Number(random_.In(0, d)));
  const ElementType type = AnyType();
  AddOperand({type, array});
  if (updates) {
    for (int64_t& d : part) d = std::clamp<int64_t>(d, 0, 64);
    AddOperand({random_.OneIn(20) ? AnyType() : type, part});
  }
  const int64_t largest = array.empty() ? 1 : *std::max_element(array.begin(), array.end());
  const ElementType index = IndexType();
  if (random_.OneIn(8)) {
    AddIndices({index, {static_cast<int64_t>(array.size())}}, largest);
  } else {
    for (size_t d = 0; d < array.size(); ++d) AddIndices({random_.OneIn(30) ? IndexType() : index, {}}, largest);
  }
  case_.shape = random_test::Text({type, updates ? array : part});
  if (!updates) ListAttribute("dynamic_slice_sizes", part);
}

}  // namespace hlokit::random_test
