// SPDX-License-Identifier: Apache-2.0
// Instructions that move elements to known or computed positions: concatenate, pad, iota, dynamic slices.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/builder/program_builder.h"
#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/machine/strided_copy.h"
#include "interp/exact/program/element_op.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::interp {
namespace {

// ---- concatenate, pad: copies into slices of the result ----

struct PartsParams : ThunkParams {
  struct Part {
    StridedCopy copy;
    int64_t to_offset;    // bytes
    int64_t from_offset;  // bytes
    size_t operand;
  };
  std::vector<Part> parts;
};

void RunParts(const PartsParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  for (const PartsParams::Part& part : p.parts) {
    part.copy.Run(out[0] + part.to_offset, in[part.operand] + part.from_offset, context);
  }
}

// ---- iota ----

struct IotaParams : ThunkParams {
  ElementOp convert;
  int64_t bytes = 0;
  int64_t count = 0;
};

void FillIota(const IotaParams& p, int64_t begin, int64_t end, std::byte* out) {
  constexpr int64_t kBlock = 512;
  int64_t numbers[kBlock];
  const std::byte* in[ElementOp::kMaxOperands] = {reinterpret_cast<const std::byte*>(numbers)};
  constexpr int64_t kOnes[ElementOp::kMaxOperands] = {1, 1, 1};
  for (int64_t i = begin; i < end; i += kBlock) {
    const int64_t n = std::min(kBlock, end - i);
    std::iota(numbers, numbers + n, i);
    p.convert.Run(out + i * p.bytes, in, kOnes, n);
  }
}

void RunIota(const IotaParams& p, const std::byte* const*, std::byte* const* out, RunContext& context) {
  context.ParallelFor(p.count, 2, [&](int64_t begin, int64_t end) { FillIota(p, begin, end, out[0]); });
}

// ---- dynamic-slice, dynamic-update-slice ----

struct StartIndices {
  bool vector = false;  // one rank-1 operand; otherwise one scalar operand for each dimension
  ElementType type = ElementType::kS32;
  int64_t vector_stride = 1;
  Dims limits;   // largest start in each dimension
  Dims strides;  // of the array that the indices point into, in bytes

  // Returns the offset in bytes of the start, clamped so that the slice is in bounds.
  int64_t Offset(const std::byte* const* in) const {
    int64_t offset = 0;
    for (size_t i = 0; i < limits.size(); ++i) {
      const std::byte* data = vector ? in[0] + static_cast<int64_t>(i) * vector_stride * BytesOf(type) : in[i];
      offset += std::clamp<int64_t>(LoadIndex(type, data), 0, limits[i]) * strides[i];
    }
    return offset;
  }
};

struct DynamicSliceParams : ThunkParams {
  StartIndices starts;
  StridedCopy copy;
};

void RunDynamicSlice(const DynamicSliceParams& p, const std::byte* const* in, std::byte* const* out,
                     RunContext& context) {
  p.copy.Run(out[0], in[0] + p.starts.Offset(in + 1), context);
}

struct DynamicUpdateSliceParams : ThunkParams {
  StartIndices starts;
  StridedCopy whole;  // used if the operand's bytes are not reused for the result
  StridedCopy update;
};

void RunDynamicUpdateSlice(const DynamicUpdateSliceParams& p, const std::byte* const* in, std::byte* const* out,
                           RunContext& context) {
  if (in[0] != out[0]) p.whole.Run(out[0], in[0], context);
  p.update.Run(out[0] + p.starts.Offset(in + 2), in[1], context);
}

// Reads the operands from `first` on as start indices into `array`, for slices of `sizes`.
bool MakeStarts(CompiledComputationBuilder& b, int64_t first, absl::Span<const int64_t> array_dims,
                const Dims& array_strides, int64_t element_bytes, absl::Span<const int64_t> sizes,
                StartIndices* starts) {
  const Instruction instruction = b.instruction();
  const int64_t rank = static_cast<int64_t>(array_dims.size());
  const int64_t count = instruction.operand_count() - first;
  starts->vector = count == 1 && b.operand(first).shape.rank() == 1;
  if (static_cast<int64_t>(sizes.size()) != rank || (starts->vector ? b.operand(first).shape.dim(0) : count) != rank) {
    b.FailMismatch("one start index and one slice size for each dimension of the operand");
    return false;
  }
  for (int64_t i = first; i < instruction.operand_count(); ++i) {
    const View& v = b.operand(i);
    if (!IsInteger(v.type()) || (!starts->vector && v.shape.rank() != 0) || v.type() != b.operand(first).type()) {
      b.Fail("expected start indices to be integer scalars of one type");
      return false;
    }
    starts->type = v.type();
  }
  if (starts->vector) starts->vector_stride = StridesOf(b.operand(first))[0];
  for (int64_t i = 0; i < rank; ++i) {
    if (sizes[i] > array_dims[i]) {
      b.FailMismatch("a slice that is at most as large as the operand");
      return false;
    }
    starts->limits.push_back(array_dims[i] - sizes[i]);
    starts->strides.push_back(array_strides[i] * element_bytes);
  }
  return true;
}

std::vector<View> Operands(CompiledComputationBuilder& b) {
  std::vector<View> views;
  for (int64_t i = 0; i < b.instruction().operand_count(); ++i) views.push_back(b.operand(i));
  return views;
}

}  // namespace

