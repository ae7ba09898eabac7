// SPDX-License-Identifier: Apache-2.0
#include "parser/mlir/bounds.h"

#include <algorithm>

#include "ir/core/str_cat.h"

namespace hlokit::mlir {

bool ReadBounds(const NodeTable& nodes, NodeId encoding, std::vector<int64_t>* bounds) {
  // #stablehlo.bounds<3, ?> or #mhlo.type_extensions<bounds = [3, ?]>
  if (nodes.kind(encoding) != NodeKind::kVerbatim && nodes.kind(encoding) != NodeKind::kFields) return false;
  std::string text = ToText(nodes, encoding);
  const size_t open = text.find_first_of("[<", text.find("bounds"));
  if (text.find("bounds") == std::string::npos || open == std::string::npos) return false;
  int64_t number = 0;
  bool digits = false;
  for (size_t i = open + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= '0' && c <= '9') {
      if (number > (int64_t{1} << 58)) return false;
      number = number * 10 + (c - '0');
      digits = true;
    } else if (c == '?') {
      number = kDynamicSize;
      digits = true;
    } else if (c == ',' || c == ']' || c == '>') {
      if (digits) bounds->push_back(number);
      number = 0;
      digits = false;
      if (c != ',') return true;
    }
  }
  return false;
}

std::vector<int64_t> BoundsOf(const NodeTable& nodes, NodeId type) {
  std::vector<int64_t> bounds;
  if (nodes.kind(type) != NodeKind::kTensorType || nodes.child_count(type) < 2 ||
      !ReadBounds(nodes, nodes.child(type, 1), &bounds) || bounds.size() != nodes.ints(type).size()) {
    return {};
  }
  return bounds;
}

NodeId MakeBounds(NodeTable* nodes, absl::Span<const int64_t> bounds) {
  if (std::all_of(bounds.begin(), bounds.end(), [](int64_t bound) { return bound == kDynamicSize; })) return {};
  std::string text = "#stablehlo.bounds<";
  for (size_t i = 0; i < bounds.size(); ++i) {
    StrAppend(&text, i == 0 ? "" : ", ");
    StrAppend(&text, bounds[i] == kDynamicSize ? std::string("?") : StrCat(bounds[i]));
  }
  return nodes->Make(NodeKind::kVerbatim, text + ">", {}, {});
}

std::string CheckBounds(absl::Span<const int64_t> sizes, absl::Span<const int64_t> bounds) {
  if (bounds.size() != sizes.size()) {
    return StrCat("Bounds length is ", bounds.size(), ", expected to be equal to rank(", sizes.size(),
                  ") of the tensor");
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == kDynamicSize || bounds[i] == kDynamicSize) continue;
    return StrCat("Static dimension ", i, " cannot have a bound, use ShapedType::kDynamic to indicate a missing bound");
  }
  return "";
}

}  // namespace hlokit::mlir
