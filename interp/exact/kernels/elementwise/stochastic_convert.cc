// SPDX-License-Identifier: Apache-2.0
// Stochastic-convert: rounds away from zero with a probability equal to the discarded fraction of the last digit;
// operand 1 contains the random bits.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "interp/custom_calls/real_values.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/exact/builder/kernels.h"
#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"

namespace hlokit::interp {
namespace {

struct StochasticConvertParams : ThunkParams {
  ElementType from = ElementType::kF32;
  ElementType random = ElementType::kU32;
  ElementType to = ElementType::kS32;
  int64_t count = 0;
};

// Rounds to an integer of `bits` bits.
int64_t Round(double v, uint64_t random, int random_bits, int bits, bool is_signed) {
  const double limit = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  const int64_t max = static_cast<int64_t>(~uint64_t{0} >> (64 - (is_signed ? bits - 1 : bits)));
  const int64_t min = is_signed ? -max - 1 : 0;
  if (v != v) return 0;
  if (v >= limit - 1) return max;
  if (v <= static_cast<double>(min)) return min;
  const double magnitude = std::fabs(v);
  double truncated = std::floor(magnitude);
  const double fraction = std::ldexp(magnitude - truncated, random_bits);
  if (static_cast<double>(random) < std::floor(fraction)) truncated += 1;
  return static_cast<int64_t>(v < 0 ? -truncated : truncated);
}

void RunStochasticConvert(const StochasticConvertParams& p, const std::byte* const* in, std::byte* const* out,
                          RunContext& context) {
  const int64_t from_bytes = BytesOf(p.from);
  const int64_t random_bytes = BytesOf(p.random);
  const int64_t to_bytes = BytesOf(p.to);
  context.ParallelFor(p.count, 20, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint64_t random = 0;
      std::memcpy(&random, in[1] + i * random_bytes, static_cast<size_t>(random_bytes));
      if (p.to == ElementType::kBF16) {
        // Adds random bits to the discarded bits and keeps the carry.
        uint32_t bits;
        std::memcpy(&bits, in[0] + i * 4, 4);
        const bool finite = (bits & 0x7f800000) != 0x7f800000;
        const uint16_t rounded =
            finite ? static_cast<uint16_t>((bits + (random & 0xffff)) >> 16) : BF16(std::bit_cast<float>(bits)).bits();
        std::memcpy(out[0] + i * 2, &rounded, 2);
        continue;
      }
      double v;
      ReadReals(p.from, in[0] + i * from_bytes, 1, 1, &v);
      const int64_t rounded = Round(v, random, BitsOf(p.random), BitsOf(p.to), IsSigned(p.to));
      std::memcpy(out[0] + i * to_bytes, &rounded, static_cast<size_t>(to_bytes));
    }
  });
}

}  // namespace

void PrepareStochasticConvert(CompiledComputationBuilder& b) {
  const View views[] = {b.MakeDense(b.operand(0)), b.MakeDense(b.operand(1))};
  auto params = std::make_unique<StochasticConvertParams>();
  params->from = views[0].type();
  params->random = views[1].type();
  params->to = b.shape().element_type();
  params->count = b.shape().element_count();
  const bool to_bf16 = params->to == ElementType::kBF16 && params->from == ElementType::kF32;
  if (!IsFloat(params->from) || !IsUnsigned(params->random) || BitsOf(params->random) != BitsOf(params->from) ||
      (!IsIndexType(params->to) && !to_bf16) || views[0].count() != params->count ||
      views[1].count() != params->count) {
    b.EmitTrap("stochastic-convert of these types is not supported");
    return;
  }
  b.Emit(kKernel<RunStochasticConvert>, std::move(params), views);
}

}  // namespace hlokit::interp