void PrepareConcatenate(CompiledComputationBuilder& b) {
  const Instruction instruction = b.instruction();
  const Shape shape = b.shape();
  const absl::Span<const int64_t> dimensions = instruction.list_attr(Attr::kDimensions);
  if (dimensions.size() != 1 || dimensions[0] < 0 || dimensions[0] >= shape.rank()) {
    b.Fail("expected one dimension in `dimensions`");
    return;
  }
  const int64_t dim = dimensions[0];
  const std::vector<View> views = Operands(b);
  if (views.size() == 1) {
    View view = views[0];
    view.shape = shape;
    b.SetResult(view);
    return;
  }
  auto params = std::make_unique<PartsParams>();
  const Dims strides = DenseStrides(shape.dims());
  const int64_t bytes = BytesOf(shape.element_type());
  int64_t at = 0;
  for (size_t i = 0; i < views.size(); ++i) {
    const View& v = views[i];
    if (v.shape.rank() != shape.rank() || at + v.shape.dim(dim) > shape.dim(dim)) {
      b.FailMismatch("operands of the rank of the result whose sizes add up to that of the result");
      return;
    }
    params->parts.push_back({StridedCopy(v.dims(), strides, StridesOf(v), bytes), at * strides[dim] * bytes, 0, i});
    at += v.shape.dim(dim);
  }
  b.Emit(kKernel<RunParts>, std::move(params), views);
}

void PreparePad(CompiledComputationBuilder& b) {
  const View operand = b.operand(0);
  const Shape shape = b.shape();
  const PaddingView padding = PaddingView::Of(b.instruction());
  if (!padding.ok() || padding.rank() != shape.rank() || shape.rank() != operand.shape.rank() ||
      b.operand(1).shape.rank() != 0) {
    b.FailMismatch("padding for each dimension of the operand, and a scalar padding value");
    return;
  }
  const int64_t bytes = BytesOf(shape.element_type());
  const Dims strides = DenseStrides(shape.dims());
  const Dims from_strides = StridesOf(operand);
  // Elements inside the result: low + i * step for first <= i < first + count.
  Dims counts, to_strides;
  int64_t to_offset = 0;
  int64_t from_offset = 0;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    // Nothing lies between the elements of a dimension with less than two.
    const int64_t step = operand.shape.dim(d) <= 1 ? 1 : padding.interior(d) + 1;
    const int64_t low = padding.low(d);
    if (step < 1) {
      b.Fail("negative interior padding");
      return;
    }
    // The elements of the operand that are in the result: low and high padding may be large numbers that cancel.
    using Wide = __int128;
    const Wide first = low >= 0 ? Wide{0} : (-Wide{low} + step - 1) / step;
    const Wide last = Wide{shape.dim(d)} - 1 - low < 0 ? Wide{-1} : (Wide{shape.dim(d)} - 1 - low) / step;
    const Wide count = std::min<Wide>(last, operand.shape.dim(d) - 1) - first + 1;
    counts.push_back(count <= 0 ? 0 : static_cast<int64_t>(count));
    if (count <= 0) continue;
    to_strides.push_back(count == 1 ? 0 : strides[d] * step);
    to_offset += static_cast<int64_t>(low + first * step) * strides[d] * bytes;
    from_offset += static_cast<int64_t>(first) * from_strides[d] * bytes;
  }
  auto params = std::make_unique<PartsParams>();
  const int64_t total = shape.element_count();
  params->parts.push_back({StridedCopy({total}, {1}, {0}, bytes), 0, 0, 1});
  if (ElementCount(counts) != 0) {
    params->parts.push_back({StridedCopy(counts, to_strides, from_strides, bytes), to_offset, from_offset, 0});
  }
  b.Emit(kKernel<RunParts>, std::move(params), Operands(b));
}

