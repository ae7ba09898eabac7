// SPDX-License-Identifier: Apache-2.0
#include "ir/sharding/tiling_reshape.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace hlokit {
namespace {

// One side of a reshape: its dimensions, from the major end.
class Side {
 public:
  Side(absl::Span<const int64_t> dims, std::vector<std::vector<int64_t>>* factors) : dims_(dims), factors_(factors) {
    factors->assign(dims.size(), {});
    rest_ = dims.empty() ? 1 : dims[0];
  }
  bool done() const { return at_ == dims_.size(); }
  // What no factor has of the current dimension.
  int64_t rest() const { return rest_; }
  bool untouched() const { return rest_ == dims_[at_]; }
  void Add(int64_t factor, int64_t size) {
    (*factors_)[at_].push_back(factor);
    rest_ /= size;
  }
  void Next() { rest_ = ++at_ == dims_.size() ? 1 : dims_[at_]; }

 private:
  absl::Span<const int64_t> dims_;
  std::vector<std::vector<int64_t>>* factors_;
  size_t at_ = 0;
  int64_t rest_;
};

}  // namespace

ReshapeFactors FactorReshape(absl::Span<const int64_t> from, absl::Span<const int64_t> to) {
  ReshapeFactors result;
  Side a(from, &result.from), b(to, &result.to);
  const auto add = [&](int64_t size) {
    result.sizes.push_back(size);
    return static_cast<int64_t>(result.sizes.size()) - 1;
  };
  // Gives the rest of the current dimension a factor of its own.
  const auto own = [&](Side& side) {
    const int64_t size = side.rest();
    if (size != 1 || side.untouched()) side.Add(add(size), size);
    side.Next();
  };
  while (!a.done() && !b.done()) {
    if (a.rest() == 1 && b.rest() == 1) {
      if (a.untouched() && b.untouched()) {
        const int64_t factor = add(1);
        a.Add(factor, 1);
        b.Add(factor, 1);
        a.Next();
        b.Next();
      } else {
        // One or both dimensions are complete.
        const bool a_complete = !a.untouched(), b_complete = !b.untouched();
        if (a_complete) a.Next();
        if (b_complete) b.Next();
      }
      continue;
    }
    if (a.rest() == 1) {
      own(a);
      continue;
    }
    if (b.rest() == 1) {
      own(b);
      continue;
    }
    const int64_t shared = std::gcd(a.rest(), b.rest());
    if (shared > 1) {
      const int64_t factor = add(shared);
      a.Add(factor, shared);
      b.Add(factor, shared);
      continue;
    }
    // Coprime: factors of their own, until the products of both sides meet.
    int64_t left = a.rest(), right = b.rest();
    own(a);
    own(b);
    while (left != right) {
      Side& side = left < right ? a : b;
      if (side.done()) break;
      (left < right ? left : right) *= side.rest();
      own(side);
    }
  }
  while (!a.done()) own(a);
  while (!b.done()) own(b);
  return result;
}

std::vector<AxisList> AxesByFactor(const AxisList& axes, absl::Span<const int64_t> factor_sizes) {
  std::vector<AxisList> by_factor(factor_sizes.size());
  if (axes.empty() || factor_sizes.empty()) return by_factor;
  if (factor_sizes.size() == 1) {
    by_factor[0] = axes;
    return by_factor;
  }
  int64_t size = 1;
  for (int64_t s : factor_sizes) size *= s;
  if (size % SizeOf(axes) != 0) return by_factor;
  AxisList rest = axes;
  for (size_t i = 0; i < factor_sizes.size(); ++i) {
    by_factor[i] = TakeMajorDivisor(&rest, factor_sizes[i]);
    if (SizeOf(by_factor[i]) != factor_sizes[i]) break;
  }
  return by_factor;
}

AxisList AxesOfFactors(absl::Span<const AxisList> axes, absl::Span<const int64_t> factor_sizes) {
  AxisList list;
  if (axes.size() == 1) return axes[0];
  for (size_t i = 0; i < axes.size(); ++i) {
    // Only the axes that divide the factor: others would have parts of other sizes than the neighbor.
    AxisList rest = axes[i];
    const AxisList taken = TakeMajorDivisor(&rest, factor_sizes[i]);
    AppendAxes(&list, taken);
    if (SizeOf(taken) != factor_sizes[i]) break;
  }
  return list;
}

Tiling ReshapeOrReplicate(absl::Span<const int64_t> from, absl::Span<const int64_t> to, const Tiling& tiling) {
  if (!tiling.tiled()) return tiling;
  Tiling result = tiling;
  result.dims.assign(to.size(), {});
  const bool empty = std::count(from.begin(), from.end(), 0) != 0 || std::count(to.begin(), to.end(), 0) != 0;
  if (!empty) {
    const ReshapeFactors factors = FactorReshape(from, to);
    std::vector<AxisList> by_factor(factors.sizes.size());
    const auto sizes_of = [&](const std::vector<int64_t>& dim) {
      std::vector<int64_t> sizes;
      for (int64_t f : dim) sizes.push_back(factors.sizes[ToSize(f)]);
      return sizes;
    };
    for (size_t d = 0; d < from.size(); ++d) {
      std::vector<AxisList> lists = AxesByFactor(tiling.dims[d], sizes_of(factors.from[d]));
      for (size_t i = 0; i < lists.size(); ++i) by_factor[ToSize(factors.from[d][i])] = std::move(lists[i]);
    }
    for (size_t d = 0; d < to.size(); ++d) {
      std::vector<AxisList> lists;
      for (int64_t f : factors.to[d]) lists.push_back(by_factor[ToSize(f)]);
      result.dims[d] = AxesOfFactors(lists, sizes_of(factors.to[d]));
    }
  }
  result.Normalize();
  return result;
}

std::optional<Tiling> Reshape(absl::Span<const int64_t> from, absl::Span<const int64_t> to, const Tiling& tiling) {
  Tiling result = ReshapeOrReplicate(from, to, tiling);
  if (tiling.tiled() && result.tiles() == 1) return std::nullopt;
  return result;
}

}  // namespace hlokit
