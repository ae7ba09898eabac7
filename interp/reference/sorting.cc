// SPDX-License-Identifier: Apache-2.0
// Sort and top-k, both stable.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "interp/reference/ops.h"

namespace hlokit::reference {
namespace {

// Returns true if the value depends only on even parameters (remainder 0) or only on odd ones (1).
bool DependsOnlyOn(Instruction root, int64_t remainder) {
  std::vector<Instruction> pending = {root};
  absl::flat_hash_set<uint32_t> seen;
  while (!pending.empty()) {
    const Instruction at = pending.back();
    pending.pop_back();
    if (!seen.insert(at.id().value).second) continue;
    if (at.opcode() == Opcode::kParameter && at.parameter_number() % 2 != remainder) return false;
    for (Instruction operand : at.operands()) pending.push_back(operand);
  }
  return true;
}

// Compares two elements of a line.
class Comparator {
 public:
  Comparator(const Op& op, Computation function) : op_(op), function_(function) {
    // A float key of each element, compared by value: NaN is ordered although the comparison is not.
    const Instruction root = function.root();
    const auto direction = root.enum_attr(Attr::kDirection, ComparisonDirection::kEq);
    if (root.opcode() != Opcode::kCompare || !IsFloat(root.operand(0).shape().element_type()) ||
        root.enum_attr(Attr::kCompareType, ComparisonType::kFloat) == ComparisonType::kTotalOrder ||
        (direction != ComparisonDirection::kLt && direction != ComparisonDirection::kGt)) {
      return;
    }
    if (DependsOnlyOn(root.operand(0), 0) && DependsOnlyOn(root.operand(1), 1)) key_of_first_ = 0;
    if (DependsOnlyOn(root.operand(0), 1) && DependsOnlyOn(root.operand(1), 0)) key_of_first_ = 1;
  }

  // `x`, `y`: positions in the operands.
  bool Before(int64_t x, int64_t y) const {
    if (!op_.run.Tick()) return false;
    SlotValue arguments;
    for (size_t k = 0; k < op_.operands.size(); ++k) {
      arguments.push_back(op_.run.ElementOf(op_.in(k), x));
      arguments.push_back(op_.run.ElementOf(op_.in(k), y));
    }
    SlotValue keys;
    const std::optional<SlotValue> before = op_.run.Apply(function_, std::move(arguments), &keys);
    if (!before) return false;
    if (key_of_first_ >= 0 && keys.size() == 2) {
      const bool first_is_nan = std::isnan(keys[static_cast<size_t>(key_of_first_)]->Real(0));
      const bool second_is_nan = std::isnan(keys[static_cast<size_t>(1 - key_of_first_)]->Real(0));
      if (first_is_nan || second_is_nan) return !first_is_nan;
    }
    return (*before)[0]->Integer(0) != 0;
  }

  bool failed() const { return op_.run.failed(); }

 private:
  const Op& op_;
  const Computation function_;
  int key_of_first_ = -1;  // the operand of the root that is the key of parameters 0, 2, ...; -1: none
};

// Sorts by merging halves, and ranges of up to 8 by insertion. XLA's evaluator does the same, so that an inconsistent
// comparator gives the same permutation. The recursion depth is logarithmic in the length. Leaves any order when the
// run fails.
void MergeSort(const Comparator& comparator, std::vector<int64_t>& order, size_t begin, size_t end) {
  if (comparator.failed()) return;
  const auto before = [&](int64_t x, int64_t y) { return comparator.Before(x, y); };
  const auto at = [&](size_t i) { return order.begin() + static_cast<int64_t>(i); };
  if (end - begin <= 8) {
    for (size_t i = begin + 1; i < end; ++i) {
      std::rotate(std::upper_bound(at(begin), at(i), order[i], before), at(i), at(i) + 1);
    }
    return;
  }
  const size_t middle = begin + (end - begin) / 2;
  MergeSort(comparator, order, begin, middle);
  MergeSort(comparator, order, middle, end);
  std::vector<int64_t> merged;
  for (size_t a = begin, b = middle; a < middle || b < end;) {
    if (comparator.failed()) return;
    const bool right = a == middle || (b < end && before(order[b], order[a]));
    merged.push_back(right ? order[b++] : order[a++]);
  }
  std::copy(merged.begin(), merged.end(), at(begin));
}

}  // namespace

namespace fill_ops {

// `sort`: with a float key, NaN sorts last in either direction.
void Sort(Op& op) {
  const Dims dims = op.in(0).dims();
  const Dims dimensions = op.instruction.list_attr(Attr::kDimensions);
  if (op.in(0).count() == 0) return;
  const Comparator comparator(op, op.instruction.computation_attr(Attr::kToApply));
  const auto dim = static_cast<size_t>(dimensions[0]);
  const int64_t length = dims[dim], step = ElementCount(dims.subspan(dim + 1));
  const int64_t lines = op.in(0).count() / length;
  for (int64_t n = 0; n < lines; ++n) {
    const int64_t begin = n / step * length * step + n % step;
    std::vector<int64_t> order;
    for (int64_t i = 0; i < length; ++i) {
      if (!op.run.Tick()) return;
      order.push_back(begin + i * step);
    }
    MergeSort(comparator, order, 0, order.size());
    if (op.run.failed()) return;
    for (int64_t i = 0; i < length && op.run.Tick(); ++i) {
      for (size_t k = 0; k < op.operands.size(); ++k) {
        op.out(k).CopyElement(begin + i * step, op.in(k), order[static_cast<size_t>(i)]);
      }
    }
  }
}

// `topk`, and the custom call TopK: floats by totalOrder; among equals the first.
void TopK(Op& op) {
  const Array& from = op.in(0);
  if (op.results.size() != 2 || from.rank() < 1) return op.Fail("expected an array, and two results");
  for (int r = 0; r < 2; ++r) {
    bool fits = op.out(r).rank() == from.rank();
    for (int64_t d = 0; fits && d < from.rank(); ++d) {
      fits = d + 1 < from.rank() ? op.out(r).dim(d) == from.dim(d) : op.out(r).dim(d) == op.out().dim(d);
    }
    if (!fits) return op.Fail("expected results of the shape of the operand, but for the last dimension");
  }
  const int64_t length = from.dim(from.rank() - 1), k = op.out().dim(from.rank() - 1);
  const bool largest = op.instruction.bool_attr(Attr::kLargest, true);
  if (!op.Require(k <= length && !IsComplex(from.type()), "k does not fit the operand")) return;
  const auto less = [&](int64_t a, int64_t b) {
    if (IsFloat(from.type())) return TotalOrderKey(from.Real(a)) < TotalOrderKey(from.Real(b));
    if (from.type() != ElementType::kU64) return from.Integer(a) < from.Integer(b);
    return static_cast<uint64_t>(from.Integer(a)) < static_cast<uint64_t>(from.Integer(b));
  };
  op.ForEach(k == 0 ? 0 : op.out().count() / k, [&](int64_t line) {
    std::vector<int64_t> order(static_cast<size_t>(length));
    std::iota(order.begin(), order.end(), line * length);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return op.run.Tick() && (largest ? less(b, a) : less(a, b)); });
    if (op.run.failed()) return;
    for (int64_t i = 0; i < k; ++i) {
      op.out(0).CopyElement(line * k + i, from, order[static_cast<size_t>(i)]);
      op.out(1).SetInteger(line * k + i, order[static_cast<size_t>(i)] - line * length);
    }
  });
}

}  // namespace fill_ops
}  // namespace hlokit::reference
