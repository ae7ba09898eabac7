// SPDX-License-Identifier: Apache-2.0
// Rules of operations that move data.
#include <algorithm>

#include "parser/mlir/bounds.h"
#include "parser/stablehlo/verify/verify_rules.h"

namespace hlokit::stablehlo {

using mlir::kDynamicSize;
using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

std::optional<Rules::Ints> Rules::ConstantOf(size_t i) const {
  const mlir::OperationId id = m.values[m.operands_of(op)[i].value].definition;
  if (!id.valid()) return std::nullopt;
  if (m.kind(id) != OpKind::kStablehloConstant && m.kind(id) != OpKind::kArithConstant) return std::nullopt;
  return n.Integers(m.attribute(m.op(id), "value"));
}

bool Rules::CheckIota() {
  const int64_t dimension = Int("iota_dimension");
  if (rank(result()) == 0) return Fail("does not support scalars.");
  if (dimension >= 0 && dimension < rank(result())) return true;
  return Fail("iota dimension cannot go beyond the output rank or be negative.");
}

bool Rules::CheckBroadcast() {
  const Ints added = List("broadcast_sizes"), bounds = mlir::BoundsOf(n, operand(0));
  Ints shape = added;
  for (int64_t size : added) {
    if (size < 0) return FailInference(StrCat("Broadcast with negative dimension size ", size));
  }
  shape.insert(shape.end(), sizes(operand(0)).begin(), sizes(operand(0)).end());
  Ints all(bounds.empty() ? 0 : added.size(), kDynamicSize);
  all.insert(all.end(), bounds.begin(), bounds.end());
  return CheckResults({TensorOf(shape, element(operand(0)), all)});
}

bool Rules::CheckBroadcastInDim() {
  const NodeId from = operand(0), to = result();
  const Ints dimensions = List("broadcast_dimensions");
  if (static_cast<int64_t>(dimensions.size()) != rank(from)) {
    return Fail(
        StrCat("broadcast_dimensions size (", dimensions.size(), ") does not match operand rank (", rank(from), ")"));
  }
  Ints copy = dimensions;
  std::sort(copy.begin(), copy.end());
  if (std::adjacent_find(copy.begin(), copy.end()) != copy.end())
    return Fail("broadcast_dimensions should not have duplicates");
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const int64_t d = dimensions[i];
    if (d < 0 || d >= rank(to)) {
      return Fail(StrCat("broadcast_dimensions contains invalid value ", d, " for result with rank ", rank(to)));
    }
    const int64_t size = sizes(from)[i], wide = sizes(to)[static_cast<size_t>(d)];
    if (size == 1 || SizesAgree(size, wide)) continue;
    return Fail(StrCat("size of operand dimension ", i, " (", size, ") is not ",
                       op.kind() == OpKind::kStablehloBroadcastInDim ? "equal to 1 or" : "compatible with",
                       " size of result dimension ", d, " (", wide, ")"));
  }
  return true;
}

bool Rules::CheckBitcastConvert() {
  // The bits of an element, or of the storage of a quantized one; 0 if they are not known.
  const auto bits_of = [&](NodeId type) -> int64_t {
    if (const std::optional<mlir::QuantizedType> quantized = Quantized(type)) return quantized->width;
    const std::optional<ElementType> hlo = n.HloElementType(element(type));
    return !hlo ? 0 : *hlo == ElementType::kPred ? 1 : BitsOf(*hlo);
  };
  const int64_t from = bits_of(operand(0)), to = bits_of(result());
  if (from == 0 || to == 0) return true;
  const auto complex = [&](NodeId type) { return n.kind(element(type)) == NodeKind::kComplexType; };
  if (complex(operand(0)) != complex(result())) return Fail("cannot convert between real and complex types");
  const bool narrower = to < from;
  const NodeId small = narrower ? result() : operand(0), large = narrower ? operand(0) : result();
  const int64_t ratio = std::max(from, to) / std::min(from, to);
  if (from != to && rank(small) != rank(large) + 1) {
    return Fail(StrCat("rank of smaller element type (", rank(small),
                       ") should be 1 more than rank of larger element type (", rank(large), "), but ", rank(small),
                       " != ", rank(large), " + 1."));
  }
  const absl::Span<const int64_t> shared = sizes(small).subspan(0, std::min(sizes(small).size(), sizes(large).size()));
  if (!ShapesAgree(shared, sizes(large))) {
    return Fail(
        StrCat("operand and result shapes must match except for the innermost dimension of the shape with the "
               "smaller element type. Got: '",
               Text(operand(0)), "' and '", Text(result()), "'."));
  }
  if (from != to && !SizesAgree(sizes(small).back(), ratio)) {
    return Fail(StrCat("requires compatible bit widths. Got: '", Text(operand(0)), "' and '", Text(result()), "', but ",
                       std::min(from, to), " * ", sizes(small).back(), " != ", std::max(from, to), "."));
  }
  return true;
}

