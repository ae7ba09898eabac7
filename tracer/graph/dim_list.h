// SPDX-License-Identifier: Apache-2.0
// Integer lists in arguments of ops: sizes, dimensions.
#ifndef HLOKIT_TRACER_GRAPH_DIM_LIST_H_
#define HLOKIT_TRACER_GRAPH_DIM_LIST_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "ir/core/str_cat.h"

namespace hlokit::lazy {

using Dims = absl::Span<const int64_t>;
using IntList = absl::InlinedVector<int64_t, 4>;

// Returns "[2, 3]", the form of lists in torch's messages.
inline std::string ListToString(Dims values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) StrAppend(&text, i == 0 ? "" : ", ", values[i]);
  return text + "]";
}

// Returns "torch.Size([2, 3])", the form of torch's messages.
inline std::string SizeToString(Dims dims) { return StrCat("torch.Size(", ListToString(dims), ")"); }

// A list argument of a method: `1`, `{0, -1}`, a vector, or std::nullopt for None.
class DimList {
 public:
  DimList() = default;
  DimList(std::nullopt_t) {}                                                             // NOLINT
  DimList(int v) : none_(false), values_(1, v) {}                                        // NOLINT
  DimList(int64_t v) : none_(false), values_(1, v) {}                                    // NOLINT
  DimList(std::initializer_list<int64_t> v) : none_(false), values_(v) {}                // NOLINT
  DimList(Dims v) : none_(false), values_(v.begin(), v.end()) {}                         // NOLINT
  DimList(const std::vector<int64_t>& v) : none_(false), values_(v.begin(), v.end()) {}  // NOLINT
  DimList(IntList v) : none_(false), values_(std::move(v)) {}                            // NOLINT

  bool none() const { return none_; }
  const IntList& values() const& { return values_; }
  IntList values() && { return std::move(values_); }

 private:
  bool none_ = true;
  IntList values_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_GRAPH_DIM_LIST_H_
