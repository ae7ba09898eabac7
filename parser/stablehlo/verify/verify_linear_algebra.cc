// SPDX-License-Identifier: Apache-2.0
// Rules of transforms, decompositions, normalization and random numbers.
#include <algorithm>

#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::kDynamicSize;
using mlir::NodeId;
using mlir::NodeKind;

bool Rules::CheckFft() {
  const Ints length = List("fft_length");
  const NodeId kind_attribute = m.attribute(op, "fft_type");
  const std::string_view kind = n.str(StringId(static_cast<uint32_t>(n.ints(kind_attribute)[0])));
  const bool real_in = kind == "RFFT", real_out = kind == "IRFFT";
  const NodeId from = operand(0);
  const bool complex = n.kind(element(from)) == NodeKind::kComplexType;
  if (length.empty() || length.size() > 3) {
    return FailInference(StrCat("rank must be between 1 and 3, but got ", length.size(), "."));
  }
  if (real_in && (complex || (Text(element(from)) != "f32" && Text(element(from)) != "f64"))) {
    return FailInference(StrCat("RFFT requires f32 or f64 input type, but is given '", Text(element(from)), "'."));
  }
  if (!real_in && !complex) {
    return FailInference(StrCat("FFT/IFFT/IRFFT take a complex tensor as input, but is given '", Text(from), "'."));
  }
  if (rank(from) < static_cast<int64_t>(length.size())) {
    return FailInference(StrCat("operand rank must not be less than fft rank of ", length.size(),
                                " for operand of type '", Text(from), "'"));
  }
  Ints shape(sizes(from).begin(), sizes(from).end());
  const size_t first = shape.size() - length.size();
  for (size_t i = 0; i < length.size(); ++i) {
    const int64_t size = shape[first + i];
    const bool last = i + 1 == length.size();
    if (real_in && !SizesAgree(size, length[i])) {
      return FailInference(StrCat("RFFT requires innermost dimensions to be compatible with fft_length. Got: ",
                                  ListText(shape), " but wanted ", ListText(length), "."));
    }
    if (real_out && !last && !SizesAgree(size, length[i])) {
      return FailInference(
          StrCat("IRFFT requires non-final dimensions to be compatible with fft_length. Got: ", ListText(shape),
                 " but wanted ", ListText(length), ", and ", size, " != ", length[i], "."));
    }
  }
  const int64_t last = length.back();
  if (real_out && !SizesAgree(shape.back(), last / 2 + 1)) {
    return FailInference(StrCat("IRFFT requires innermost dimension to be compatible with fft_length[-1]/2+1. Got: ",
                                shape.back(), " but fft_length is ", last, "."));
  }
  NodeId type = element(from);
  if (real_in) {
    type = const_cast<mlir::NodeTable&>(n).Make(NodeKind::kComplexType, "", {}, {&type, 1});
    shape.back() = last == 0 ? 0 : last / 2 + 1;
  } else if (real_out) {
    type = n.child(type, 0);
    shape.back() = last;
  }
  return CheckResults({TensorOf(shape, type)});
}

bool Rules::CheckCholesky() {
  const NodeId a = operand(0);
  if (rank(a) < 2)
    return FailInference(StrCat("argument 'a' must have rank >= 2, got shape ", ListText(sizes(a)), "."));
  const size_t last = sizes(a).size() - 1;
  if (SizesAgree(sizes(a)[last], sizes(a)[last - 1])) return true;
  return FailInference(StrCat("minor dimensions of 'a' must have equal size, got shape ", ListText(sizes(a)), "."));
}

