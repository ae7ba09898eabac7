// SPDX-License-Identifier: Apache-2.0
#include "interp/exact/kernels/movement/scatter_elements.h"

#include "interp/exact/kernels/arithmetic.h"
#include "interp/exact/kernels/element_loop.h"

namespace hlokit::interp {
namespace {

struct Second {
  template <typename T>
  static T Apply(T, T b) {
    return b;
  }
};

template <typename Op, typename T, typename Index>
void Scatter(const ScatterRun& run, std::byte* out, int64_t n, ScatterShare share) {
  const Index* indices = reinterpret_cast<const Index*>(run.indices);
  const T* updates = reinterpret_cast<const T*>(run.updates);
  T* to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t index = static_cast<int64_t>(indices[i * run.index_stride]);
    if (index < 0 || index > run.limit) continue;
    const int64_t at = run.start + i * run.start_stride + index * run.index_step;
    if (share.parts > 1 && !share.Has(at)) continue;
    if (run.length == 1) {
      to[at] = Op::Apply(to[at], updates[i * run.update_stride]);
      continue;
    }
    T* row = to + at;
    const T* update = updates + i * run.update_stride;
    ForEachElement(run.length, [=](int64_t e) { row[e] = Op::Apply(row[e], update[e]); });
  }
}

template <typename Op, typename T>
ScatterElementsFn OfIndex(ElementType index_type) {
  if (index_type == ElementType::kS32) return Scatter<Op, T, int32_t>;
  if (index_type == ElementType::kU32) return Scatter<Op, T, uint32_t>;
  if (index_type == ElementType::kS64) return Scatter<Op, T, int64_t>;
  return nullptr;
}

template <typename T>
ScatterElementsFn OfFunction(ScalarFunction::RecognizedOp op, ElementType index_type) {
  using Known = ScalarFunction::RecognizedOp;
  switch (op) {
    case Known::kAdd:
      return OfIndex<arithmetic::Add, T>(index_type);
    case Known::kMinimum:
      return OfIndex<arithmetic::Minimum, T>(index_type);
    case Known::kMaximum:
      return OfIndex<arithmetic::Maximum, T>(index_type);
    case Known::kSecond:
      return OfIndex<Second, T>(index_type);
    case Known::kMultiply:
    case Known::kAnd:
    case Known::kOr:
    case Known::kXor:
    case Known::kNone:
    case Known::kFirst:
      break;
  }
  return nullptr;
}

}  // namespace

ScatterElementsFn ScatterElementsOf(ScalarFunction::RecognizedOp op, ElementType type, ElementType index_type) {
  if (type == ElementType::kF32) return OfFunction<float>(op, index_type);
  if (type == ElementType::kF64) return OfFunction<double>(op, index_type);
  if (type == ElementType::kS32) return OfFunction<int32_t>(op, index_type);
  if (type == ElementType::kU32) return OfFunction<uint32_t>(op, index_type);
  if (type == ElementType::kS64) return OfFunction<int64_t>(op, index_type);
  if (type == ElementType::kU64) return OfFunction<uint64_t>(op, index_type);
  return nullptr;
}

}  // namespace hlokit::interp