bool Rules::CheckReshape() {
  if (!IsStatic(operand(0)) || !IsStatic(result())) return true;
  const auto count = [&](NodeId type) {
    int64_t product = 1;
    for (int64_t size : sizes(type)) {
      if (__builtin_mul_overflow(product, size, &product)) return int64_t{-1};
    }
    return product;
  };
  if (count(operand(0)) == count(result())) return true;
  return Fail(StrCat("number of output elements (", count(result()), ") doesn't match expected number of elements (",
                     count(operand(0)), ")"));
}

bool Rules::CheckReverse() {
  const Ints dimensions = List("dimensions");
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const int64_t d = dimensions[i];
    if (std::find(dimensions.begin(), dimensions.begin() + static_cast<std::ptrdiff_t>(i), d) !=
        dimensions.begin() + static_cast<std::ptrdiff_t>(i)) {
      return Fail(StrCat("dimensions should be unique. Got: ", ListText(dimensions)));
    }
    if (d < 0) return Fail(StrCat("all dimensions should be non-negative. Got dimension: ", d, "."));
    if (d >= rank(operand(0))) {
      return Fail(StrCat("all dimensions should be between [0, ", rank(operand(0)), "). Got dimension: ", d, "."));
    }
  }
  return true;
}

bool Rules::CheckExpansionHints() {
  const int64_t limit = rank(operand(0));
  Ints seen;
  for (std::string_view name : {"known_expanding_dimensions", "known_nonexpanding_dimensions"}) {
    for (int64_t d : List(name)) {
      if (d < 0 || d >= limit) {
        return Fail(StrCat("hint for ", name == "known_expanding_dimensions" ? "expanding" : "nonexpanding",
                           " dimension ", d, " does not refer to a valid operand dimension"));
      }
      if (std::find(seen.begin(), seen.end(), d) != seen.end()) {
        return Fail("duplicate expansion hint for at least one operand dimension");
      }
      seen.push_back(d);
    }
  }
  return true;
}

bool Rules::CheckOutputShape() {
  const size_t at = op.operand_count - 1;
  const NodeId type = operand(at);
  if (IsTensor(type) && rank(type) == 1 && !SizesAgree(sizes(type)[0], rank(result()))) {
    return Fail(StrCat("length of ", op.definition->operands[at].name, " (", sizes(type)[0],
                       ") does not match result rank (", rank(result()), ")"));
  }
  const std::optional<Ints> shape = ConstantOf(at);
  if (!shape) return true;
  const Ints dimensions = List("broadcast_dimensions");
  for (size_t i = 0; i < dimensions.size() && i < sizes(operand(0)).size(); ++i) {
    const int64_t size = sizes(operand(0))[i];
    if (dimensions[i] < 0 || static_cast<size_t>(dimensions[i]) >= shape->size()) break;
    const int64_t wanted = (*shape)[static_cast<size_t>(dimensions[i])];
    if (size == 1 || SizesAgree(size, wanted)) continue;
    return Fail(StrCat("size of operand dimension ", i, " (", size, ") is not equal to 1 or value of shape at index ",
                       dimensions[i], " (", wanted, ")"));
  }
  const bool negative = std::any_of(shape->begin(), shape->end(), [](int64_t size) { return size < 0; });
  if (!negative && ShapesAgree(*shape, sizes(result()))) return true;
  return Fail(StrCat("output shape [", ListText(*shape), "] is incompatible with return type of operation ",
                     TypesText({result()})));
}

