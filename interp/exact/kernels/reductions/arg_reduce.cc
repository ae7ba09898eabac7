// SPDX-License-Identifier: Apache-2.0
// The function is f((a, i), (x, j)) = (p ? a : x, p or (a = x and i < j) ? i : j) with p = (a > x or a is NaN); for the
// least value, a < x. So the value is the last of those that equal the greatest, or the first NaN, and the index the
// least of theirs: whole blocks of elements that have none of these are skipped.
#include "interp/exact/kernels/reductions/arg_reduce.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <type_traits>

#include "interp/exact/kernels/index_operand.h"
#include "interp/exact/machine/run_context.h"
#include "interp/exact/program/element_op.h"
#include "ir/types/float_types.h"

namespace hlokit::interp {
namespace {

constexpr int64_t kArgBlock = 2048;  // elements

struct ArgReduceParams : ThunkParams {
  LoopNest kept;
  LoopNest reduced;
  ElementType index_type = ElementType::kS32;
  ConvertFn load = nullptr;
  int64_t value_bytes = 0;
  int64_t index_bytes = 0;
  void (*fold)(const ArgReduceParams& params, const std::byte* values, const std::byte* indices,
               const std::byte* const* initial, std::byte* value, std::byte* index) = nullptr;
};

// Returns the greatest or least of n > 0 values; of those that are NaN nothing is known but `has_nan`.
template <typename T, bool kGreatest>
T Extreme(const T* x, int64_t n, bool* has_nan) {
  // Vectors that every processor has, several of them to hide latency.
  constexpr int64_t kLanes = 16 / static_cast<int64_t>(sizeof(T)), kVectors = 4;
  typedef T Vector __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
  T best = x[0];
  bool nan = false;
  int64_t i = 0;
  if (n >= kVectors * kLanes) {
    Vector extremes[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) extremes[v] = *reinterpret_cast<const Vector*>(x + v * kLanes);
    auto unordered = extremes[0] != extremes[0];
    for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        const Vector next = *reinterpret_cast<const Vector*>(x + i + v * kLanes);
        if constexpr (std::is_floating_point_v<T>) unordered |= next != next;
        extremes[v] = kGreatest ? (next > extremes[v] ? next : extremes[v]) : (next < extremes[v] ? next : extremes[v]);
      }
    }
    for (const Vector& extreme : extremes) {
      for (int64_t k = 0; k < kLanes; ++k) {
        nan |= unordered[k] != 0;
        if (kGreatest ? extreme[k] > best : extreme[k] < best) best = extreme[k];
      }
    }
  }
  for (; i < n; ++i) {
    nan |= x[i] != x[i];
    if (kGreatest ? x[i] > best : x[i] < best) best = x[i];
  }
  *has_nan = nan;
  return best;
}

// Returns the first of the groups of 64 bytes from element i on that has an element that equals `value`, or the group
// that ends after n.
template <typename T>
int64_t SkipOthers(const T* x, int64_t i, int64_t n, T value) {
  constexpr int64_t kLanes = 16 / static_cast<int64_t>(sizeof(T)), kVectors = 4;
  typedef T Vector __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));
  typedef uint64_t Words __attribute__((vector_size(16), may_alias));
  const Vector wanted = Vector{} + value;
  for (; i + kVectors * kLanes <= n; i += kVectors * kLanes) {
    auto equal = *reinterpret_cast<const Vector*>(x + i) == wanted;
#pragma GCC unroll 4
    for (int64_t v = 1; v < kVectors; ++v) equal |= *reinterpret_cast<const Vector*>(x + i + v * kLanes) == wanted;
    const Words words = reinterpret_cast<Words>(equal);
    if ((words[0] | words[1]) != 0) break;
  }
  return i;
}

template <typename T, bool kGreatest>
class Fold {
 public:
  Fold(const ArgReduceParams& params, const std::byte* const* initial)
      : p_(params), value_at_(initial[0]), index_at_(initial[1]) {
    Load(value_at_, 1, 1, &best_);
    index_ = LoadIndex(p_.index_type, index_at_);
    is_nan_ = best_ != best_;
  }

