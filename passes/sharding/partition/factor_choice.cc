// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/factor_choice.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "ir/sharding/tile_assignment.h"
#include "ir/sharding/tiling_reshape.h"

namespace hlokit::spmd {
namespace {

// Bytes that memory moves, and operations that the matrix unit does, while a link moves one: for choices that
// communicate alike. Choices in which devices repeat work that they could divide come last.
constexpr double kMemoryBytesPerLinkByte = 512;
constexpr double kOperationsPerLinkByte = 65536;
constexpr size_t kMaxFrames = 3;   // orders of devices that are tried
constexpr size_t kMaxOrdered = 4;  // tensors that are merged in every order

using Axes = std::vector<AxisList>;  // by factor

class Chooser {
 public:
  Chooser(ModuleState* state, const DividedOp& op) : state_(*state), op_(op), rule_(*op.rule) {}

  FactorChoice Choose();

 private:
  // What one array has, by factor; and the axes of factors that must not be divided.
  struct Projection {
    Axes axes;
    AxisList loose;
  };

  std::vector<int64_t> SizesOf(const std::vector<int32_t>& dim) const {
    std::vector<int64_t> sizes;
    for (int32_t f : dim) sizes.push_back(rule_.factors[ToSize(f)].size);
    return sizes;
  }
  std::optional<Projection> Project(const ArrayFactors& array, TilingRef tiling) const;
  void FindFrames();
  void TryFrame();
  Tiling ResultFrame(const Axes& axes) const;
  void FindShared();
  void FindCommon();
  // Adds what `from` has and `axes` has not, as far as axes are free.
  void Merge(const Axes& from, Axes* axes) const;
  bool MergeElsewhere(const Axes& from, Axes* axes) const;
  void PlaceLoose(const AxisList& loose, Axes* axes) const;
  // Takes away what no tiling of an array could say.
  void Repair(Axes* axes) const;
  bool IsUsed(const Axes& axes, const DeviceAxis& axis, size_t except) const;
  AxisList PartialOf(const Axes& axes) const {
    AxisList partial;
    for (size_t f = 0; f < axes.size(); ++f) {
      if (op_.combined[f]) AppendAxes(&partial, axes[f]);
    }
    return partial;
  }
  double Cost(const Axes& axes);
  // Returns true if devices would repeat each other's part of a contraction: its operands are divided alike along a
  // contracted dimension, and the choice leaves these axes without a use.
  bool RepeatsWork(const Axes& axes) const;
  void Try(Axes axes);

