// SPDX-License-Identifier: Apache-2.0
// Rules of dots and convolutions.
#include <algorithm>

#include "parser/stablehlo/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

bool Rules::CheckPrecision() {
  const NodeId config = m.attribute(op, "precision_config");
  if (!config.valid() || n.kind(config) != NodeKind::kArray || n.child_count(config) <= 2) return true;
  return Fail("expects precision config to be empty or have <= 2 elements");
}

bool Rules::CheckDotGeneral() {
  if (!CheckPrecision()) return false;
  const NodeId numbers = m.attribute(op, "dot_dimension_numbers");
  if (n.kind(numbers) != NodeKind::kFields) return true;
  const NodeId lhs = operand(0), rhs = operand(1);
  const Ints lb = Field(numbers, "lhs_batching_dimensions"), rb = Field(numbers, "rhs_batching_dimensions"),
             lc = Field(numbers, "lhs_contracting_dimensions"), rc = Field(numbers, "rhs_contracting_dimensions");
  if (lb.size() != rb.size()) return Fail("lhs and rhs should have the same number of batching dimensions");
  if (lc.size() != rc.size()) return Fail("lhs and rhs should have the same number of contracting dimensions");
  const auto unique = [&](const Ints& a, const Ints& b, std::string_view side) {
    Ints seen;
    for (const Ints* list : {&a, &b}) {
      for (int64_t d : *list) {
        if (std::find(seen.begin(), seen.end(), d) != seen.end()) {
          return Fail(StrCat("has duplicated dimension from ", side, "_batching_dimensions and ", side,
                             "_contracting_dimensions: ", d));
        }
        seen.push_back(d);
      }
    }
    return true;
  };
  const auto in_range = [&](const Ints& list, std::string_view name, int64_t limit) {
    for (int64_t d : list) {
      if (d < 0 || d >= limit) return Fail(StrCat(name, " value: ", d, " is out of range: [0, ", limit, ")"));
    }
    return true;
  };
  if (!unique(lb, lc, "lhs") || !unique(rb, rc, "rhs")) return false;
  if (!in_range(lb, "lhs_batching_dimensions", rank(lhs)) || !in_range(lc, "lhs_contracting_dimensions", rank(lhs)) ||
      !in_range(rb, "rhs_batching_dimensions", rank(rhs)) || !in_range(rc, "rhs_contracting_dimensions", rank(rhs))) {
    return false;
  }
  const auto agree = [&](const Ints& a, const Ints& b, std::string_view what) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (SizesAgree(sizes(lhs)[static_cast<size_t>(a[i])], sizes(rhs)[static_cast<size_t>(b[i])])) continue;
      return Fail(StrCat(what, " dimension sizes must match for lhs/rhs"));
    }
    return true;
  };
  if (!agree(lb, rb, "batching") || !agree(lc, rc, "contracting")) return false;
  const NodeId algorithm = m.attribute(op, "algorithm");
  if (!algorithm.valid() || n.kind(algorithm) != NodeKind::kFields) return true;
  if (const NodeId config = m.attribute(op, "precision_config"); config.valid() && n.kind(config) == NodeKind::kArray) {
    for (NodeId item : n.children(config)) {
      if (n.kind(item) == NodeKind::kEnum && n.str(StringId(static_cast<uint32_t>(n.ints(item)[0]))) != "DEFAULT") {
        return Fail("must specify DEFAULT precision config when algorithm is set");
      }
    }
  }
  for (std::string_view side : {"lhs", "rhs"}) {
    const int64_t components = n.IntegerValue(n.Entry(algorithm, StrCat(side, "_component_count"))).value_or(1);
    if (components < 1) return Fail(StrCat(side, " component count must be positive"));
  }
  // The combinations that hardware has.
  struct Known {
    std::string_view lhs, rhs, sum;
    int64_t components, operations;
  };
  static constexpr Known kKnown[] = {
      {"f8", "f8", "f32", 1, 1},      {"f16", "f16", "f16", 1, 1},   {"f16", "f16", "f32", 1, 1},
      {"bf16", "bf16", "bf16", 1, 1}, {"bf16", "bf16", "f32", 1, 1}, {"bf16", "bf16", "f32", 2, 3},
      {"bf16", "bf16", "f32", 3, 6},  {"bf16", "bf16", "f32", 3, 9}, {"bf16", "bf16", "f32", 1, 3},
      {"bf16", "bf16", "f32", 1, 6},  {"bf16", "bf16", "f32", 1, 9}, {"tf32", "tf32", "f32", 1, 1},
      {"tf32", "tf32", "f32", 1, 3},  {"tf32", "tf32", "f32", 2, 3}, {"f32", "f32", "f32", 1, 1},
      {"f64", "f64", "f64", 1, 1}};
  const auto type = [&](std::string_view name) {
    const NodeId entry = n.Entry(algorithm, name);
    const std::string text = entry.valid() ? mlir::ToText(n, entry) : "";
    return text.starts_with("f8") ? std::string("f8") : text;
  };
  const auto number = [&](std::string_view name) { return n.IntegerValue(n.Entry(algorithm, name)).value_or(1); };
  for (const Known& known : kKnown) {
    if (type("lhs_precision_type") == known.lhs && type("rhs_precision_type") == known.rhs &&
        type("accumulation_type") == known.sum && number("lhs_component_count") == known.components &&
        number("rhs_component_count") == known.components && number("num_primitive_operations") == known.operations) {
      return true;
    }
  }
  return Fail("dot algorithm not known to be supported on any hardware");
}

