// SPDX-License-Identifier: Apache-2.0
// Rules of operations on quantized elements.
#include <algorithm>

#include "parser/mlir/convolution_numbers.h"
#include "parser/mlir/quantized.h"
#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::OpKind;
using mlir::QuantizedType;

bool Rules::CheckQuantizedAdd() {
  const std::optional<QuantizedType> lhs = Quantized(operand(0)), rhs = Quantized(operand(1)),
                                     sum = Quantized(result());
  if (!lhs && !rhs && !sum) return true;
  if (!lhs || !rhs || !sum) return Fail("expects all operands and results to be either quantized or non-quantized");
  if (lhs->storage != rhs->storage || lhs->storage != sum->storage) {
    return Fail("mismatched operands and result quantization storage types");
  }
  if (lhs->expressed != rhs->expressed || lhs->expressed != sum->expressed) {
    return Fail("mismatched operands and result quantization expressed types");
  }
  if (!sum->axis && (lhs->axis || rhs->axis)) return Fail("result is not per_axis quantized but lhs or rhs are");
  for (const auto& [side, name] : {std::pair(&*lhs, "lhs"), std::pair(&*rhs, "rhs")}) {
    if (side->axis && side->axis != sum->axis) {
      return Fail(
          StrCat("quantization_dimension of ", name, " and result are not same ", *side->axis, " vs ", *sum->axis));
    }
  }
  return true;
}

bool Rules::CheckQuantizedSame() {
  const std::optional<QuantizedType> from = Quantized(operand(0)), to = Quantized(result());
  if (!from || !to) return true;
  if (from->axis.has_value() != to->axis.has_value()) {
    return Fail("expect both operand and result to be quantized per-axis or be quantized per-tensor");
  }
  if (from->storage != to->storage || from->expressed != to->expressed) return true;
  // Dimensions may be broadcast: then one pair becomes many.
  if (from->axis && from->scales.size() != to->scales.size()) return true;
  static constexpr OpKind kMoving[] = {OpKind::kStablehloBroadcastInDim, OpKind::kStablehloDynamicBroadcastInDim,
                                       OpKind::kStablehloReshape, OpKind::kStablehloDynamicReshape};
  if (from->axis && std::find(std::begin(kMoving), std::end(kMoving), op.kind()) != std::end(kMoving)) return true;
  if (from->scales == to->scales && from->zero_points == to->zero_points) return true;
  return Fail(from->axis ? "expect same quantization scales and zero_points"
                         : "expect same quantization scale and zero_point");
}

bool Rules::CheckQuantizedTranspose() {
  const std::optional<QuantizedType> from = Quantized(operand(0)), to = Quantized(result());
  if (!from || !to || !from->axis || !to->axis) return true;
  const Ints permutation = List("permutation");
  if (*to->axis >= static_cast<int64_t>(permutation.size()) ||
      permutation[static_cast<size_t>(*to->axis)] == *from->axis) {
    return true;
  }
  return Fail(StrCat("operand quantization_dimension ", *from->axis, " is not same as permutation[", *to->axis,
                     "] = ", permutation[static_cast<size_t>(*to->axis)]));
}

bool Rules::CheckQuantizedReshape() {
  const std::optional<QuantizedType> from = Quantized(operand(0)), to = Quantized(result());
  if (!from || !to || !from->axis || !to->axis) return true;
  const auto a = static_cast<size_t>(*from->axis), b = static_cast<size_t>(*to->axis);
  if (!SizesAgree(sizes(operand(0))[a], sizes(result())[b])) {
    return Fail("expect same quantization dimension size for operand and result");
  }
  if (from->scales != to->scales || from->zero_points != to->zero_points) {
    return Fail("expect same quantization scales and zero_points");
  }
  const auto before = [&](NodeId type, size_t axis) {
    int64_t product = 1;
    for (int64_t size : sizes(type).subspan(0, axis)) {
      if (size == mlir::kDynamicSize || __builtin_mul_overflow(product, size, &product)) return int64_t{-1};
    }
    return product;
  };
  const int64_t left = before(operand(0), a), right = before(result(), b);
  if (left < 0 || right < 0 || left == right) return true;
  return Fail("product of dimensions before quantization dimension must match between operand and result");
}