  ModuleState& state_;
  const DividedOp& op_;
  const ShardingRule& rule_;
  std::vector<Tiling> frames_;
  Tiling frame_;              // the one that is tried
  std::vector<bool> shared_;  // factors that are a part of some dimension
  std::vector<Projection> projections_;
  Axes common_;  // of a contraction, by combined factor: axes that all operands with the factor have there
  std::set<std::vector<std::vector<int64_t>>> tried_;
  FactorChoice best_;
  double best_cost_ = -1;
  bool best_repeats_ = false;
};

void Chooser::FindFrames() {
  // The orders of devices of results and operands; those with subgroups, if some have.
  for (const std::vector<TilingRef>* list : {&op_.results, &op_.operands}) {
    for (TilingRef tiling : *list) {
      if (!tiling->tiled()) continue;
      const bool known = std::any_of(frames_.begin(), frames_.end(), [&](const Tiling& frame) {
        return frame.order == tiling->order && frame.manual == tiling->manual;
      });
      if (known) continue;
      Tiling& frame = frames_.emplace_back(*tiling);
      frame.unreduced.clear();
      frame.dims.clear();
    }
  }
  const bool manual = std::any_of(frames_.begin(), frames_.end(), [](const Tiling& f) { return !f.manual.empty(); });
  std::erase_if(frames_, [&](const Tiling& frame) { return manual && frame.manual.empty(); });
  if (frames_.size() > kMaxFrames) frames_.resize(kMaxFrames);
  if (frames_.empty()) {
    Tiling& frame = frames_.emplace_back();
    frame.kind = ShardingKind::kTiled;
    frame.device_count = state_.partitions;
  }
}

Tiling Chooser::ResultFrame(const Axes& axes) const {
  Tiling frame = frame_;
  for (const DividedOp::Window& w : op_.windows) {
    if (w.window.low == kReversed && !axes[w.factor].empty()) frame = WithReversedTiles(frame, axes[w.factor]);
  }
  return frame;
}

void Chooser::FindShared() {
  shared_ = op_.exact;
  for (const std::vector<ArrayFactors>* list : {&rule_.operands, &rule_.results}) {
    for (const ArrayFactors& array : *list) {
      for (const std::vector<int32_t>& dim : array) {
        if (dim.size() < 2) continue;
        for (int32_t f : dim) shared_[ToSize(f)] = true;
      }
    }
  }
}

std::optional<Chooser::Projection> Chooser::Project(const ArrayFactors& array, TilingRef tiling) const {
  if (!tiling->tiled() || tiling->rank() != static_cast<int64_t>(array.size())) return std::nullopt;
  Tiling own = *tiling;
  if (own.order != frame_.order) {
    const std::optional<std::pair<Tiling, Tiling>> both = InOneOrder(frame_, own);
    if (!both || both->second.order != frame_.order) return std::nullopt;
    own = both->second;
  }
  Projection result;
  result.axes.resize(rule_.factors.size());
  for (size_t d = 0; d < array.size(); ++d) {
    if (own.dims[d].empty()) continue;
    std::vector<AxisList> lists = AxesByFactor(own.dims[d], SizesOf(array[d]));
    for (size_t i = 0; i < lists.size(); ++i) {
      const size_t f = ToSize(array[d][i]);
      const bool fits = !op_.exact[f] || rule_.factors[f].size % SizeOf(lists[i]) == 0;
      if (op_.divisible[f] && fits) {
        result.axes[f] = std::move(lists[i]);
      } else {
        AppendAxes(&result.loose, lists[i]);
      }
    }
  }
  return result;
}

void Chooser::FindCommon() {
  if (!op_.contraction) return;
  common_.resize(rule_.factors.size());
  std::vector<bool> seen(rule_.factors.size(), false);
  for (size_t i = 0; i < op_.operands.size(); ++i) {
    const std::optional<Projection> own = Project(rule_.operands[i], op_.operands[i]);
    for (const std::vector<int32_t>& dim : rule_.operands[i]) {
      for (const int32_t factor : dim) {
        const size_t f = ToSize(factor);
        if (!op_.combined[f]) continue;
        const AxisList have = own ? own->axes[f] : AxisList();
        if (!seen[f]) {
          common_[f] = have;
        } else if (IsPrefix(have, common_[f])) {
          common_[f] = have;
        } else if (!IsPrefix(common_[f], have)) {
          common_[f].clear();
        }
        seen[f] = true;
      }
    }
  }
}

bool Chooser::IsUsed(const Axes& axes, const DeviceAxis& axis, size_t except) const {
  const auto overlaps = [&](const AxisList& list) {
    return std::any_of(list.begin(), list.end(),
                       [&](const DeviceAxis& other) { return other.stride < axis.end() && axis.stride < other.end(); });
  };
  for (size_t f = 0; f < axes.size(); ++f) {
    if (f != except && overlaps(axes[f])) return true;
  }
  return overlaps(frame_.manual);
}

void Chooser::Merge(const Axes& from, Axes* axes) const {
  for (size_t f = 0; f < from.size(); ++f) {
    AxisList& have = (*axes)[f];
    if (from[f].empty() || !IsPrefix(have, from[f])) continue;
    AxisList rest = from[f];
    if (!TakeMajor(&rest, SizeOf(have))) continue;
    for (const DeviceAxis& axis : rest) {
      if (IsUsed(*axes, axis, f)) break;
      AppendAxis(&have, axis);
    }
  }
}

// As Merge, where what `from` has is in use, with others of the same size. Returns false if there are none.
bool Chooser::MergeElsewhere(const Axes& from, Axes* axes) const {
  bool moved = false;
  for (size_t f = 0; f < from.size(); ++f) {
    AxisList& have = (*axes)[f];
    if (from[f].empty() || !have.empty()) continue;
    const bool used =
        std::any_of(from[f].begin(), from[f].end(), [&](const DeviceAxis& a) { return IsUsed(*axes, a, f); });
    if (!used) continue;
    std::vector<const AxisList*> lists = {&frame_.manual};
    for (const AxisList& list : *axes) lists.push_back(&list);
    std::optional<AxisList> free = Complement(lists, frame_.device_count);
    if (!free) continue;
    std::optional<AxisList> taken = TakeMajor(&*free, SizeOf(from[f]));
    if (!taken) continue;
    have = *std::move(taken);
    moved = true;
  }
  return moved;
}

void Chooser::PlaceLoose(const AxisList& loose, Axes* axes) const {
  for (const DeviceAxis& axis : loose) {
    if (IsUsed(*axes, axis, axes->size())) continue;
    for (size_t f = 0; f < axes->size(); ++f) {
      if (rule_.factors[f].kind != FactorKind::kParallel || !op_.divisible[f] || shared_[f]) continue;
      if (rule_.factors[f].size % (SizeOf((*axes)[f]) * axis.size) != 0) continue;
      AppendAxis(&(*axes)[f], axis);
      break;
    }
  }
}

void Chooser::Repair(Axes* axes) const {
  // Part of a dimension: an exact division of the factor.
  for (size_t f = 0; f < axes->size(); ++f) {
    if (!shared_[f]) continue;
    while (!(*axes)[f].empty() && rule_.factors[f].size % SizeOf((*axes)[f]) != 0) (*axes)[f].pop_back();
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const std::vector<ArrayFactors>* list : {&rule_.operands, &rule_.results}) {
      for (const ArrayFactors& array : *list) {
        for (const std::vector<int32_t>& dim : array) {
          bool full = true;
          for (int32_t factor : dim) {
            AxisList& own = (*axes)[ToSize(factor)];
            if (!full && !own.empty()) {
              own.clear();
              changed = true;
            }
            full = full && SizeOf(own) == rule_.factors[ToSize(factor)].size;
          }
        }
      }
    }
  }
}

double Chooser::Cost(const Axes& axes) {
  const FactorChoice choice{frame_, axes, PartialOf(axes)};
  double cost = 0, memory = 0;
  for (size_t i = 0; i < op_.operands.size(); ++i) {
    const Shape shape = op_.operand_shapes[i];
    if (!shape.IsArray()) continue;
    const TilingRef wanted = state_.tilings.Intern(TilingFor(rule_, choice, rule_.operands[i]));
    if (op_.operands[i]->kind == ShardingKind::kManual) continue;
    if (!op_.free_operands[i]) cost += state_.PlanFor(shape, op_.operands[i], wanted).cost;
    double bytes = static_cast<double>(BytesOf(shape.element_type()));
    for (int64_t size : LocalSizes(shape.dims(), *wanted)) bytes *= static_cast<double>(size);
    memory += bytes;
    for (const DividedOp::Window& w : op_.windows) {
      if (w.operand != static_cast<int64_t>(i) || axes[w.factor].empty()) continue;
      const int64_t tiles = SizeOf(axes[w.factor]);
      HaloWindow window = w.window;
      if (window.low == kReversed) window.low = window.output - CeilOfRatio(window.output, tiles) * tiles;
      const double exchanged = PlanHalo(window, tiles).exchanged;
      cost += bytes * exchanged / static_cast<double>(std::max<int64_t>(CeilOfRatio(window.input, tiles), 1));
    }
  }
  const AxisList& partial = choice.partial;
  const Tiling result_frame = ResultFrame(axes);
  for (size_t i = 0; i < op_.results.size(); ++i) {
    const Shape shape = op_.result_shapes[i];
    if (!shape.IsArray() || op_.results[i]->kind == ShardingKind::kManual) continue;
    Tiling tiling = TilingFor(rule_, choice, rule_.results[i]);
    const auto bytes_of = [&](const std::vector<AxisList>& dims) {
      double bytes = static_cast<double>(BytesOf(shape.element_type()));
      for (size_t d = 0; d < dims.size(); ++d) {
        bytes *= static_cast<double>(CeilOfRatio(shape.dim(static_cast<int64_t>(d)), SizeOf(dims[d])));
      }
      return bytes;
    };
    std::vector<AxisList> dims = DimsOf(tiling, shape.rank());
    memory += bytes_of(dims);
    for (size_t f = 0; f < axes.size(); ++f) {
      if (op_.gathered[f] && !axes[f].empty()) cost += bytes_of(dims) * static_cast<double>(SizeOf(axes[f])) + 1;
    }
    Tiling frame = result_frame;
    if (!partial.empty()) {
      const Combination combination = PlanCombination(shape, frame_, dims, partial, *op_.results[i], op_.combines);
      if (!combination.scatters.empty()) {
        double scattered = bytes_of(combination.dims);
        for (const Combination::Scatter& s : combination.scatters) scattered *= static_cast<double>(SizeOf(s.axes));
        cost += scattered + 1;
      }
      if (!combination.rest.empty()) cost += bytes_of(combination.dims) + 1;
      dims = combination.dims;
      frame.unreduced = combination.kept;
      frame.reduction = op_.results[i]->reduction;
      if (!combination.kept.empty() && !op_.results[i]->tiled()) continue;
    }
    const TilingRef from = state_.tilings.Intern(WithDims(frame, std::move(dims)));
    cost += state_.PlanFor(shape, from, op_.results[i]).cost;
  }
  cost += memory / kMemoryBytesPerLinkByte;
  if (op_.contraction) {
    double operations = 2;
    for (size_t f = 0; f < axes.size(); ++f) {
      operations *= static_cast<double>(CeilOfRatio(rule_.factors[f].size, SizeOf(axes[f])));
    }
    cost += operations / kOperationsPerLinkByte;
  }
  return cost;
}

bool Chooser::RepeatsWork(const Axes& axes) const {
  for (size_t f = 0; f < common_.size(); ++f) {
    for (const DeviceAxis& axis : common_[f]) {
      if (!IsUsed(axes, axis, axes.size())) return true;
    }
  }
  return false;
}

void Chooser::Try(Axes axes) {
  Repair(&axes);
  std::vector<std::vector<int64_t>> key;
  for (const AxisList& list : axes) {
    std::vector<int64_t>& entry = key.emplace_back();
    for (const DeviceAxis& axis : list) entry.insert(entry.end(), {axis.stride, axis.size});
  }
  if (!tried_.insert(std::move(key)).second) return;
  const bool repeats = RepeatsWork(axes);
  if (best_cost_ >= 0 && repeats && !best_repeats_) return;
  const double cost = Cost(axes);
  if (best_cost_ >= 0 && repeats == best_repeats_ && cost >= best_cost_) return;
  best_cost_ = cost;
  best_repeats_ = repeats;
  AxisList partial = PartialOf(axes);
  best_ = {frame_, std::move(axes), std::move(partial), cost};
}

FactorChoice Chooser::Choose() {
  FindFrames();
  FindShared();
  for (const Tiling& frame : frames_) {
    frame_ = frame;
    TryFrame();
  }
  return best_;
}

void Chooser::TryFrame() {
  projections_.clear();
  tried_.clear();
  const Axes none(rule_.factors.size());
  const auto add = [&](const ArrayFactors& array, TilingRef tiling) {
    std::optional<Projection> projection = Project(array, tiling);
    if (!projection) return;
    const bool known = std::any_of(projections_.begin(), projections_.end(), [&](const Projection& p) {
      return p.axes == projection->axes && p.loose == projection->loose;
    });
    if (!known) projections_.push_back(*std::move(projection));
  };
  for (size_t i = 0; i < op_.results.size(); ++i) add(rule_.results[i], op_.results[i]);
  for (size_t i = 0; i < op_.operands.size(); ++i) add(rule_.operands[i], op_.operands[i]);
  FindCommon();

  std::vector<size_t> order(projections_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  size_t turn = 0;
  do {
    Axes axes = none;
    for (size_t i : order) {
      Merge(projections_[i].axes, &axes);
      Try(axes);
      Axes elsewhere = axes;
      if (MergeElsewhere(projections_[i].axes, &elsewhere)) Try(std::move(elsewhere));
      if (!projections_[i].loose.empty()) {
        Axes moved = axes;
        PlaceLoose(projections_[i].loose, &moved);
        Try(std::move(moved));
      }
      Axes whole = axes;
      for (size_t f = 0; f < whole.size(); ++f) {
        if (op_.combined[f]) whole[f].clear();
      }
      Try(std::move(whole));
    }
    // All orders of a few, each one first of many.
    if (order.size() > kMaxOrdered) {
      std::rotate(order.begin(), order.begin() + 1, order.end());
      if (++turn == order.size()) break;
    } else if (!std::next_permutation(order.begin(), order.end())) {
      break;
    }
  } while (true);
  Try(none);
}

}  // namespace

Tiling TilingFor(const ShardingRule& rule, const FactorChoice& choice, const ArrayFactors& array) {
  std::vector<AxisList> dims(array.size());
  for (size_t d = 0; d < array.size(); ++d) {
    std::vector<AxisList> lists;
    std::vector<int64_t> sizes;
    for (int32_t f : array[d]) {
      lists.push_back(choice.axes[ToSize(f)]);
      sizes.push_back(rule.factors[ToSize(f)].size);
    }
    if (!lists.empty()) dims[d] = AxesOfFactors(lists, sizes);
  }
  return WithDims(choice.frame, std::move(dims));
}

Tiling WithReversedTiles(Tiling frame, const AxisList& axes) {
  std::vector<int64_t> order(static_cast<size_t>(frame.device_count));
  const int64_t tiles = SizeOf(axes);
  bool in_order = true;
  for (int64_t position = 0; position < frame.device_count; ++position) {
    const int64_t opposite = PositionWithTile(axes, position, tiles - 1 - TileNumber(axes, position));
    order[ToSize(position)] = frame.DeviceAt(opposite);
    in_order = in_order && order[ToSize(position)] == position;
  }
  if (in_order) order.clear();
  frame.order = std::move(order);
  return frame;
}

FactorChoice ChooseFactorAxes(ModuleState* state, const DividedOp& op) { return Chooser(state, op).Choose(); }

Combination PlanCombination(Shape whole, const Tiling& frame, std::vector<AxisList> dims, AxisList partial,
                            const Tiling& to, std::optional<ReductionOp> combines) {
  Combination result;
  if (combines == to.reduction) {
    const AxisList& kept = to.kind == ShardingKind::kUnreduced ? partial : to.unreduced;
    const std::optional<AxisList> left = Subtract(partial, kept, frame.device_count);
    const std::optional<AxisList> missing = Subtract(kept, partial, frame.device_count);
    const bool all = to.kind == ShardingKind::kUnreduced
                         ? SizeOf(partial) == frame.device_count
                         : to.tiled() && !to.unreduced.empty() && to.order == frame.order;
    if (all && left && missing && missing->empty()) {
      result.kept = kept;
      partial = *left;
    }
  }
  if (to.tiled() && to.order == frame.order && to.rank() == whole.rank()) {
    for (int64_t d = 0; d < whole.rank(); ++d) {
      AxisList& have = dims[ToSize(d)];
      AxisList rest = to.dims[ToSize(d)];
      if (!IsPrefix(have, rest) || !TakeMajor(&rest, SizeOf(have))) continue;
      // The axes that follow, as long as they are partial.
      AxisList scattered;
      for (const DeviceAxis& axis : rest) {
        const std::optional<AxisList> left = Subtract({axis}, partial, frame.device_count);
        if (!left || !left->empty()) break;
        scattered.push_back(axis);
      }
      const int64_t outer = SizeOf(have), inner = SizeOf(scattered);
      if (inner == 1) continue;
      const int64_t size = CeilOfRatio(whole.dim(d), outer * inner);
      if (outer != 1 && size * inner != CeilOfRatio(whole.dim(d), outer)) continue;
      std::optional<AxisList> left = Subtract(partial, scattered, frame.device_count);
      if (!left) continue;
      AppendAxes(&have, scattered);
      partial = *std::move(left);
      result.scatters.push_back({d, std::move(scattered)});
    }
  }
  result.dims = std::move(dims);
  result.rest = std::move(partial);
  return result;
}

}  // namespace hlokit::spmd
