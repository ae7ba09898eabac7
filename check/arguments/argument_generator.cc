// SPDX-License-Identifier: Apache-2.0
#include "check/arguments/argument_generator.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "check/arguments/argument_constraints.h"
#include "interp/exact/builder/compiled_computation_builder.h"
#include "interp/processor/thread_pool.h"
#include "ir/core/str_cat.h"
#include "ir/graph/literal_fill.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

// Multiplies elements [begin, end) by the largest power of two not above 1 / sqrt(products).
void ScaleFactors(int64_t products, int64_t begin, int64_t end, Literal* factors) {
  int exponent = 0;
  while (exponent < 31 && (int64_t{1} << (2 * exponent)) < products) ++exponent;
  VisitType(factors->shape().element_type(), [&]<typename T>(std::type_identity<T>) {
    if constexpr (AnyFloat<T>) {
      T* const values = factors->values<T>().data();
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_same_v<T, float>) {
          values[i] *= std::ldexp(1.0f, -exponent);  // exact
        } else {
          values[i] = static_cast<T>(std::ldexp(static_cast<double>(values[i]), -exponent));
        }
      }
    }
  });
}

// How one argument is filled.
struct LeafFill {
  RandomFill random;
  int64_t contraction_size = 0;  // 0: elements are not scaled

  void Run(int64_t begin, int64_t end, Literal* leaf) const {
    FillRange(random, begin, end, leaf);
    if (contraction_size > 0) ScaleFactors(contraction_size, begin, end, leaf);
  }
};

// Leaf i starts at seed + 2^32 i.
LeafFill FillOf(Shape leaf, const ArgumentConstraints& use, uint64_t seed) {
  LeafFill fill;
  fill.random.seed = seed;
  const ElementType type = leaf.element_type();
  if (use.index_bound > 0) {
    fill.random.kind = RandomFill::Kind::kIndices;
    fill.random.bound = use.index_bound;
  } else if (use.positive && IsFloat(type)) {
    fill.random.kind = RandomFill::Kind::kPositive;
  } else if (use.contraction_size > 0 && IsFloat(type) && BitsOf(type) >= 16) {
    fill.contraction_size = use.contraction_size;
  }
  return fill;
}

// `uses` may be shorter than `leaves`.
absl::StatusOr<std::vector<Literal>> MakeLeaves(absl::Span<const Shape> leaves,
                                                absl::Span<const ArgumentConstraints> uses, uint64_t seed,
                                                const GeneratorOptions& options) {
  int64_t total = 0;
  for (const Shape& leaf : leaves) {
    const int64_t bytes = leaf.IsArray() ? LiteralBytes(leaf) : 0;
    if (bytes < 0 || __builtin_add_overflow(total, bytes, &total) || total > options.max_bytes) {
      return absl::ResourceExhaustedError(StrCat("the arguments take ", bytes < 0 ? "more than 2^63" : StrCat(total),
                                                 " bytes or more; the limit is ", options.max_bytes,
                                                 " bytes (--max-bytes)"));
    }
  }
  ThreadPool threads(total < (int64_t{1} << 22) ? 1 : options.num_threads);
  std::vector<Literal> arguments;
  for (size_t i = 0; i < leaves.size(); ++i) {
    arguments.push_back(Literal::Zeros(leaves[i]));
    if (!leaves[i].IsArray()) continue;
    Literal& leaf = arguments.back();
    const LeafFill fill =
        FillOf(leaves[i], i < uses.size() ? uses[i] : ArgumentConstraints(), seed + (uint64_t{i} << 32));
    // About 20 ms.
    const int64_t step = int64_t{1} << 22;
    for (int64_t begin = 0; begin < leaf.element_count(); begin += step) {
      if (options.poll) {
        if (absl::Status status = options.poll(); !status.ok()) return status;
      }
      const int64_t count = std::min(step, leaf.element_count() - begin);
      threads.ParallelFor(count, int64_t{1} << 16,
                          [&](int64_t from, int64_t to) { fill.Run(begin + from, begin + to, &leaf); });
    }
  }
  return arguments;
}

// One thread, without limits.
std::vector<Literal> MakeAll(absl::Span<const Shape> leaves, absl::Span<const ArgumentConstraints> uses,
                             uint64_t seed) {
  GeneratorOptions options;
  options.num_threads = 1;
  return *MakeLeaves(leaves, uses, seed, options);
}

std::vector<Shape> LeavesOf(const Module& module) {
  std::vector<Shape> leaves;
  const Computation entry = module.entry();
  for (int64_t i = 0; i < entry.parameter_count(); ++i) AppendLeaves(entry.parameter(i).shape(), &leaves);
  return leaves;
}

}  // namespace

std::vector<Literal> MakeFakeArguments(const Module& module, uint64_t seed) {
  return MakeAll(LeavesOf(module), InferArgumentConstraints(module), seed);
}

absl::StatusOr<std::vector<Literal>> MakeFakeArguments(const Module& module, uint64_t seed,
                                                       const GeneratorOptions& options) {
  return MakeLeaves(LeavesOf(module), InferArgumentConstraints(module), seed, options);
}

absl::StatusOr<std::vector<Literal>> MakeFakeArguments(absl::Span<const Shape> leaves, uint64_t seed,
                                                       const GeneratorOptions& options) {
  return MakeLeaves(leaves, {}, seed, options);
}

std::vector<Literal> MakeFakeArguments(absl::Span<const Shape> leaves, uint64_t seed) {
  return MakeAll(leaves, {}, seed);
}

}  // namespace hlokit::interp