bool Rules::CheckConvolution() {
  if (!CheckPrecision()) return false;
  const NodeId lhs = operand(0), rhs = operand(1);
  if (!IsQuantized(lhs) && !IsQuantized(rhs) && element(lhs) != element(rhs)) {
    return Fail(StrCat("expects lhs and rhs to have compatible element type. Got: '", Text(element(lhs)), "' and '",
                       Text(element(rhs)), "'"));
  }
  if (rank(lhs) < 2) {
    return Fail(
        StrCat("expects convolution arguments to have >= 2 dimensions. Got: '", Text(lhs), "' and '", Text(rhs), "'."));
  }
  if (rank(lhs) != rank(rhs)) {
    return Fail(StrCat("expects convolution arguments to have same number of dimensions. Got: '", Text(lhs), "' and '",
                       Text(rhs), "'."));
  }
  const NodeId numbers = m.attribute(op, "dimension_numbers");
  // [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], or named fields, as places of batch, feature and spatial dimensions.
  Ints parts[3];
  size_t spatial[3] = {};
  int64_t batch = 0, feature = 0, kernel_input = 0, kernel_output = 0;
  Ints kernel_spatial;
  if (n.kind(numbers) == NodeKind::kVerbatim && n.text(numbers).find('[') != std::string_view::npos) {
    std::string_view text = n.text(numbers);
    for (size_t p = 0; p < 3; ++p) {
      const size_t open = text.find('['), close = text.find(']');
      if (open == std::string_view::npos || close == std::string_view::npos || close < open) return true;
      std::string_view list = text.substr(open + 1, close - open - 1);
      int64_t at = 0;
      std::vector<std::pair<int64_t, int64_t>> numbered;
      while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        std::string_view word = list.substr(0, comma);
        while (word.starts_with(' ')) word.remove_prefix(1);
        while (word.ends_with(' ')) word.remove_suffix(1);
        if (p == 0 && word == "b") batch = at;
        if (p == 0 && word == "f") feature = at;
        if (p == 1 && word == "i") kernel_input = at;
        if (p == 1 && word == "o") kernel_output = at;
        if (!word.empty() && word[0] >= '0' && word[0] <= '9') numbered.push_back({word[0] - '0', at});
        ++at;
        list.remove_prefix(std::min(comma + 1, list.size()));
      }
      std::sort(numbered.begin(), numbered.end());
      if (p == 1) {
        for (const auto& entry : numbered) kernel_spatial.push_back(entry.second);
      }
      spatial[p] = numbered.size();
      for (int64_t i = 0; i < at; ++i) parts[p].push_back(i);
      text.remove_prefix(close + 1);
    }
    if (batch >= rank(lhs) || feature >= rank(lhs)) batch = feature = 0;
  } else if (n.kind(numbers) == NodeKind::kFields) {
    const auto one = [&](std::string_view name) { return n.IntegerValue(n.Entry(numbers, name)).value_or(0); };
    constexpr std::string_view kNames[3][3] = {
        {"input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"},
        {"kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"},
        {"output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"}};
    for (size_t p = 0; p < 3; ++p) {
      parts[p] = {one(kNames[p][0]), one(kNames[p][1])};
      const Ints places = Field(numbers, kNames[p][2]);
      spatial[p] = places.size();
      parts[p].insert(parts[p].end(), places.begin(), places.end());
    }
    batch = parts[0][0];
    feature = parts[0][1];
    kernel_input = parts[1][0];
    kernel_output = parts[1][1];
    kernel_spatial = Field(numbers, kNames[1][2]);
  } else {
    return true;
  }
  if (spatial[0] != spatial[1] || spatial[0] != spatial[2]) {
    return Fail(StrCat("expects the same size for input, kernel and output spatial-dimensions, but got ", spatial[0],
                       ", ", spatial[1], ", and ", spatial[2], " resp."));
  }
  if (static_cast<int64_t>(spatial[0]) + 2 != rank(lhs)) {
    return Fail(StrCat("expects convolution arguments to have ", spatial[0] + 2, " dimensions. Got: ", rank(lhs)));
  }
  constexpr std::string_view kWhich[] = {"input", "kernel", "output"};
  for (const Ints& places : parts) {
    for (int64_t d : places) {
      if (d < 0 || d >= rank(lhs)) {
        return Fail(StrCat("expects input, kernel, and output dimension-numbers to be in-range [0, ", rank(lhs), ")."));
      }
    }
  }
  for (size_t p = 0; p < 3; ++p) {
    Ints copy = parts[p];
    std::sort(copy.begin(), copy.end());
    if (std::adjacent_find(copy.begin(), copy.end()) == copy.end()) continue;
    return Fail(StrCat("expects ", kWhich[p], " dimension-numbers to be unique, got {", ListText(parts[p]), "}."));
  }
  const int64_t groups = Int("feature_group_count", 1), batches = Int("batch_group_count", 1);
  const auto size = [&](NodeId type, int64_t d) { return sizes(type)[static_cast<size_t>(d)]; };
  const auto divides = [](int64_t divisor, int64_t value) {
    return value == mlir::kDynamicSize || value % divisor == 0;
  };
  if (!divides(batches, size(lhs, batch))) {
    return Fail(StrCat("expects input batch dimension (", size(lhs, batch),
                       ") to be divisible by batch_group_count. Got batch_group_count = ", batches, "."));
  }
  if (!divides(groups, size(lhs, feature))) {
    return Fail(StrCat("expects input feature dimension (", size(lhs, feature),
                       ") to be a multiple of feature_group_count. Got feature_group_count = ", groups, "."));
  }
  if (size(lhs, feature) != mlir::kDynamicSize && !SizesAgree(size(lhs, feature) / groups, size(rhs, kernel_input))) {
    return Fail(StrCat("expects input feature dimension (", size(lhs, feature),
                       ") / feature_group_count = kernel input feature dimension (", size(rhs, kernel_input),
                       "). Got feature_group_count = ", groups, "."));
  }
  if (!divides(batches, size(rhs, kernel_output))) {
    return Fail(StrCat("expects output feature dimension size (", size(rhs, kernel_output),
                       ") to be a multiple of batch_group_count. Got batch_group_count = ", batches, "."));
  }
  if (!divides(groups, size(rhs, kernel_output))) {
    return Fail(StrCat("expects kernel output feature dimension (", size(rhs, kernel_output),
                       ") to be divisible by feature_group_count. For feature_group_count = ", groups, "."));
  }
  if (groups > 1 && batches > 1) {
    return Fail(StrCat("expects batch_group_count and feature_group_count not to be both greater than 1. Got ", batches,
                       " and ", groups, " resp."));
  }
  Ints window;
  for (int64_t d : kernel_spatial) window.push_back(size(rhs, d));
  return CheckWindow(spatial[0], window, "lhs_dilation", "rhs_dilation");
}

}  // namespace hlokit::stablehlo
