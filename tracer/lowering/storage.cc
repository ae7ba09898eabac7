// SPDX-License-Identifier: Apache-2.0
// Views of a tensor's bytes: elements at strides, and elements of other types.
#include <algorithm>
#include <numeric>
#include <optional>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "tracer/lowering/arithmetic.h"

namespace hlokit::lazy::lower {
namespace {

// Returns whether a view with these sizes and strides lies within `elements`; else reports an error.
bool FitsStrides(LoweringContext& n, Dims size, Dims stride, int64_t offset, int64_t elements) {
  if (size.size() != stride.size()) {
    n.emitter().Fail("mismatch in length of sizes and strides");
    return false;
  }
  int64_t count = 1, last = offset;
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d] < 0 || stride[d] < 0 || offset < 0) {
      n.emitter().Fail("sizes, strides and the offset cannot be negative");
      return false;
    }
    count = SaturatingMultiply(count, size[d]);
    if (size[d] > 1) last = SaturatingAdd(last, SaturatingMultiply(size[d] - 1, stride[d]));
  }
  if (count != 0 && (offset < 0 || last >= elements)) {
    n.emitter().Fail("sizes and strides reach outside of the tensor");
    return false;
  }
  return true;
}

// Returns the indices of the elements among those of the tensor, row-major, as [count, 1].
XlaOp StridedIndices(LoweringContext& n, Dims size, Dims stride, int64_t offset) {
  const int64_t count = std::accumulate(size.begin(), size.end(), int64_t{1}, std::multiplies<>());
  XlaOp places = Full(n.emitter(), ElementType::kS64, size, count == 0 ? 0 : offset);
  for (size_t d = 0; d < size.size() && count != 0; ++d) {
    if (size[d] == 1 || stride[d] == 0) continue;
    const XlaOp index = IotaOf(n.emitter(), ElementType::kS64, size, static_cast<int64_t>(d));
    places = places + index * Number(index, stride[d]);
  }
  return Reshape(places, {count, 1});
}

// A strided view as the first parts of blocks, one within the other: of each dimension with more than one element, by
// descending stride, the first `sizes` of `blocks` blocks.
struct Nested {
  DimVector order;   // the dimension of the view
  DimVector sizes;   // its size; then 1
  DimVector blocks;  // of as many as fill the stride of the dimension before; then the last one's stride
  int64_t length = 1;
};

std::optional<Nested> NestedBlocks(Dims size, Dims stride) {
  Nested nested;
  for (size_t d = 0; d < size.size(); ++d) {
    if (size[d] != 1) nested.order.push_back(static_cast<int64_t>(d));
  }
  std::stable_sort(nested.order.begin(), nested.order.end(),
                   [&](int64_t a, int64_t b) { return stride[a] > stride[b]; });
  int64_t outer = 0;  // stride of the dimension before
  for (const int64_t d : nested.order) {
    if (stride[d] == 0) return std::nullopt;
    if (outer != 0 && (outer % stride[d] != 0 || size[d] > outer / stride[d])) return std::nullopt;
    nested.sizes.push_back(size[d]);
    nested.blocks.push_back(outer == 0 ? size[d] : outer / stride[d]);
    outer = stride[d];
  }
  nested.sizes.push_back(1);
  nested.blocks.push_back(std::max<int64_t>(outer, 1));
  for (const int64_t block : nested.blocks) nested.length = SaturatingMultiply(nested.length, block);
  return nested;
}

// Adds elements at both ends of a line, or takes some away at its end.
XlaOp Fit(XlaOp line, XlaOp value, int64_t before, int64_t length) {
  const int64_t rest = length - before - line.size(0);
  if (rest < 0) line = SliceDim(line, 0, 0, line.size(0) + rest);
  return before == 0 && rest <= 0 ? line : Pad(line, value, {before}, {std::max<int64_t>(rest, 0)});
}

// The values of a view, in a line with zeros, or false, between them, at their places.
XlaOp Spread(XlaOp view, const Nested& nested, int64_t offset, int64_t elements) {
  DimVector kept;  // of the view's dimensions with more than one element
  DimVector present = nested.order;
  std::sort(present.begin(), present.end());
  for (const int64_t d : present) kept.push_back(view.size(d));
  DimVector permutation;
  for (const int64_t d : nested.order)
    permutation.push_back(std::find(present.begin(), present.end(), d) - present.begin());
  const XlaOp zero = Number(view, 0);
  const XlaOp parts = Reshape(Transpose(Reshape(view, kept), permutation), nested.sizes);
  DimVector low(nested.sizes.size(), 0), high;
  for (size_t i = 0; i < nested.sizes.size(); ++i) high.push_back(nested.blocks[i] - nested.sizes[i]);
  return Fit(Reshape(Pad(parts, zero, low, high), {nested.length}), zero, offset, elements);
}

}  // namespace