bool Rules::CheckOutputSize() {
  const std::optional<Ints> shape = ConstantOf(op.operand_count - 1);
  if (!shape || !IsStatic(operand(0))) return true;
  const auto count = [](absl::Span<const int64_t> dims) {
    int64_t product = 1;
    for (int64_t size : dims) {
      if (__builtin_mul_overflow(product, size, &product)) return int64_t{-1};
    }
    return product;
  };
  const int64_t from = count(sizes(operand(0))), to = count(*shape);
  if (from == to) return true;
  return Fail(StrCat("output_shape is incompatible with input type of operation: input has ", from,
                     " elements, but output_shape has ", to));
}

bool Rules::CheckTranspose() {
  const Ints permutation = List("permutation");
  const int64_t count = rank(operand(0));
  if (static_cast<int64_t>(permutation.size()) != count) {
    return FailInference(
        StrCat("TransposeOp operand rank ", count, " does not match permutation size ", permutation.size()));
  }
  Ints order = permutation, range;
  std::sort(order.begin(), order.end());
  for (int64_t i = 0; i < count; ++i) range.push_back(i);
  if (order != range) {
    return FailInference(StrCat("attribute permutation must be a permutation of [", ListText(range), "] but got ",
                                ListText(permutation)));
  }
  const Ints bounds = mlir::BoundsOf(n, operand(0));
  Ints shape, moved;
  for (int64_t d : permutation) {
    shape.push_back(sizes(operand(0))[static_cast<size_t>(d)]);
    if (!bounds.empty()) moved.push_back(bounds[static_cast<size_t>(d)]);
  }
  return CheckResults({TensorOf(shape, element(operand(0)), moved)});
}

bool Rules::CheckConcatenate() {
  const int64_t dimension = Int("dimension");
  if (op.operand_count == 0) return Fail("expected 1 or more operands, but found 0");
  if (dimension < 0) return FailInference(StrCat("dimension ", dimension, " is negative"));
  Ints shape(sizes(operand(0)).begin(), sizes(operand(0)).end());
  for (size_t i = 0; i < op.operand_count; ++i) {
    if (rank(operand(i)) != rank(operand(0))) {
      return FailInference(StrCat("operands (0) and (", i, ") do not match rank"));
    }
    if (dimension >= rank(operand(i))) {
      return FailInference(StrCat("dimension ", dimension, " is out-of-bounds for input rank ", rank(operand(i))));
    }
    if (i == 0) continue;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t size = sizes(operand(i))[d];
      if (d != static_cast<size_t>(dimension)) {
        if (!SizesAgree(shape[d], size)) {
          return FailInference(StrCat("shapes of operand (0) and (", i, ") do not match at non-concat index: (",
                                      ListText(sizes(operand(0))), ") != (", ListText(sizes(operand(i))),
                                      ") at non-concat index ", d));
        }
        if (shape[d] == kDynamicSize) shape[d] = size;
      } else if (shape[d] == kDynamicSize || size == kDynamicSize) {
        shape[d] = kDynamicSize;
      } else if (__builtin_add_overflow(shape[d], size, &shape[d])) {
        return FailInference(StrCat("concatenation makes dimension ", d, " too large"));
      }
    }
  }
  return CheckResults({TensorOf(shape, element(operand(0)))});
}

