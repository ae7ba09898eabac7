// SPDX-License-Identifier: Apache-2.0
// Instructions that only rearrange indices: their results are views of their operands.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/movement/tiled_bitcast.h"
#include "interp/exact/kernels/reshape_view.h"
#include "ir/core/str_cat.h"
#include "ir/graph/attribute_views.h"
#include "ir/types/float_types.h"
#include "ir/types/tiled_layout.h"

namespace hlokit::interp {
namespace {

// Returns the strides of a strided array after a reshape, in the same order; nullopt if strides cannot express it.
std::optional<Dims> ReshapedStrides(absl::Span<const int64_t> from_dims, absl::Span<const int64_t> from_strides,
                                    absl::Span<const int64_t> to_dims) {
  // Traverses both shapes from the minor end and matches groups of dimensions with equal products. Within a group of
  // the source the strides must be those of a contiguous run.
  Dims strides(to_dims.size(), 0);
  size_t i = from_dims.size();
  size_t j = to_dims.size();
  for (;;) {
    while (i > 0 && from_dims[i - 1] == 1) --i;
    while (j > 0 && to_dims[j - 1] == 1) --j;
    if (i == 0 || j == 0) break;
    int64_t from_size = from_dims[i - 1];
    int64_t to_size = to_dims[j - 1];
    const int64_t unit = from_strides[i - 1];
    int64_t next = unit * from_size;  // stride of the next more major dimension, if the group continues
    strides[--j] = unit;
    --i;
    while (from_size != to_size) {
      if (from_size < to_size) {
        while (i > 0 && from_dims[i - 1] == 1) --i;
        if (i == 0 || from_strides[i - 1] != next) return std::nullopt;
        next *= from_dims[i - 1];
        from_size *= from_dims[--i];
      } else {
        while (j > 0 && to_dims[j - 1] == 1) --j;
        if (j == 0) return std::nullopt;
        strides[--j] = unit * to_size;
        to_size *= to_dims[j];
      }
    }
  }
  return strides;
}

// Returns the dimensions of `shape` in memory order, from major to minor.
std::vector<int64_t> MajorToMinor(Shape shape) {
  std::vector<int64_t> order;
  const LayoutRecord* layout = shape.layout();
  if (layout != nullptr && static_cast<int64_t>(layout->minor_to_major.size()) == shape.rank()) {
    order.assign(layout->minor_to_major.rbegin(), layout->minor_to_major.rend());
  } else {
    for (int64_t i = 0; i < shape.rank(); ++i) order.push_back(i);
  }
  return order;
}

bool HasDefaultLayout(Shape shape) {
  const LayoutRecord* layout = shape.layout();
  if (layout == nullptr) return true;
  for (size_t i = 0; i < layout->minor_to_major.size(); ++i) {
    if (layout->minor_to_major[i] != shape.rank() - 1 - static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Packs or unpacks elements narrower than a byte.
struct BitcastParams : ThunkParams {
  int64_t count = 0;  // of the wider elements
  int wide_bits = 0;
  int narrow_bits = 0;
  bool widen = false;
  bool sign_extend = false;  // the narrow type is signed
};

void RunBitcast(const BitcastParams& p, const std::byte* const* in, std::byte* const* out, RunContext&) {
  const int ratio = p.wide_bits / p.narrow_bits;
  const uint8_t mask = static_cast<uint8_t>((1 << p.narrow_bits) - 1);
  const int64_t wide_bytes = (p.wide_bits + 7) / 8;
  const int shift = 8 - p.narrow_bits;
  const uint8_t* from = reinterpret_cast<const uint8_t*>(in[0]);
  uint8_t* to = reinterpret_cast<uint8_t*>(out[0]);
  for (int64_t i = 0; i < p.count; ++i) {
    uint64_t bits = 0;  // of the wide element; types wider than 64 bits are not split
    if (p.widen) {
      for (int k = 0; k < ratio; ++k)
        bits |= uint64_t{static_cast<uint8_t>(from[i * ratio + k] & mask)} << (k * p.narrow_bits);
      for (int64_t k = 0; k < wide_bytes; ++k) to[i * wide_bytes + k] = static_cast<uint8_t>(bits >> (8 * k));
    } else {
      for (int64_t k = 0; k < wide_bytes; ++k) bits |= uint64_t{from[i * wide_bytes + k]} << (8 * k);
      for (int k = 0; k < ratio; ++k) {
        uint8_t v = static_cast<uint8_t>(bits >> (k * p.narrow_bits)) & mask;
        if (p.sign_extend) v = static_cast<uint8_t>(static_cast<int8_t>(v << shift) >> shift);
        to[i * ratio + k] = v;
      }
    }
  }
}

// Converts n elements of one byte each between types of equal width below a byte, or between signedness.
void RunRewrap(const BitcastParams& p, const std::byte* const* in, std::byte* const* out, RunContext&) {
  const int shift = 8 - p.narrow_bits;
  for (int64_t i = 0; i < p.count; ++i) {
    const uint8_t v = static_cast<uint8_t>(static_cast<uint8_t>(in[0][i]) << shift);
    const uint8_t r =
        p.sign_extend ? static_cast<uint8_t>(static_cast<int8_t>(v) >> shift) : static_cast<uint8_t>(v >> shift);
    out[0][i] = static_cast<std::byte>(r);
  }
}

// Emits the bits of `view` as elements of `shape`, which has the same number of bits.
void EmitBitcast(CompiledComputationBuilder& b, View view, Shape shape) {
  const ElementType from = view.type();
  const ElementType to = shape.element_type();
  const int from_bits = BitsOf(from);
  const int to_bits = BitsOf(to);
  if (static_cast<__int128>(view.count()) * from_bits != static_cast<__int128>(shape.element_count()) * to_bits) {
    b.FailMismatch("operand and result of the same number of bits");
    return;
  }
  if (from == to || (from_bits == to_bits && from_bits >= 8)) {
    if (view.dims() == shape.dims()) {
      view.shape = shape;
    } else {
      view = ReshapeView(b, view, shape);
    }
    b.SetResult(view);
    return;
  }
  view = b.MakeDense(view);
  auto params = std::make_unique<BitcastParams>();
  params->widen = from_bits < to_bits;
  params->narrow_bits = std::min(from_bits, to_bits);
  params->wide_bits = std::max(from_bits, to_bits);
  params->count = std::min(view.count(), shape.element_count());
  params->sign_extend = IsSigned(to);
  if (params->narrow_bits >= 8) {
    // In little-endian memory the bytes are unchanged.
    view.shape = shape;
    b.SetResult(view);
    return;
  }
  if (from_bits == to_bits) {
    b.Emit(kKernel<RunRewrap>, std::move(params), {&view, 1});
  } else {
    b.Emit(kKernel<RunBitcast>, std::move(params), {&view, 1});
  }
}

}  // namespace

View ReshapeView(CompiledComputationBuilder& b, View view, Shape shape) {
  if (!view.dense() && shape.element_count() != 0) {
    std::optional<Dims> strides = ReshapedStrides(view.dims(), StridesOf(view), shape.dims());
    if (strides) {
      view.strides = b.NewStrides(*strides, shape.dims());
      view.shape = shape;
      return view;
    }
    view = b.MakeDense(view);
  }
  view.strides = nullptr;
  view.shape = shape;
  return view;
}

void PrepareReshape(CompiledComputationBuilder& b) {
  if (b.operand(0).count() != b.shape().element_count()) {
    b.FailMismatch("operand and result of the same number of elements");
    return;
  }
  b.SetResult(ReshapeView(b, b.operand(0), b.shape()));
}

// A bitcast keeps the bytes in memory, so layouts determine the correspondence of elements.
void PrepareBitcast(CompiledComputationBuilder& b) {
  const Instruction operand = b.instruction().operand(0);
  if (!b.shape().IsArray() || !operand.shape().IsArray()) {
    b.SetResults(b.leaves(operand));
    return;
  }
  View view = b.operand(0);
  const Shape result = b.shape();
  const int from_bits = BitsOf(view.type());
  const int to_bits = BitsOf(result.element_type());
  const bool tiled = HasTiles(operand.shape()) || HasTiles(result);
  const bool default_layouts = HasDefaultLayout(operand.shape()) && HasDefaultLayout(result);
  const bool byte_each = b.program().options().mixed_precision == MixedPrecisionMode::kReinterpret &&
                         from_bits != to_bits && std::min(from_bits, to_bits) < 8;
  if (tiled || (!default_layouts && from_bits != to_bits)) {
    EmitTiledBitcast(b, view, operand.shape());
    return;
  }
  if (default_layouts && (byte_each || view.type() == result.element_type()) &&
      view.count() * BytesOf(view.type()) > result.element_count() * BytesOf(result.element_type())) {
    // For padded or overlapping memory: the leading part.
    b.Warn(StrCat("the result has the first ", result.element_count() * BytesOf(result.element_type()), " of ",
                  view.count() * BytesOf(view.type()), " bytes of the operand"));
    view = b.MakeDense(view);
    view.shape = result;
    b.SetResult(view);
    return;
  }
  if (view.type() == result.element_type() && view.count() != result.element_count()) {
    b.FailMismatch("operand and result of the same number of elements");
    return;
  }
  if (default_layouts) {
    EmitBitcast(b, view, result);
    return;
  }
  // Dimensions in memory order on both sides, a reshape between them.
  ShapeTable& shapes = b.program_shapes();
  const std::vector<int64_t> from_order = MajorToMinor(operand.shape());
  const std::vector<int64_t> to_order = MajorToMinor(result);
  const Dims strides = StridesOf(view);
  Dims from_dims, from_strides, to_dims;
  for (int64_t d : from_order) {
    from_dims.push_back(view.shape.dim(d));
    from_strides.push_back(strides[d]);
  }
  for (int64_t d : to_order) to_dims.push_back(result.dim(d));
  View physical = view;
  physical.shape = shapes.Array(view.type(), from_dims);
  physical.strides = b.NewStrides(from_strides, from_dims);
  if (view.type() != result.element_type()) {
    // Types of equal width are converted in place.
    if (BitsOf(view.type()) < 8) {
      b.Fail("unsupported: bitcast to another element width below a byte with layouts");
      return;
    }
    physical.shape = shapes.Array(result.element_type(), from_dims);
  }
  physical = ReshapeView(b, physical, shapes.Array(result.element_type(), to_dims));
  const Dims physical_strides = StridesOf(physical);
  Dims to_strides(to_order.size());
  for (size_t i = 0; i < to_order.size(); ++i) to_strides[to_order[i]] = physical_strides[i];
  physical.shape = result;
  physical.strides = b.NewStrides(to_strides, result.dims());
  b.SetResult(physical);
}

void PrepareBitcastConvert(CompiledComputationBuilder& b) { EmitBitcast(b, b.operand(0), b.shape()); }

void PrepareBroadcast(CompiledComputationBuilder& b) {
  View view = b.operand(0);
  const absl::Span<const int64_t> dimensions = b.instruction().list_attr(Attr::kDimensions);
  const Shape shape = b.shape();
  if (static_cast<int64_t>(dimensions.size()) != view.shape.rank()) {
    b.FailMismatch(StrCat("a dimension of the result for each of the ", view.shape.rank(), " dimensions of operand 0"));
    return;
  }
  const Dims from = StridesOf(view);
  Dims strides(static_cast<size_t>(shape.rank()), 0);
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const int64_t d = dimensions[i];
    if (d < 0 || d >= shape.rank() || (view.shape.dim(i) != shape.dim(d) && view.shape.dim(i) != 1)) {
      b.FailMismatch(StrCat("dimension ", i, " of operand 0 to map to a dimension of its size, found dimension ", d));
      return;
    }
    if (view.shape.dim(i) == shape.dim(d)) strides[d] = from[i];
  }
  view.shape = shape;
  view.strides = b.NewStrides(strides, shape.dims());
  b.SetResult(view);
}

void PrepareTranspose(CompiledComputationBuilder& b) {
  View view = b.operand(0);
  const absl::Span<const int64_t> permutation = b.instruction().list_attr(Attr::kDimensions);
  const Dims from = StridesOf(view);
  if (permutation.size() != from.size()) {
    b.FailMismatch(StrCat("a permutation of ", from.size(), " dimensions, found ", permutation.size()));
    return;
  }
  Dims strides(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (permutation[i] < 0 || permutation[i] >= static_cast<int64_t>(from.size())) {
      b.FailMismatch(StrCat("dimension ", permutation[i], " to be less than ", from.size()));
      return;
    }
    strides[i] = from[permutation[i]];
  }
  view.shape = b.shape();
  view.strides = b.NewStrides(strides, view.dims());
  b.SetResult(view);
}

void PrepareSlice(CompiledComputationBuilder& b) {
  View view = b.operand(0);
  const SliceView slice = SliceView::Of(b.instruction());
  Dims strides = StridesOf(view);
  if (slice.rank() != view.shape.rank() || !slice.ok()) {
    b.FailMismatch(
        StrCat("a range for each of the ", view.shape.rank(), " dimensions of operand 0, found ", slice.rank()));
    return;
  }
  for (int64_t i = 0; i < slice.rank(); ++i) {
    if (slice.start(i) < 0 || slice.limit(i) > view.shape.dim(i) || slice.stride(i) < 1) {
      b.FailMismatch(StrCat("a range within 0 to ", view.shape.dim(i), " in dimension ", i, ", found ", slice.start(i),
                            " to ", slice.limit(i), " by ", slice.stride(i)));
      return;
    }
    // An empty slice may start at the end, where there is no element.
    if (b.shape().element_count() != 0) view.offset += slice.start(i) * strides[i] * BytesOf(view.type());
    strides[i] *= slice.stride(i);
  }
  view.shape = b.shape();
  view.strides = b.NewStrides(strides, view.dims());
  b.SetResult(view);
}

void PrepareReverse(CompiledComputationBuilder& b) {
  View view = b.operand(0);
  Dims strides = StridesOf(view);
  for (int64_t d : b.instruction().list_attr(Attr::kDimensions)) {
    if (d < 0 || d >= view.shape.rank()) {
      b.FailMismatch(StrCat("dimension ", d, " to be less than ", view.shape.rank()));
      return;
    }
    if (view.count() == 0) continue;
    view.offset += (view.shape.dim(d) - 1) * strides[d] * BytesOf(view.type());
    strides[d] = -strides[d];
  }
  view.shape = b.shape();
  view.strides = b.NewStrides(strides, view.dims());
  b.SetResult(view);
}

}  // namespace hlokit::interp