bool Rules::CheckTriangularSolve() {
  const NodeId a = operand(0), b = operand(1);
  if (rank(a) < 2) return FailInference(StrCat("operand 'a' must have rank >= 2, but got '", Text(a), "'"));
  const size_t last = sizes(a).size() - 1;
  if (!SizesAgree(sizes(a)[last], sizes(a)[last - 1])) {
    return FailInference(StrCat("two minor dimensions of operand 'a' must be compatible, but got '", Text(a), "'"));
  }
  if (rank(a) != rank(b)) {
    return FailInference(StrCat("operands must have equal rank, but got '", Text(a), "' and '", Text(b), "'"));
  }
  const bool left = Int("left_side") != 0;
  if (!SizesAgree(sizes(a)[last], sizes(b)[left ? last - 1 : last])) {
    return FailInference(
        StrCat("shared dimension of operands 'a' and 'b' does not match, but got '", Text(a), "' and '", Text(b), "'"));
  }
  if (!ShapesAgree(sizes(a).subspan(0, last - 1), sizes(b).subspan(0, last - 1))) {
    return FailInference(
        StrCat("batch dimensions of the operands must be compatible, but got '", Text(a), "' and '", Text(b), "'"));
  }
  const NodeId transpose = m.attribute(op, "transpose_a");
  if (n.kind(transpose) == NodeKind::kEnum &&
      n.str(StringId(static_cast<uint32_t>(n.ints(transpose)[0]))) == "TRANSPOSE_INVALID") {
    return FailInference("Invalid transpose option value for triangular solve");
  }
  return CheckResults({b});
}

bool Rules::CheckBatchNorm() {
  // Vectors have the size of the feature dimension; the others are as large as the operand.
  const int64_t feature = Int("feature_index");
  const NodeId from = operand(0);
  NodeId vector;
  for (size_t i = 0; i < op.operand_count; ++i) {
    const bool multi = op.definition->operands[i].constraint == op.definition->operands[0].constraint;
    if (multi && !ShapesAgree(sizes(operand(i)), sizes(from))) {
      return FailInference("expects multi-dimensional operands to have compatible shapes.");
    }
    if (multi) continue;
    if (vector.valid() && !ShapesAgree(sizes(operand(i)), sizes(vector))) {
      return FailInference("expects single-dimensional operands to have compatible shapes.");
    }
    vector = operand(i);
  }
  if (feature < 0 || feature >= rank(from)) {
    return FailInference(StrCat("expects featureIndex to be smaller than the rank of multi-dimensional operands; got ",
                                "featureIndex ", feature, ", and rank ", rank(from), "."));
  }
  const int64_t count = sizes(from)[static_cast<size_t>(feature)];
  for (size_t i = 0; i < op.operand_count; ++i) {
    if (op.definition->operands[i].constraint == op.definition->operands[0].constraint) continue;
    if (SizesAgree(sizes(operand(i))[0], count)) continue;
    return FailInference(StrCat("expects the size of single-dimensional operands to be compatible with feature count, ",
                                "but the size of single-dimensional operands is ", sizes(operand(i))[0],
                                " and the feature count is ", count, "."));
  }
  std::vector<NodeId> types = {from};
  const int64_t one[] = {count};
  for (size_t i = 1; i < op.result_count; ++i) types.push_back(TensorOf(one, element(from)));
  return CheckResults(types);
}

bool Rules::CheckRng() {
  for (size_t i : {size_t{0}, size_t{1}}) {
    if (rank(operand(i)) != 0) return FailInference("expects a and b to be scalars");
  }
  const int64_t count = sizes(operand(2))[0];
  const std::optional<Ints> constant = ConstantOf(2);
  if (count == kDynamicSize) return true;
  constexpr int64_t kMaxRank = 1 << 10;
  if (count > kMaxRank) return FailInference("the shape has too many dimensions");
  const Ints shape = constant ? *constant : Ints(static_cast<size_t>(count), kDynamicSize);
  return CheckResults({TensorOf(shape, element(operand(0)))});
}

bool Rules::CheckRngState() {
  if (TypesInfer(operand(0), result())) return true;
  return Fail(StrCat("output state shape must be compatible with initial state shape. Got: '", Text(operand(0)),
                     "' and '", Text(result()), "'"));
}

}  // namespace hlokit::stablehlo
