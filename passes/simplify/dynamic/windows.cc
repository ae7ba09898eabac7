// SPDX-License-Identifier: Apache-2.0
// Inference of dynamic sizes for windows that move over arrays.
#include <algorithm>
#include <cstring>
#include <limits>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "passes/simplify/dynamic/padder.h"

namespace hlokit {
namespace {

// Which of two elements a select-and-scatter selects: it must be known that it is never one beyond the size.
enum class Selected : uint8_t { kUnknown, kGreatest, kLeast };

Selected SelectedBy(Computation select) {
  const Instruction root = select.root();
  if (root.opcode() != Opcode::kCompare || root.operand(0).opcode() != Opcode::kParameter ||
      root.operand(1).opcode() != Opcode::kParameter || root.operand(0) == root.operand(1)) {
    return Selected::kUnknown;
  }
  const bool in_order = root.operand(0).parameter_number() == 0;
  switch (root.enum_attr(Attr::kDirection, ComparisonDirection::kEq)) {
    case ComparisonDirection::kGe:
    case ComparisonDirection::kGt:
      return in_order ? Selected::kGreatest : Selected::kLeast;
    case ComparisonDirection::kLe:
    case ComparisonDirection::kLt:
      return in_order ? Selected::kLeast : Selected::kGreatest;
    case ComparisonDirection::kEq:
    case ComparisonDirection::kNe:
      return Selected::kUnknown;
  }
  return Selected::kUnknown;
}

// Returns the least or greatest value of a type: an infinity, if it has them; an invalid literal for other types.
Literal Extreme(Shape scalar, bool least) {
  const ElementType type = scalar.element_type();
  const int bits = BitsOf(type);
  Literal literal = Literal::Zeros(scalar);
  uint64_t value = 0;
  if (IsInteger(type) && bits >= 8) {
    const uint64_t all = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1, sign = uint64_t{1} << (bits - 1);
    value = IsSigned(type) ? (least ? sign : all ^ sign) : (least ? 0 : all);
  } else if (type == ElementType::kF32) {
    value = least ? 0xff800000U : 0x7f800000U;
  } else if (type == ElementType::kF64) {
    value = least ? 0xfff0000000000000U : 0x7ff0000000000000U;
  } else if (type == ElementType::kBF16) {
    value = least ? 0xff80U : 0x7f80U;
  } else if (type == ElementType::kF16) {
    value = least ? 0xfc00U : 0x7c00U;
  } else {
    return Literal();
  }
  std::memcpy(literal.data(), &value, literal.size_bytes());
  return literal;
}

}  // namespace

InstructionId Padder::WindowCount(InstructionId size, int64_t bound, const WindowDim& w) {
  if (w.base_dilation != 1) {
    // Elements lie `base_dilation` apart; no elements take no space.
    const InstructionId gaps = Binary(Opcode::kMaximum, Plus(size, -1), Number(0));
    const InstructionId any = Binary(Opcode::kMinimum, size, Number(1));
    size = Binary(Opcode::kAdd, Binary(Opcode::kMultiply, gaps, Number(w.base_dilation)), any);
  }
  const int64_t reach = (w.size - 1) * w.window_dilation + 1;
  // Windows that are further apart than the dimension is long: there is one, whatever the stride.
  const int64_t dilated = SaturatingAdd(SaturatingMultiply(bound, w.base_dilation), 1);
  const int64_t longest = SaturatingAdd(dilated, std::max<int64_t>(SaturatingAdd(w.padding_low, w.padding_high), 0));
  const int64_t stride = std::min(w.stride, longest);
  const int64_t more = w.padding_low + w.padding_high - reach + stride;
  InstructionId count = Plus(size, more);
  if (more < 0) count = Binary(Opcode::kMaximum, count, Number(0));
  if (stride != 1) count = Binary(Opcode::kDivide, count, Number(stride));
  return count;
}

absl::StatusOr<Padder::InferredSizes> Padder::InferReduceWindow(Instruction i) {
  const int64_t arrays = i.operand_count() / 2;
  const WindowView window = WindowView::Of(i);
  const Shape shape = i.operand(0).shape();
  Sizes sizes(static_cast<size_t>(shape.rank()));
  for (int64_t d = 0; d < shape.rank(); ++d) {
    InstructionId size;
    for (int64_t k = 0; k < arrays && !size.valid(); ++k) size = SizeOf(i.operand(k).id(), d);
    if (!size.valid()) continue;
    // Windows that reach beyond the size read the padding value.
    for (int64_t k = 0; k < arrays; ++k) Mask(i, k, d, size, i.operand(arrays + k).id());
    sizes[static_cast<size_t>(d)] = WindowCount(size, shape.dim(d), window[d]);
  }
  InferredSizes result;
  for (int64_t k = 0; k < arrays; ++k) result.sizes.insert(result.sizes.end(), sizes.begin(), sizes.end());
  return result;
}

// Elements beyond the size are never selected, but by windows beyond it, whose source elements add nothing.
absl::StatusOr<Padder::InferredSizes> Padder::InferSelectAndScatter(Instruction i) {
  const Selected selected = SelectedBy(i.computation_attr(Attr::kSelect));
  const Instruction scatter = i.computation_attr(Attr::kScatter).root();
  const Shape scalar = shapes().Scalar(i.shape().element_type());
  const Literal worst = Extreme(scalar, selected == Selected::kGreatest);
  const InstructionId operand = i.operand(0).id(), source = i.operand(1).id();
  if (selected == Selected::kUnknown || !worst.shape().valid()) {
    return CannotPad(i, "it does not select the greatest or least element");
  }
  if (scatter.opcode() != Opcode::kAdd) return CannotPad(i, "it does not add what it scatters");
  for (int64_t d = 0; d < i.shape().rank(); ++d) {
    if (const InstructionId size = SizeOf(operand, d); size.valid()) {
      Mask(i, 0, d, size, builder_.MakeConstant(worst));
    }
    InstructionId count = SizeOf(source, d);
    if (!count.valid() && SizeOf(operand, d).valid()) {
      count = WindowCount(SizeOf(operand, d), i.operand(0).shape().dim(d), WindowView::Of(i)[d]);
    }
    if (count.valid()) Mask(i, 1, d, count, Zero(scalar.element_type()));
  }
  Sizes sizes = SizesOf(operand);
  sizes.resize(static_cast<size_t>(i.shape().rank()));
  return InferredSizes{std::move(sizes), {}};
}

// Elements beyond the size of a feature or spatial dimension count as zeros, like padding.
absl::StatusOr<Padder::InferredSizes> Padder::InferConvolution(Instruction i) {
  if (i.operand_count() != 2) return CannotPad(i, "the operands are sparse");
  const ConvolutionDims dims = ConvolutionDims::Of(i);
  const WindowView window = WindowView::Of(i);
  const InstructionId input = i.operand(0).id(), kernel = i.operand(1).id();
  const auto mask = [&](int64_t operand, int64_t dim, InstructionId size) {
    Mask(i, operand, dim, size, Zero(i.operand(operand).shape().element_type()));
  };
  InferredSizes result{Sizes(static_cast<size_t>(i.shape().rank())), {}};
  if (const InstructionId batch = SizeOf(input, dims.input_batch); batch.valid()) {
    if (i.int_attr(Attr::kBatchGroupCount, 1) != 1) return CannotPad(i, "the batch is dynamic and has groups");
    result.sizes[static_cast<size_t>(dims.output_batch)] = batch;
  }
  InstructionId features = SizeOf(input, dims.input_feature);
  if (!features.valid()) features = SizeOf(kernel, dims.kernel_input_feature);
  if (features.valid()) {
    if (i.int_attr(Attr::kFeatureGroupCount, 1) != 1) return CannotPad(i, "the features are dynamic and have groups");
    mask(0, dims.input_feature, features);
    mask(1, dims.kernel_input_feature, features);
  }
  if (SizeOf(kernel, dims.kernel_output_feature).valid()) {
    result.sizes[static_cast<size_t>(dims.output_feature)] = SizeOf(kernel, dims.kernel_output_feature);
  }
  for (int64_t s = 0; s < dims.spatial_rank(); ++s) {
    if (SizeOf(kernel, dims.kernel_spatial[s]).valid()) {
      return CannotPad(i, StrCat("spatial dimension ", s, " of the kernel is dynamic"));
    }
    const InstructionId size = SizeOf(input, dims.input_spatial[s]);
    if (!size.valid()) continue;
    mask(0, dims.input_spatial[s], size);
    result.sizes[static_cast<size_t>(dims.output_spatial[s])] =
        WindowCount(size, i.operand(0).shape().dim(dims.input_spatial[s]), window[s]);
  }
  return result;
}

}  // namespace hlokit
