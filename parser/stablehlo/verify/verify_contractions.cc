// SPDX-License-Identifier: Apache-2.0
// Rules of dots and convolutions.
#include <algorithm>

#include "parser/mlir/convolution_numbers.h"
#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;

bool Rules::CheckPrecision() {
  const NodeId config = m.attribute(op, "precision_config");
  if (!config.valid() || n.kind(config) != NodeKind::kArray || n.child_count(config) <= 2) return true;
  return Fail("expects precision config to be empty or have <= 2 elements");
}

bool Rules::CheckDotGeneral() {
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
        number("rhs_component_count") == known.components && number("num_primitive_operations") == known.operations &&
        (known.lhs == "f8" || n.IntegerValue(n.Entry(algorithm, "allow_imprecise_accumulation")).value_or(0) == 0)) {
      return true;
    }
  }
  return Fail("dot algorithm not known to be supported on any hardware");
}

bool Rules::CheckDot() {
  const NodeId lhs = operand(0), rhs = operand(1);
  if (rank(lhs) < 1 || rank(lhs) > 2 || rank(rhs) < 1 || rank(rhs) > 2) {
    return FailInference("expected both lhs/rhs ranks to be either 1 or 2");
  }
  if (!SizesAgree(sizes(lhs).back(), sizes(rhs)[0])) {
    return FailInference(StrCat("contracting dimensions of lhs and rhs must have compatible sizes, but got ",
                                sizes(lhs).back(), " and ", sizes(rhs)[0]));
  }
  Ints shape;
  if (rank(lhs) == 2) shape.push_back(sizes(lhs)[0]);
  if (rank(rhs) == 2) shape.push_back(sizes(rhs)[1]);
  // The types of elements may differ: the result has one of its own.
  return CheckResults({TensorOf(shape, element(result()))});
}

bool Rules::CheckConvolution() {
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
  mlir::ConvolutionNumbers numbers;
  if (std::string message = mlir::ReadConvolutionNumbers(n, m.attribute(op, "dimension_numbers"), &numbers);
      !message.empty()) {
    return Fail(std::move(message));
  }
  Ints parts[3];
  size_t spatial[3] = {};
  for (size_t p = 0; p < 3; ++p) {
    const mlir::ConvolutionNumbers::Part& part = numbers.parts[p];
    parts[p] = {part.first, part.second};
    parts[p].insert(parts[p].end(), part.spatial.begin(), part.spatial.end());
    spatial[p] = part.spatial.size();
  }
  const auto [batch, feature, input_spatial] = numbers.parts[0];
  const auto [kernel_input, kernel_output, kernel_spatial] = numbers.parts[1];
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
  if (groups > 1 && batches > 1) {
    return Fail(StrCat("expects batch_group_count and feature_group_count not to be both greater than 1. Got ", batches,
                       " and ", groups, " resp."));
  }
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
  Ints window;
  for (int64_t d : kernel_spatial) window.push_back(size(rhs, d));
  return CheckWindow(spatial[0], window, "lhs_dilation", "rhs_dilation");
}

bool Rules::CheckConvolutionResult() {
  mlir::ConvolutionNumbers numbers;
  if (!mlir::ReadConvolutionNumbers(n, m.attribute(op, "dimension_numbers"), &numbers).empty()) return true;
  const auto& [input, kernel, output] = numbers.parts;
  const auto size = [&](NodeId type, int64_t d) { return sizes(type)[static_cast<size_t>(d)]; };
  Ints shape(sizes(operand(0)).size(), mlir::kDynamicSize);
  const int64_t batch = size(operand(0), input.first), groups = Int("batch_group_count", 1);
  shape[static_cast<size_t>(output.first)] = batch == mlir::kDynamicSize ? batch : batch / groups;
  shape[static_cast<size_t>(output.second)] = size(operand(1), kernel.second);
  const Ints strides = List("window_strides"), padding = List("padding"), base = List("lhs_dilation"),
             dilation = List("rhs_dilation");
  const auto at = [](const Ints& list, size_t i, int64_t absent) { return i < list.size() ? list[i] : absent; };
  const auto dilated = [](int64_t length, int64_t by, int64_t* result) {
    return length == 0 ? (*result = 0, true)
                       : !__builtin_mul_overflow(length - 1, by, result) && !__builtin_add_overflow(*result, 1, result);
  };
  for (size_t i = 0; i < input.spatial.size(); ++i) {
    const int64_t length = size(operand(0), input.spatial[i]), window = size(operand(1), kernel.spatial[i]);
    if (length == mlir::kDynamicSize || window == mlir::kDynamicSize) continue;
    int64_t whole = 0, extent = 0;
    if (!dilated(length, at(base, i, 1), &whole) || !dilated(window, at(dilation, i, 1), &extent) ||
        __builtin_add_overflow(whole, at(padding, 2 * i, 0), &whole) ||
        __builtin_add_overflow(whole, at(padding, 2 * i + 1, 0), &whole)) {
      return Fail(StrCat("window of spatial dimension ", i, " is too large"));
    }
    shape[static_cast<size_t>(output.spatial[i])] =
        whole < extent || whole <= 0 ? 0 : (whole - extent) / at(strides, i, 1) + 1;
  }
  if (ShapesAgree(shape, sizes(result()))) return true;
  return Fail(StrCat("inferred shape '[", ListText(shape), "]' is incompatible with return type of operation ",
                     TypesText({result()})));
}

bool Rules::CheckDynamicPadding() {
  const NodeId padding = operand(2);
  const int64_t shape[] = {rank(operand(0)) - 2, 2};
  if (rank(padding) != 2) return Fail(StrCat("expects padding to be of rank 2, but got ", rank(padding)));
  if (ShapesAgree(sizes(padding), shape)) return true;
  return Fail(
      StrCat("expects padding to be of shape [", ListText(shape), "], but got [", ListText(sizes(padding)), "]"));
}

}  // namespace hlokit::stablehlo
