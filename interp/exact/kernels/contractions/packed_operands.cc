// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/contractions/packed_operands.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"
#include "ir/core/str_cat.h"

namespace hlokit::interp {
namespace {

// ---- packed nibbles ----

struct NibblesParams : ThunkParams {
  int64_t outer = 0;
  int64_t inner = 0;  // elements of the dimensions after the doubled one
  bool is_signed = false;
};

void RunNibbles(const NibblesParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const auto unpack = [&]<typename T>(T) {
    context.ForEach(p.outer, static_cast<double>(p.inner), [&](int64_t i) {
      const T* from = reinterpret_cast<const T*>(in[0]) + i * p.inner;
      T* low = reinterpret_cast<T*>(out[0]) + 2 * i * p.inner;
      T* high = low + p.inner;
      for (int64_t k = 0; k < p.inner; ++k) {
        low[k] = static_cast<T>(static_cast<T>(from[k] << 4) >> 4);
        high[k] = static_cast<T>(from[k] >> 4);
      }
    });
  };
  p.is_signed ? unpack(int8_t{}) : unpack(uint8_t{});
}

// ---- structured sparsity ----

struct DensifyParams : ThunkParams {
  int64_t bytes = 0;   // of an element
  int64_t outer = 1;   // elements of the dimensions before the sparse one
  int64_t inner = 1;   // and of those after it
  int64_t blocks = 0;  // along the sparse dimension
  TensorSparsityConfig side;
  ElementType place_type = ElementType::kS32;
};

void RunDensify(const DensifyParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const int64_t place_bytes = BytesOf(p.place_type);
  const int64_t kept_size = p.blocks * p.side.num_non_zero;
  const int64_t dense_size = p.blocks * p.side.block_size;
  std::memset(out[0], 0, static_cast<size_t>(p.outer * dense_size * p.inner * p.bytes));
  for (int64_t o = 0; o < p.outer; ++o) {
    for (int64_t at = 0; at < kept_size; ++at) {
      // `stride` blocks are interleaved, before and after.
      const int64_t group = at / (p.side.stride * p.side.num_non_zero);
      const int64_t lane = at % p.side.stride;
      const int64_t first = group * p.side.stride * p.side.block_size + lane;
      for (int64_t k = 0; k < p.inner; ++k) {
        const int64_t from = (o * kept_size + at) * p.inner + k;
        const int64_t place = LoadIndex(p.place_type, in[1] + from * place_bytes);
        if (place < 0 || place >= p.side.block_size) {
          context.Fail(StrCat("place ", place, " of a sparse operand is beyond its block of ", p.side.block_size));
          return;
        }
        const int64_t to = (o * dense_size + first + place * p.side.stride) * p.inner + k;
        std::memcpy(out[0] + to * p.bytes, in[0] + from * p.bytes, static_cast<size_t>(p.bytes));
      }
    }
  }
}

}  // namespace

std::optional<OperandPacking> OperandPackingOf(CompiledComputationBuilder& b) {
  const absl::Span<const int64_t> precision = b.instruction().list_attr(Attr::kOperandPrecision);
  const auto packed = std::count(precision.begin(), precision.end(), static_cast<int64_t>(Precision::kPackedNibble));
  if (packed == 0) return OperandPacking::kNone;
  const Opcode opcode = b.instruction().opcode();
  if (opcode != Opcode::kDot && opcode != Opcode::kConvolution) {
    b.Fail("packed nibbles are supported for dot and convolution only");
    return std::nullopt;
  }
  if (packed != 2) {
    b.Fail("packed nibbles require operand_precision={packed_nibble,packed_nibble}: both operands or none");
    return std::nullopt;
  }
  for (int64_t i = 0; i < 2; ++i) {
    const ElementType type = b.operand(i).type();
    if (type == ElementType::kS8 || type == ElementType::kU8) continue;
    b.Fail(StrCat("packed nibbles are elements of s8 or u8, and operand ", i, " is of ", ToString(type)));
    return std::nullopt;
  }
  return OperandPacking::kNibbles;
}

View EmitNibbles(CompiledComputationBuilder& b, const View& packed, int64_t dim) {
  Dims dims(packed.dims().begin(), packed.dims().end());
  auto params = std::make_unique<NibblesParams>();
  params->outer = ElementCount(absl::MakeSpan(dims).first(static_cast<size_t>(dim) + 1));
  params->inner = ElementCount(absl::MakeSpan(dims).subspan(static_cast<size_t>(dim) + 1));
  params->is_signed = packed.type() == ElementType::kS8;
  dims[static_cast<size_t>(dim)] *= 2;
  const Shape shape = b.program_shapes().Array(packed.type(), dims);
  const View operand = b.MakeDense(packed);
  return b.EmitTo(kKernel<RunNibbles>, std::move(params), {&operand, 1}, {&shape, 1})[0];
}

std::optional<View> EmitDensified(CompiledComputationBuilder& b, const View& values, const View& places,
                                  const TensorSparsityConfig& side) {
  if (!places.shape.IsArray() || !IsInteger(places.type()) || places.dims() != values.dims()) {
    b.Fail(StrCat("the places of a sparse operand must be integers, one for each of its elements: ",
                  ToString(values.shape, /*with_layout=*/false), " and ",
                  ToString(places.shape, /*with_layout=*/false)));
    return std::nullopt;
  }
  Dims dims(values.dims().begin(), values.dims().end());
  if (side.dimension < 0 || side.dimension >= values.shape.rank()) {
    b.Fail(StrCat("dimension ", side.dimension, " of sparsity_config is none of the operand's"));
    return std::nullopt;
  }
  int64_t& size = dims[static_cast<size_t>(side.dimension)];
  int64_t lane_elements = 0, dense_size = 0;
  const bool fits = !__builtin_mul_overflow(side.num_non_zero, side.stride, &lane_elements) &&
                    size % lane_elements == 0 &&
                    !__builtin_mul_overflow(size / side.num_non_zero, side.block_size, &dense_size);
  if (!fits) {
    b.Fail(StrCat(size, " elements cannot be ", side.num_non_zero, " of each block of ", side.block_size,
                  " in interleaved groups of ", side.stride));
    return std::nullopt;
  }
  auto params = std::make_unique<DensifyParams>();
  params->bytes = BytesOf(values.type());
  const auto at = static_cast<size_t>(side.dimension);
  params->outer = ElementCount(values.dims().first(at));
  params->inner = ElementCount(values.dims().subspan(at + 1));
  params->blocks = size / side.num_non_zero;
  params->side = side;
  params->place_type = places.type();
  size = dense_size;
  const Shape shape = b.program_shapes().Array(values.type(), dims);
  const View operands[] = {b.MakeDense(values), b.MakeDense(places)};
  return b.EmitTo(kKernel<RunDensify>, std::move(params), operands, {&shape, 1})[0];
}

}  // namespace hlokit::interp
