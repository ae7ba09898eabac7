// SPDX-License-Identifier: Apache-2.0
// Instructions that combine elements with a computation: map, reduce, windows, scan.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "interp/reference/ops.h"
#include "ir/graph/attribute_views.h"

namespace hlokit::reference {
namespace {

// Sum or product of two floats: the root is an add or multiply of the two parameters.
enum class PlainFunction : uint8_t { kNone, kSum, kProduct };
PlainFunction PlainFunctionOf(Computation function) {
  const Instruction root = function.root();
  const bool sum = root.opcode() == Opcode::kAdd;
  if (function.parameter_count() != 2 || (!sum && root.opcode() != Opcode::kMultiply)) return PlainFunction::kNone;
  if (!IsFloat(root.shape().element_type())) return PlainFunction::kNone;
  const Instruction first = function.parameter(0), second = function.parameter(1);
  const bool in_order = root.operand(0) == first && root.operand(1) == second;
  if (!in_order && (root.operand(0) != second || root.operand(1) != first)) return PlainFunction::kNone;
  if (first.shape() != root.shape() || second.shape() != root.shape()) return PlainFunction::kNone;
  return sum ? PlainFunction::kSum : PlainFunction::kProduct;
}

// Accumulates one element of each result. Plain sums and products of floats are accumulated in double and rounded at
// the end; other functions are applied as function(accumulators..., elements...) step by step.
class Accumulator {
 public:
  // The initial values are operands [count, 2 count).
  Accumulator(const Op& op, Computation function, bool may_be_plain)
      : op_(op),
        function_(function),
        count_(op.operands.size() / 2),
        plain_(may_be_plain && count_ == 1 ? PlainFunctionOf(function) : PlainFunction::kNone) {
    if (plain_ != PlainFunction::kNone) {
      sum_ = op.in(1).Real(0);
      return;
    }
    for (size_t k = 0; k < count_; ++k) values_.push_back(op.operands[count_ + k][0]);
  }

  // Adds the elements at position i of the operands.
  void Add(int64_t i) {
    if (plain_ != PlainFunction::kNone) {
      const double v = op_.in(0).Real(i);
      sum_ = plain_ == PlainFunction::kSum ? sum_ + v : sum_ * v;
      return;
    }
    SlotValue arguments = values_;
    for (size_t k = 0; k < count_; ++k) arguments.push_back(op_.run.ElementOf(op_.in(k), i));
    std::optional<SlotValue> combined = op_.run.Apply(function_, std::move(arguments));
    if (!combined || combined->size() != count_) return;
    // Accumulators keep their types.
    for (size_t k = 0; k < count_; ++k) {
      Leaf value = Converted(op_.run, (*combined)[k], values_[k]->type());
      if (value == nullptr) return;
      values_[k] = std::move(value);
    }
  }

  void Store(int64_t to) const {
    if (plain_ != PlainFunction::kNone) return op_.out().SetReal(to, sum_);
    for (size_t k = 0; k < count_; ++k) op_.out(k).CopyElement(to, *values_[k], 0);
  }

