// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/movement/tiled_bitcast.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "interp/exact/kernels/reshape_view.h"
#include "interp/exact/machine/run_context.h"
#include "ir/types/tiled_layout.h"

namespace hlokit::interp {
namespace {

struct TiledBitcastParams : ThunkParams {
  TiledBitcastParams(Shape operand, Shape result)
      : from(operand),
        to(result),
        from_dims(operand.dims().begin(), operand.dims().end()),
        to_dims(result.dims().begin(), result.dims().end()) {}
  TiledLayout from, to;
  Dims from_dims, to_dims;
  int64_t from_bytes = 0, to_bytes = 0;  // of an element
  int64_t count = 0;                     // of result elements
};

// Copies the bytes in memory of each result element, in pieces that are parts of one operand element.
void RunTiledBitcast(const TiledBitcastParams& p, const std::byte* const* in, std::byte* const* out,
                     RunContext& context) {
  const int64_t piece = std::min(p.from_bytes, p.to_bytes);
  context.ParallelFor(p.count, 200, [&](int64_t begin, int64_t end) {
    Dims index(p.to_dims.size(), 0), source(p.from_dims.size(), 0);
    int64_t rest = begin;
    for (size_t d = index.size(); d-- > 0; rest /= p.to_dims[d]) index[d] = rest % p.to_dims[d];
    for (int64_t i = begin; i < end; ++i) {
      const int64_t address = p.to.PositionOf(index) * p.to_bytes;
      for (int64_t at = 0; at < p.to_bytes; at += piece) {
        std::byte* const to = out[0] + i * p.to_bytes + at;
        const int64_t position = (address + at) / p.from_bytes, within = (address + at) % p.from_bytes;
        if (!p.from.IndexAt(position, absl::MakeSpan(source))) {
          std::memset(to, 0, static_cast<size_t>(piece));
          continue;
        }
        int64_t element = 0;
        for (size_t d = 0; d < source.size(); ++d) element = element * p.from_dims[d] + source[d];
        std::memcpy(to, in[0] + element * p.from_bytes + within, static_cast<size_t>(piece));
      }
      for (size_t d = index.size(); d-- > 0;) {
        if (++index[d] < p.to_dims[d]) break;
        index[d] = 0;
      }
    }
  });
}

// Returns the result as a view of the operand's parts in memory order; nullopt if the layouts have padding.
std::optional<View> PartsView(CompiledComputationBuilder& b, const View& view, const TiledLayout& from,
                              const TiledLayout& to, Shape result) {
  const std::optional<std::vector<TiledLayout::Part>> from_parts = from.Parts(), to_parts = to.Parts();
  if (!from_parts || !to_parts || from.position_count() != to.position_count()) return std::nullopt;
  ShapeTable& shapes = b.program_shapes();
  const ElementType type = result.element_type();
  const Dims strides = StridesOf(view);
  Dims memory_dims, memory_strides, result_dims;
  for (const TiledLayout::Part& part : *from_parts) {
    memory_dims.push_back(part.size);
    memory_strides.push_back(part.dim < 0 ? 0 : part.unit * strides[part.dim]);
  }
  for (const TiledLayout::Part& part : *to_parts) result_dims.push_back(part.size);
  View memory = view;
  memory.shape = shapes.Array(type, memory_dims);
  memory.strides = b.NewStrides(memory_strides, memory_dims);
  memory = ReshapeView(b, memory, shapes.Array(type, result_dims));
  // The parts in row-major order of the result.
  const Dims found = StridesOf(memory);
  std::vector<size_t> order(to_parts->size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    const TiledLayout::Part &p = (*to_parts)[x], &q = (*to_parts)[y];
    return p.dim != q.dim ? p.dim < q.dim : p.unit > q.unit;
  });
  Dims split_dims, split_strides;
  for (size_t i : order) {
    split_dims.push_back((*to_parts)[i].size);
    split_strides.push_back(found[i]);
  }
  memory.shape = shapes.Array(type, split_dims);
  memory.strides = b.NewStrides(split_strides, split_dims);
  return ReshapeView(b, memory, result);
}

}  // namespace

void EmitTiledBitcast(CompiledComputationBuilder& b, const View& view, Shape operand) {
  const Shape result = b.shape();
  const ElementType from = view.type(), to = result.element_type();
  if (from != to && std::min(BitsOf(from), BitsOf(to)) < 8) {
    b.Fail("unsupported: bitcast to another element width below a byte with layouts");
    return;
  }
  auto params = std::make_unique<TiledBitcastParams>(operand, result);
  if (!params->from.ok() || !params->to.ok()) {
    b.Fail("the tiles of this bitcast are too large");
    return;
  }
  params->from_bytes = BytesOf(from);
  params->to_bytes = BytesOf(to);
  params->count = result.element_count();
  if (params->from_bytes == params->to_bytes) {
    if (const std::optional<View> parts = PartsView(b, view, params->from, params->to, result)) {
      b.SetResult(*parts);
      return;
    }
  }
  int64_t bytes;
  if (__builtin_mul_overflow(params->to.position_count(), params->to_bytes, &bytes)) {
    b.Fail("the tiles of this bitcast are too large");
    return;
  }
  const View dense = b.MakeDense(view);
  b.Emit(kKernel<RunTiledBitcast>, std::move(params), {&dense, 1});
}

}  // namespace hlokit::interp