bool Rules::CheckQuantizedBroadcast() {
  const std::optional<QuantizedType> from = Quantized(operand(0)), to = Quantized(result());
  if (!from || !to || !from->axis || !to->axis) return true;
  const auto axis = static_cast<size_t>(*from->axis);
  const Ints dimensions = List("broadcast_dimensions");
  if (axis >= dimensions.size()) return true;
  if (*to->axis != dimensions[axis]) {
    return Fail(StrCat("result quantization_dimension ", *to->axis, " not same as broadcast_dimensions[", axis,
                       "] = ", dimensions[axis]));
  }
  if (sizes(operand(0))[axis] != 1) return true;
  const auto text = [&](double scale) {
    std::string number;
    mlir::AppendFloat(scale, "f64", &number);
    return number;
  };
  for (size_t i = 0; i < to->scales.size(); ++i) {
    if (to->scales[i] != from->scales[0]) {
      return Fail(StrCat("mismatch result scale ", i, " (", text(to->scales[i]), ") and operand scale 0 (",
                         text(from->scales[0]), ")"));
    }
    if (to->zero_points[i] != from->zero_points[0]) {
      return Fail(StrCat("mismatch result zero_point ", i, " (", to->zero_points[i], ") and operand zero_point 0 (",
                         from->zero_points[0], ")"));
    }
  }
  return true;
}

// What dots and convolutions have in common.
bool Rules::CheckQuantizedContraction() {
  const NodeId lhs = operand(0), rhs = operand(1);
  const std::optional<QuantizedType> a = Quantized(lhs), b = Quantized(rhs), to = Quantized(result());
  if (!a && !b) return true;
  if (!b)
    return Fail(
        "rhs should be quantized for quantized operations and is_quantized(lhs)=is_quantized(result) should hold");
  for (int64_t zero : b->zero_points) {
    if (op.kind() == OpKind::kStablehloDotGeneral && zero != 0) {
      return Fail(b->axis ? "Zero points of rhs should be 0" : "Zero point of rhs should be 0");
    }
  }
  if (a.has_value() != to.has_value()) {
    return Fail(
        "rhs should be quantized for quantized operations and is_quantized(lhs)=is_quantized(result) should hold");
  }
  if (a) {
    if (a->storage != b->storage) return Fail("mismatched lhs and rhs quantization storage types");
    if (a->expressed != b->expressed || a->expressed != to->expressed) {
      return Fail("mismatched lhs, rhs and result quantization expressed types");
    }
    if (!b->axis && to->axis) return Fail("mismatched rhs and result quantization granularity");
    return true;
  }
  if (Text(element(lhs)) == b->expressed && Text(element(result())) == b->expressed) return true;
  return Fail("mismatched rhs quantization expressed type and lhs and result element type");
}

bool Rules::CheckQuantizedDot() { return CheckQuantizedContraction(); }

bool Rules::CheckQuantizedConvolution() {
  if (!CheckQuantizedContraction()) return false;
  const std::optional<QuantizedType> b = Quantized(operand(1)), to = Quantized(result());
  mlir::ConvolutionNumbers numbers;
  if (!mlir::ReadConvolutionNumbers(n, m.attribute(op, "dimension_numbers"), &numbers).empty()) return true;
  if (b && b->axis && *b->axis != numbers.parts[1].second) {
    return Fail("quantization dimension of rhs should be same with kernel_output_feature_dimension");
  }
  if (to && to->axis && *to->axis != numbers.parts[2].second) {
    return Fail("quantization dimension of result should be same with output_feature_dimension");
  }
  return true;
}

bool Rules::CheckQuantize() {
  const std::optional<QuantizedType> from = Quantized(operand(0)), to = Quantized(result());
  if (!to) return true;
  const std::string expressed = from ? std::string(from->expressed) : Text(element(operand(0)));
  if (expressed == to->expressed) return true;
  return Fail(StrCat("Expressed type of result expected to be '", expressed, "', but got '", to->expressed, "'"));
}

}  // namespace hlokit::stablehlo