  void AddLine(const std::byte* values, int64_t stride, const std::byte* indices, int64_t index_stride, int64_t n) {
    alignas(64) T loaded[kArgBlock];
    for (int64_t at = 0; at < n && !is_nan_; at += kArgBlock) {
      const int64_t count = std::min(kArgBlock, n - at);
      const std::byte* const from = values + at * stride * p_.value_bytes;
      const T* x = loaded;
      if (p_.load == nullptr && stride == 1) {
        x = reinterpret_cast<const T*>(from);
      } else {
        Load(from, stride, count, loaded);
      }
      AddBlock(x, count, from, stride, indices + at * index_stride * p_.index_bytes, index_stride);
    }
  }

  void Store(std::byte* value, std::byte* index) const {
    std::memcpy(value, value_at_, static_cast<size_t>(p_.value_bytes));
    std::memcpy(index, index_at_, static_cast<size_t>(p_.index_bytes));
  }

 private:
  void Load(const std::byte* from, int64_t stride, int64_t n, T* to) const {
    if (stride == 1 && p_.load != nullptr) {
      p_.load(to, from, n);
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      const std::byte* const element = from + i * stride * p_.value_bytes;
      if (p_.load != nullptr) {
        p_.load(to + i, element, 1);
      } else {
        std::memcpy(to + i, element, sizeof(T));
      }
    }
  }

  void AddBlock(const T* x, int64_t n, const std::byte* values, int64_t stride, const std::byte* indices,
                int64_t index_stride) {
    bool has_nan = false;
    const T best = Extreme<T, kGreatest>(x, n, &has_nan);
    if (!has_nan && (kGreatest ? best < best_ : best > best_)) return;
    bool is_better = kGreatest ? best > best_ : best < best_;
    constexpr int64_t kGroup = 64 / static_cast<int64_t>(sizeof(T));
    for (int64_t group = 0; group < n; group += kGroup) {
      if (!has_nan) group = SkipOthers(x, group, n, best);
      for (int64_t i = group; i < std::min(group + kGroup, n); ++i) {
        const bool is_nan = x[i] != x[i];
        if (has_nan ? !is_nan : x[i] != best) continue;
        value_at_ = values + i * stride * p_.value_bytes;
        const std::byte* const index_at = indices + i * index_stride * p_.index_bytes;
        const int64_t index = LoadIndex(p_.index_type, index_at);
        if (has_nan || is_better || index < index_) {
          index_ = index;
          index_at_ = index_at;
        }
        is_better = false;
        best_ = x[i];
        is_nan_ = is_nan;
        if (is_nan) return;
      }
    }
  }

  const ArgReduceParams& p_;
  T best_ = {};
  bool is_nan_ = false;
  int64_t index_ = 0;
  const std::byte* value_at_;
  const std::byte* index_at_;
};

template <typename T, bool kGreatest>
void FoldOf(const ArgReduceParams& p, const std::byte* values, const std::byte* indices,
            const std::byte* const* initial, std::byte* value, std::byte* index) {
  Fold<T, kGreatest> fold(p, initial);
  p.reduced.ForEachRun(0, p.reduced.outer_count(), [&](const int64_t* line) {
    fold.AddLine(values + line[0] * p.value_bytes, p.reduced.inner_strides()[0], indices + line[1] * p.index_bytes,
                 p.reduced.inner_strides()[1], p.reduced.inner_size());
  });
  fold.Store(value, index);
}

void RunArgReduce(const ArgReduceParams& p, const std::byte* const* in, std::byte* const* out, RunContext& context) {
  const int64_t width = p.kept.inner_size();
  const int64_t* const strides = p.kept.inner_strides();
  const double elements = static_cast<double>(p.reduced.outer_count()) * static_cast<double>(p.reduced.inner_size());
  context.ParallelFor(p.kept.outer_count() * width, elements * 0.2 + 20, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      if (context.ShouldStop()) return;
      const int64_t i = item % width;
      p.kept.ForEachRun(item / width, item / width + 1, [&](const int64_t* at) {
        const int64_t result = at[0] + i * strides[0];
        p.fold(p, in[0] + (at[1] + i * strides[1]) * p.value_bytes, in[1] + (at[2] + i * strides[2]) * p.index_bytes,
               in + 2, out[0] + result * p.value_bytes, out[1] + result * p.index_bytes);
      });
    }
  });
}