bool Rules::CheckSlice() {
  const Ints starts = List("start_indices"), limits = List("limit_indices"), strides = List("strides");
  const int64_t count = rank(operand(0));
  if (static_cast<int64_t>(starts.size()) != count) {
    return FailInference(StrCat("the number of elements in start_indices (", starts.size(),
                                ") does not match the rank of the operand (", count, ")"));
  }
  if (limits.size() != starts.size() || strides.size() != starts.size()) {
    return FailInference("start_indices, limit_indices and strides have different numbers of elements");
  }
  const Ints bounds = mlir::BoundsOf(n, operand(0));
  Ints shape;
  for (size_t i = 0; i < starts.size(); ++i) {
    const int64_t size = sizes(operand(0))[i];
    if (starts[i] < 0) return FailInference(StrCat("negative start index ", starts[i], " in dimension ", i));
    if (size != kDynamicSize && limits[i] > size) {
      return FailInference(
          StrCat("limit index ", limits[i], " is larger than dimension size ", size, " in dimension ", i));
    }
    if (!bounds.empty() && bounds[i] != kDynamicSize && limits[i] > bounds[i]) {
      return FailInference(
          StrCat("limit index ", limits[i], " is larger than dimension bound ", bounds[i], " in dimension ", i));
    }
    if (starts[i] > limits[i]) {
      return FailInference(
          StrCat("start index ", starts[i], " is larger than limit index ", limits[i], " in dimension ", i));
    }
    if (strides[i] <= 0) {
      return FailInference(StrCat("stride must be positive but got ", strides[i], " in dimension ", i));
    }
    const int64_t extent = limits[i] - starts[i];
    shape.push_back(extent / strides[i] + (extent % strides[i] != 0 ? 1 : 0));
  }
  return CheckResults({TensorOf(shape, element(operand(0)))});
}

bool Rules::CheckDynamicSlice() {
  const Ints slice = List("slice_sizes");
  const size_t indices = op.operand_count - 1;
  if (slice.size() != indices) {
    return FailInference(StrCat("has mismatched number of slice sizes (", slice.size(),
                                ") and number of start indices (", indices, ")"));
  }
  if (static_cast<int64_t>(indices) != rank(operand(0))) {
    return FailInference(StrCat("has mismatched number of start indices (", indices, ") and the rank of operand (",
                                rank(operand(0)), ")"));
  }
  for (size_t i = 1; i < indices; ++i) {
    if (element(operand(1 + i)) != element(operand(1)))
      return FailInference("start indices must have same element type");
  }
  for (size_t i = 0; i < slice.size(); ++i) {
    if (slice[i] < 0) return FailInference(StrCat("has negative size index to dynamic slice: ", slice[i]));
    const int64_t size = sizes(operand(0))[i];
    if (size == kDynamicSize || slice[i] <= size) continue;
    return FailInference(
        StrCat("has slice size ", slice[i], " greater than dimension size ", size, " in dimension ", i, " of operand"));
  }
  return CheckResults({TensorOf(slice, element(operand(0)))});
}

bool Rules::CheckDynamicUpdateSlice() {
  const NodeId to = operand(0), update = operand(1);
  if (rank(update) != rank(to)) {
    return FailInference(StrCat("update rank does not match operand rank: ", rank(update), " vs ", rank(to), "."));
  }
  if (static_cast<int64_t>(op.operand_count) - 2 != rank(to)) {
    return FailInference(
        StrCat("expects number of start_indices to match operand rank: ", op.operand_count - 2, " vs ", rank(to), "."));
  }
  for (size_t i = 3; i < op.operand_count; ++i) {
    if (element(operand(i)) != element(operand(2))) return FailInference("start indices must have same element type");
  }
  for (size_t i = 0; i < sizes(to).size(); ++i) {
    const int64_t size = sizes(update)[i], limit = sizes(to)[i];
    if (size == kDynamicSize || limit == kDynamicSize || size <= limit) continue;
    return FailInference(
        StrCat("expects size at dimension ", i, " of update to be in range [0, ", limit, "]. Got: ", size, "."));
  }
  return CheckResults({to});
}