void AsStrided(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const Dims size = n.ints(1), stride = n.ints(2);
  const int64_t offset = n.has(3) ? n.int_arg(3) : 0;
  if (!FitsStrides(n, size, stride, offset, x.elements())) return;
  const XlaOp all = Reshape(x, {x.elements()});
  const bool empty = std::find(size.begin(), size.end(), 0) != size.end();
  if (empty) return n.Return(Full(n.emitter(), x.type(), size, 0));
  const std::optional<Nested> nested = NestedBlocks(size, stride);
  if (!nested)
    return n.Return(Reshape(Gather(all, StridedIndices(n, size, stride, offset), GatherAlongDim(all, 0)), size));
  const int64_t end = std::min(x.elements(), SaturatingAdd(offset, nested->length));
  const XlaOp line = Fit(SliceDim(all, 0, offset, end), Number(x, 0), 0, nested->length);
  const XlaOp parts = Slice(Reshape(line, nested->blocks), DimVector(nested->sizes.size(), 0), nested->sizes);
  // Back in the order of the view's dimensions.
  DimVector sizes(nested->sizes.begin(), nested->sizes.end() - 1), permutation(nested->order.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::sort(permutation.begin(), permutation.end(),
            [&](int64_t a, int64_t b) { return nested->order[a] < nested->order[b]; });
  n.Return(Reshape(Transpose(Reshape(parts, sizes), permutation), size));
}
void AsStridedScatter(LoweringContext& n) {
  const XlaOp x = n.in(0);
  const Dims size = n.ints(2), stride = n.ints(3);
  const int64_t offset = n.has(4) ? n.int_arg(4) : 0;
  const XlaOp src = lazy::Cast(n.in(1), x.type());
  if (src.shape().dims() != size) {
    n.emitter().Fail("expected src to have a size equal to the slice of self");
    return;
  }
  if (!FitsStrides(n, size, stride, offset, x.elements())) return;
  if (src.elements() == 0) return n.Return(x);
  const XlaOp all = Reshape(x, {x.elements()});
  if (const std::optional<Nested> nested = NestedBlocks(size, stride)) {
    if (nested->length == x.elements() && src.elements() == x.elements()) {
      return n.Return(Reshape(Spread(src, *nested, offset, x.elements()), x.dims()));
    }
    const XlaOp ones = Full(n.emitter(), ElementType::kPred, size, true);
    const XlaOp line =
        Select(Spread(ones, *nested, offset, x.elements()), Spread(src, *nested, offset, x.elements()), all);
    return n.Return(Reshape(line, x.dims()));
  }
  const XlaOp places = StridedIndices(n, size, stride, offset);
  ScatterNumbers s;
  s.inserted_window_dims = {0};
  s.scatter_dims_to_operand_dims = {0};
  s.index_vector_dim = 1;
  const XlaOp flat = Scatter(all, places, Reshape(src, {places.size(0)}), s, std::nullopt);
  n.Return(Reshape(flat, x.dims()));
}

namespace {

XlaOp ReinterpretAs(XlaOp x, ElementType type) {
  if (!x.ok() || x.type() == type) return x;
  return x.emitter().Take(x.emitter().builder().BitcastConvert(x.id(), type));
}

// The last dimension's elements as twice as many numbers: real and imaginary parts.
XlaOp PartsOf(XlaOp x) {
  DimVector dims = x.dims();
  dims.push_back(1);
  const XlaOp real = Reshape(Unary(Opcode::kReal, x), dims), imag = Reshape(Unary(Opcode::kImag, x), dims);
  return Concatenate({real, imag}, x.rank());
}

XlaOp JoinParts(XlaOp x) {  // [.., 2]
  DimVector dims = x.dims();
  dims.pop_back();
  const auto part = [&](int64_t i) { return Reshape(SliceDim(x, x.rank() - 1, i, i + 1), dims); };
  return Binary(Opcode::kComplex, part(0), part(1));
}

ElementType PartOf(ElementType type) { return type == ElementType::kC64 ? ElementType::kF32 : ElementType::kF64; }

}  // namespace

void ViewDtype(LoweringContext& n) {
  XlaOp x = n.in(0);
  const ElementType from = x.type(), to = n.dtype(1, from);
  if (from == to) return n.Return(x);
  DimVector dims = x.dims();
  const int64_t before = BytesOf(from), after = BytesOf(to);
  if (before != after && dims.empty()) {
    n.emitter().Fail("self.dim() cannot be 0 to view elements of another size");
    return;
  }
  if (before < after && dims.back() % (after / before) != 0) {
    n.emitter().Fail(StrCat("self.size(-1) must be divisible by ", after / before,
                            " to view elements of another size, but is ", dims.back()));
    return;
  }
  if (before > after) dims.back() *= before / after;
  if (before < after) dims.back() /= after / before;
  // Of the same total size in each element of the result: [.., parts of the old type].
  if (from == ElementType::kPred) x = lazy::Cast(x, ElementType::kU8);
  if (IsComplex(from)) {
    x = PartsOf(x);
    DimVector parts = n.in(0).dims();
    if (parts.empty()) {
      parts = {2};
    } else {
      parts.back() *= 2;
    }
    x = Reshape(x, parts);
  }
  const ElementType target = to == ElementType::kPred ? ElementType::kU8 : IsComplex(to) ? PartOf(to) : to;
  const int64_t width = BytesOf(x.type()), wanted = BytesOf(target);
  DimVector result = dims;  // of elements of `target`
  if (IsComplex(to)) result.push_back(2);
  if (width < wanted) {
    DimVector parts = result;
    parts.push_back(wanted / width);
    x = Reshape(x, parts);
  } else if (width > wanted) {
    int64_t count = 1;
    for (const int64_t size : result) count *= size;
    x = Reshape(x, {count / (width / wanted)});
  }
  x = Reshape(ReinterpretAs(x, target), result);
  if (IsComplex(to)) x = JoinParts(x);
  n.Return(to == ElementType::kPred ? lazy::Cast(x, ElementType::kPred) : x);
}

}  // namespace hlokit::lazy::lower