bool IsComparison(Instruction i, ComparisonDirection direction, Instruction a, Instruction b) {
  return i.opcode() == Opcode::kCompare && i.operand_count() == 2 && i.operand(0) == a && i.operand(1) == b &&
         i.enum_attr(Attr::kDirection, ComparisonDirection::kEq) == direction &&
         i.enum_attr(Attr::kCompareType, ComparisonType::kFloat) != ComparisonType::kTotalOrder;
}

bool IsOperation(Instruction i, Opcode opcode, int64_t operands) {
  return i.opcode() == opcode && i.operand_count() == operands;
}

// Returns true for the greatest, false for the least value, and nullopt for another function.
std::optional<bool> GreatestOf(Computation function) {
  if (!function.valid() || function.parameter_count() != 4) return std::nullopt;
  const Instruction a = function.parameter(0), i = function.parameter(1), x = function.parameter(2),
                    j = function.parameter(3);
  const Instruction root = function.root();
  if (!IsOperation(root, Opcode::kTuple, 2)) return std::nullopt;
  const Instruction value = root.operand(0), index = root.operand(1);
  if (!IsOperation(value, Opcode::kSelect, 3) || value.operand(1) != a || value.operand(2) != x ||
      !IsOperation(index, Opcode::kSelect, 3) || index.operand(1) != i || index.operand(2) != j) {
    return std::nullopt;
  }
  const Instruction keeps = value.operand(0), keeps_index = index.operand(0);
  if (!IsOperation(keeps, Opcode::kOr, 2) || !IsOperation(keeps_index, Opcode::kOr, 2) ||
      keeps_index.operand(0) != keeps || !IsOperation(keeps_index.operand(1), Opcode::kAnd, 2)) {
    return std::nullopt;
  }
  const Instruction first = keeps_index.operand(1);
  if (!IsComparison(keeps.operand(1), ComparisonDirection::kNe, a, a) ||
      !IsComparison(first.operand(0), ComparisonDirection::kEq, a, x) ||
      !IsComparison(first.operand(1), ComparisonDirection::kLt, i, j)) {
    return std::nullopt;
  }
  if (IsComparison(keeps.operand(0), ComparisonDirection::kGt, a, x)) return true;
  if (IsComparison(keeps.operand(0), ComparisonDirection::kLt, a, x)) return false;
  return std::nullopt;
}

}  // namespace

bool EmitArgReduce(CompiledComputationBuilder& b, absl::Span<const View> views, const LoopNest& kept,
                   const LoopNest& reduced) {
  if (views.size() != 4) return false;
  const ElementType type = views[0].type(), index_type = views[1].type();
  // Indices are compared as signed integers.
  if (!IsIndexType(index_type) || index_type == ElementType::kU64) return false;
  if (!IsFloat(type) && !(IsInteger(type) && BitsOf(type) >= 8)) return false;
  const std::optional<bool> greatest = GreatestOf(b.instruction().computation_attr(Attr::kToApply));
  if (!greatest) return false;
  // Else results along the minor dimension are faster a block at a time.
  if (kept.inner_size() > 1 && std::abs(kept.inner_strides()[1]) < std::abs(reduced.inner_strides()[0])) return false;
  auto params = std::make_unique<ArgReduceParams>();
  params->kept = kept;
  params->reduced = reduced;
  params->index_type = index_type;
  params->load = LoadFn(type);
  params->value_bytes = BytesOf(type);
  params->index_bytes = BytesOf(index_type);
  VisitType(ComputeType(type), [&]<typename T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  (std::is_integral_v<T> && !std::is_same_v<T, bool>)) {
      params->fold = *greatest ? FoldOf<T, true> : FoldOf<T, false>;
    }
  });
  if (params->fold == nullptr) return false;
  b.Emit(kKernel<RunArgReduce>, std::move(params), views);
  return true;
}

}  // namespace hlokit::interp