 private:
  const Op& op_;
  const Computation function_;
  const size_t count_;
  const PlainFunction plain_;
  double sum_ = 0;
  SlotValue values_;
};

// Visits the positions in an array of `dims` under a window at `position`, in row-major order of the window.
template <typename Body>
void ForEachUnderWindow(const Op& op, const WindowView& window, Dims dims, const Index& position, Body body) {
  Index sizes;
  for (size_t d = 0; d < dims.size(); ++d) {
    sizes.push_back(window.rank() == 0 ? 1 : window[static_cast<int64_t>(d)].size);
  }
  op.ForEachIndex(sizes, [&](const Index& at) {
    Index element(dims.size());
    for (size_t d = 0; d < dims.size(); ++d) {
      const WindowDim dim = window.rank() == 0 ? WindowDim() : window[static_cast<int64_t>(d)];
      element[d] = ElementUnder(dim, dims[d], position[d], at[d]);
      if (element[d] < 0) return;
    }
    body(PositionOf(element, dims));
  });
}

}  // namespace

int64_t ElementUnder(const WindowDim& window, int64_t size, int64_t position, int64_t at) {
  int64_t start, reach, dilated;
  if (__builtin_mul_overflow(position, window.stride, &start) ||
      __builtin_mul_overflow(at, window.window_dilation, &reach) ||
      __builtin_sub_overflow(start, window.padding_low, &start) || __builtin_add_overflow(start, reach, &dilated)) {
    return -1;
  }
  if (dilated < 0 || window.base_dilation < 1 || dilated % window.base_dilation != 0) return -1;
  return dilated / window.base_dilation < size ? dilated / window.base_dilation : -1;
}

namespace fill_ops {

// `map`
void Map(Op& op) {
  const Computation function = op.instruction.computation_attr(Attr::kToApply);
  op.ForEach(op.out().count(), [&](int64_t i) {
    SlotValue arguments;
    for (size_t k = 0; k < op.operands.size(); ++k) arguments.push_back(op.run.ElementOf(op.in(k), i));
    const std::optional<SlotValue> result = op.run.Apply(function, std::move(arguments));
    if (result && op.Require(result->size() == 1, "the function has not one result")) {
      op.out().CopyElement(i, *(*result)[0], 0);
    }
  });
}

// `reduce`: row-major over the reduced dimensions.
void Reduce(Op& op) {
  const Dims dims = op.in(0).dims(), reduced = op.instruction.list_attr(Attr::kDimensions);
  const Computation function = op.instruction.computation_attr(Attr::kToApply);
  std::vector<int64_t> kept, order;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) (Contains(reduced, d) ? order : kept).push_back(d);
  if (op.out().count() == 0) return;
  const bool empty = op.in(0).count() == 0;
  const std::vector<int64_t> begins = empty ? std::vector<int64_t>() : GroupPositions(dims, kept);
  const std::vector<int64_t> steps = empty ? std::vector<int64_t>() : GroupPositions(dims, order);
  op.ForEach(op.out().count(), [&](int64_t i) {
    Accumulator accumulator(op, function, /*may_be_plain=*/true);
    op.ForEach(static_cast<int64_t>(steps.size()),
               [&](int64_t s) { accumulator.Add(begins[static_cast<size_t>(i)] + steps[static_cast<size_t>(s)]); });
    accumulator.Store(i);
  });
}

// `reduce-window`: row-major over the window, without padding. Sums of types below f32 are rounded at every step.
void ReduceWindow(Op& op) {
  const WindowView window = WindowView::Of(op.instruction);
  const Dims dims = op.in(0).dims();
  const Computation function = op.instruction.computation_attr(Attr::kToApply);
  if (!op.Require(window.ok() && (window.rank() == 0 || window.rank() == op.in(0).rank()),
                  "the window does not fit the operand")) {
    return;
  }
  int64_t to = 0;
  op.ForEachIndex(op.out().dims(), [&](const Index& position) {
    Accumulator accumulator(op, function, /*may_be_plain=*/BitsOf(op.in(0).type()) >= 32);
    ForEachUnderWindow(op, window, dims, position, [&](int64_t i) { accumulator.Add(i); });
    accumulator.Store(to++);
  });
}

// `scan`: the computation takes a slice of each input and the carries, and returns a slice of each output and new
// carries.
void Scan(Op& op) {
  const Computation body = op.instruction.computation_attr(Attr::kToApply);
  const size_t carries = static_cast<size_t>(op.instruction.int_attr(Attr::kNumCarries));
  const Dims dimensions = op.instruction.list_attr(Attr::kDimensions);
  if (!op.Require(carries < op.operands.size() && carries <= op.results.size() && dimensions.size() == 1 &&
                      body.parameter_count() == static_cast<int64_t>(op.operands.size()),
                  "the computation of the scan does not fit its operands")) {
    return;
  }
  const size_t inputs = op.operands.size() - carries, outputs = op.results.size() - carries;
  const int64_t dim = dimensions[0], length = op.in(0).dim(dim);
  SlotValue carried;
  for (size_t k = 0; k < carries; ++k) carried.push_back(op.operands[inputs + k][0]);
  const bool reverse = op.instruction.bool_attr(Attr::kIsReverse);
  // Returns the position of element j of slice i of an array.
  const auto position = [&](const Array& array, int64_t i, int64_t j) {
    const int64_t inner = ElementCount(array.dims().subspan(static_cast<size_t>(dim) + 1));
    return (j / inner * array.dim(dim) + i) * inner + j % inner;
  };
  op.ForEach(length, [&](int64_t step) {
    const int64_t i = reverse ? length - 1 - step : step;
    SlotValue arguments;
    for (size_t k = 0; k < inputs; ++k) {
      const std::shared_ptr<Array> slice = op.run.Allocate(body.parameter(static_cast<int64_t>(k)).shape());
      if (slice == nullptr) return;
      for (int64_t j = 0; j < slice->count(); ++j) slice->CopyElement(j, op.in(k), position(op.in(k), i, j));
      arguments.push_back(slice);
    }
    arguments.insert(arguments.end(), carried.begin(), carried.end());
    const std::optional<SlotValue> results = op.run.Apply(body, std::move(arguments));
    if (!results || !op.Require(results->size() == outputs + carries, "the computation of the scan gives too little")) {
      return;
    }
    for (size_t k = 0; k < outputs; ++k) {
      const Array& slice = *(*results)[k];
      for (int64_t j = 0; j < slice.count(); ++j) op.out(k).CopyElement(position(op.out(k), i, j), slice, j);
    }
    carried.assign(results->begin() + static_cast<int64_t>(outputs), results->end());
  });
  for (size_t k = 0; k < carries; ++k) op.out(outputs + k).CopyBytes(*carried[k]);
}

// `select-and-scatter`: window by window in row-major order of the source. Never selects padding; keeps the first
// element until `select(selected, element)` is false.
void SelectAndScatter(Op& op) {
  const Computation select = op.instruction.computation_attr(Attr::kSelect);
  const Computation scatter = op.instruction.computation_attr(Attr::kScatter);
  const WindowView window = WindowView::Of(op.instruction);
  const Array &operand = op.in(0), &source = op.in(1);
  if (!op.Require(window.ok() && (window.rank() == 0 || window.rank() == operand.rank()),
                  "the window does not fit the operand")) {
    return;
  }
  op.ForEach(op.out().count(), [&](int64_t i) { op.out().CopyElement(i, op.in(2), 0); });
  int64_t from = 0;
  op.ForEachIndex(source.dims(), [&](const Index& position) {
    int64_t selected = -1;
    ForEachUnderWindow(op, window, operand.dims(), position, [&](int64_t i) {
      if (selected >= 0) {
        const std::optional<SlotValue> keep =
            op.run.Apply(select, {op.run.ElementOf(operand, selected), op.run.ElementOf(operand, i)});
        if (!keep || (*keep)[0]->Integer(0) != 0) return;
      }
      selected = i;
    });
    const int64_t i = from++;
    if (selected < 0) return;
    const std::optional<SlotValue> sum =
        op.run.Apply(scatter, {op.run.ElementOf(source, i), op.run.ElementOf(op.out(), selected)});
    const Leaf value = sum ? Converted(op.run, (*sum)[0], op.out().type()) : nullptr;
    if (value != nullptr) op.out().CopyElement(selected, *value, 0);
  });
}

}  // namespace fill_ops
}  // namespace hlokit::reference
