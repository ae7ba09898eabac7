// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/attribute_views.h"

#include "absl/container/inlined_vector.h"

namespace hlokit {
namespace {

// Returns true if `a`, `b` and `rest` together name each of 0 .. rest.size() + 1 once.
bool NamesEachOnce(int64_t a, int64_t b, absl::Span<const int64_t> rest) {
  const auto rank = static_cast<int64_t>(rest.size()) + 2;
  absl::InlinedVector<bool, 8> seen(static_cast<size_t>(rank), false);
  const auto take = [&](int64_t d) {
    if (d < 0 || d >= rank || seen[d]) return false;
    seen[d] = true;
    return true;
  };
  if (!take(a) || !take(b)) return false;
  for (int64_t d : rest) {
    if (!take(d)) return false;
  }
  return true;
}

}  // namespace

Computation AttrReader::Live(int64_t id) const {
  if (id < 0 || id >= static_cast<int64_t>(module_->computation_id_bound())) return Computation();
  const ComputationId computation(static_cast<uint32_t>(id));
  if (module_->record(computation).erased) return Computation();
  return module_->computation(computation);
}

ConvolutionDims::ConvolutionDims(absl::Span<const int64_t> encoded) {
  if (encoded.empty()) return;
  // The size implies the spatial rank; comparing avoids multiplying an untrusted value.
  const auto size = static_cast<int64_t>(encoded.size());
  const int64_t n = encoded[0];
  if (n < 0 || size < 7 || (size - 7) % 3 != 0 || n != (size - 7) / 3) return;
  ok_ = true;
  const auto spatial = [&](int64_t begin) { return encoded.subspan(begin, n); };
  input_batch = encoded[1];
  input_feature = encoded[2];
  input_spatial = spatial(3);
  kernel_input_feature = encoded[3 + n];
  kernel_output_feature = encoded[4 + n];
  kernel_spatial = spatial(5 + n);
  output_batch = encoded[5 + 2 * n];
  output_feature = encoded[6 + 2 * n];
  output_spatial = spatial(7 + 2 * n);
}

bool ConvolutionDims::IsPermutation() const {
  return ok_ && NamesEachOnce(input_batch, input_feature, input_spatial) &&
         NamesEachOnce(kernel_input_feature, kernel_output_feature, kernel_spatial) &&
         NamesEachOnce(output_batch, output_feature, output_spatial);
}

DotDims DotDims::Of(const AttrReader& attrs) {
  return {attrs.list_attr(Attr::kLhsBatchDims), attrs.list_attr(Attr::kLhsContractingDims),
          attrs.list_attr(Attr::kRhsBatchDims), attrs.list_attr(Attr::kRhsContractingDims)};
}

GatherDims GatherDims::Of(const AttrReader& attrs) {
  return {attrs.list_attr(Attr::kOffsetDims),
          attrs.list_attr(Attr::kCollapsedSliceDims),
          attrs.list_attr(Attr::kStartIndexMap),
          attrs.list_attr(Attr::kOperandBatchingDims),
          attrs.list_attr(Attr::kStartIndicesBatchingDims),
          attrs.int_attr(Attr::kIndexVectorDim),
          attrs.list_attr(Attr::kSliceSizes)};
}

ScatterDims ScatterDims::Of(const AttrReader& attrs) {
  return {attrs.list_attr(Attr::kUpdateWindowDims),           attrs.list_attr(Attr::kInsertedWindowDims),
          attrs.list_attr(Attr::kScatterDimsToOperandDims),   attrs.list_attr(Attr::kInputBatchingDims),
          attrs.list_attr(Attr::kScatterIndicesBatchingDims), attrs.int_attr(Attr::kIndexVectorDim)};
}

}  // namespace hlokit