void PrepareIota(CompiledComputationBuilder& b) {
  const Shape shape = b.shape();
  const int64_t dim = b.instruction().int_attr(Attr::kIotaDimension);
  std::string error;
  const ElementType s64 = ElementType::kS64;
  std::optional<ElementOp> convert =
      ElementOp::Create(Opcode::kConvert, b.instruction(), {&s64, 1}, shape.element_type(), &error);
  if (!convert || dim < 0 || dim >= shape.rank()) {
    b.Fail(convert ? "iota_dimension is not a dimension of the result" : error);
    return;
  }
  auto params = std::make_unique<IotaParams>();
  params->convert = *convert;
  params->bytes = BytesOf(shape.element_type());
  params->count = shape.element_count() == 0 ? 0 : shape.dim(dim);
  // Computes the numbers along one line; the result is a broadcast view.
  constexpr int64_t kPrecomputed = 1 << 16;
  const Shape line = b.program_shapes().Array(shape.element_type(), {params->count});
  View view;
  if (params->count <= kPrecomputed) {
    std::byte* data = static_cast<std::byte*>(
        b.program().program().arena.Allocate(static_cast<size_t>(params->count * params->bytes), alignof(double)));
    FillIota(*params, 0, params->count, data);
    view = b.Constant(line, data);
  } else {
    view = b.EmitTo(kKernel<RunIota>, std::move(params), {}, {&line, 1})[0];
  }
  Dims strides(static_cast<size_t>(shape.rank()), 0);
  strides[dim] = 1;
  view.shape = shape;
  view.strides = b.NewStrides(strides, shape.dims());
  b.SetResult(view);
}

void PrepareDynamicSlice(CompiledComputationBuilder& b) {
  const View operand = b.operand(0);
  const Shape shape = b.shape();
  const int64_t bytes = BytesOf(shape.element_type());
  auto params = std::make_unique<DynamicSliceParams>();
  const Dims strides = StridesOf(operand);
  if (!MakeStarts(b, 1, operand.dims(), strides, bytes, shape.dims(), &params->starts)) return;
  params->copy = StridedCopy(shape.dims(), DenseStrides(shape.dims()), strides, bytes);
  b.Emit(kKernel<RunDynamicSlice>, std::move(params), Operands(b));
}

void PrepareDynamicUpdateSlice(CompiledComputationBuilder& b) {
  std::vector<View> views = Operands(b);
  const Shape shape = b.shape();
  const int64_t bytes = BytesOf(shape.element_type());
  views[0] = b.MakeDense(views[0]);
  auto params = std::make_unique<DynamicUpdateSliceParams>();
  const Dims strides = DenseStrides(shape.dims());
  if (!MakeStarts(b, 2, shape.dims(), strides, bytes, views[1].dims(), &params->starts)) return;
  params->whole = StridedCopy(shape.dims(), strides, strides, bytes);
  params->update = StridedCopy(views[1].dims(), strides, StridesOf(views[1]), bytes);
  b.Emit(kKernel<RunDynamicUpdateSlice>, std::move(params), views, {{0, 0}});
}

}  // namespace hlokit::interp