bool Rules::CheckPad() {
  const Ints low = List("edge_padding_low"), high = List("edge_padding_high"), interior = List("interior_padding");
  const auto count = static_cast<size_t>(rank(operand(0)));
  if (low.size() != high.size() || low.size() != interior.size()) {
    return FailInference("edge_padding_low, edge_padding_high and interior_padding have different numbers of elements");
  }
  if (low.size() != count) {
    return FailInference(StrCat("edge_padding_low length (", low.size(), ") must match operand rank (", count, ")"));
  }
  const Ints bounds = mlir::BoundsOf(n, operand(0));
  Ints shape, padded_bounds;
  for (size_t i = 0; i < count; ++i) {
    if (interior[i] < 0) return FailInference(StrCat("Interior padding cannot be negative: ", interior[i]));
    const int64_t size = sizes(operand(0))[i];
    // The bound of a dimension that has one is padded like a size.
    const bool bounded = size == kDynamicSize && !bounds.empty() && bounds[i] != kDynamicSize;
    int64_t padded = bounded ? bounds[i] : size;
    if (padded != kDynamicSize) {
      int64_t between = 0;
      if (__builtin_mul_overflow(std::max<int64_t>(padded - 1, 0), interior[i], &between) ||
          __builtin_add_overflow(between, padded, &padded) || __builtin_add_overflow(padded, low[i], &padded) ||
          __builtin_add_overflow(padded, high[i], &padded)) {
        return FailInference(StrCat("Padding makes dimension ", i, " too large"));
      }
      if (padded < 0) {
        return FailInference(StrCat("Padding result in negative ", bounded ? "bound" : "size", " for dimension ", i));
      }
    }
    shape.push_back(bounded ? kDynamicSize : padded);
    if (!bounds.empty()) padded_bounds.push_back(bounded ? padded : kDynamicSize);
  }
  return CheckResults({TensorOf(shape, element(operand(0)), padded_bounds)});
}

bool Rules::CheckDynamicPad() {
  const int64_t count = rank(operand(0));
  std::optional<Ints> amounts[3];
  for (size_t i = 0; i < 3; ++i) {
    const NodeId type = operand(2 + i);
    if (!SizesAgree(sizes(type)[0], count)) {
      return Fail(StrCat("padding operands size (", sizes(type)[0], ") must match operand rank (", count, ")"));
    }
    amounts[i] = ConstantOf(2 + i);
  }
  if (rank(result()) != count) {
    return Fail(StrCat("operand rank(", count, ") and result rank(", rank(result()), ") must match"));
  }
  for (size_t d = 0; d < static_cast<size_t>(count); ++d) {
    if (!amounts[2] || d >= amounts[2]->size()) break;
    const int64_t interior = (*amounts[2])[d];
    if (interior < 0) return Fail(StrCat("interior_padding must be non-negative, but got ", interior));
    const int64_t size = sizes(operand(0))[d];
    if (!amounts[0] || !amounts[1] || size == kDynamicSize) continue;
    int64_t padded = 0;
    if (__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), interior, &padded) ||
        __builtin_add_overflow(padded, size, &padded) || __builtin_add_overflow(padded, (*amounts[0])[d], &padded) ||
        __builtin_add_overflow(padded, (*amounts[1])[d], &padded)) {
      return Fail(StrCat("padding makes dimension ", d, " too large"));
    }
    if (SizesAgree(padded, sizes(result())[d])) continue;
    return Fail(
        StrCat("expected output dimension at index ", d, " to equal ", padded, ", but got ", sizes(result())[d]));
  }
  return true;
}

bool Rules::CheckDimensionSize() {
  const int64_t dimension = Int("dimension");
  if (dimension >= 0 && dimension < rank(operand(0))) return true;
  return FailInference(
      StrCat("requires dimension attribute in range [0, ", rank(operand(0)), "); found (", dimension, ")"));
}

}  // namespace hlokit::stablehlo
