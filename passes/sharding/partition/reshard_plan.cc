// SPDX-License-Identifier: Apache-2.0
// A shortest path over states, each the axes of all dimensions. Axes are cut into atoms at all strides that occur, so
// that a state is a few small numbers. The search is bounded; where it ends early, or axes have no common cut, the
// array is gathered and sliced.
#include "passes/sharding/partition/reshard_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <utility>

#include "ir/sharding/tile_assignment.h"
#include "ir/sharding/tiling_arithmetic.h"
#include "passes/sharding/partition/tiling_store.h"

namespace hlokit::spmd {
namespace {

constexpr double kStepCost = 1;  // byte: fewer collectives, if they move the same
constexpr double kSliceCost = 1.0 / 16;
constexpr size_t kMaxStates = 1500;      // expanded
constexpr size_t kMaxCombinations = 64;  // of gathers in several dimensions at once

using Atoms = std::string;         // indices, major first
using State = std::vector<Atoms>;  // by dimension

class Planner {
 public:
  Planner(absl::Span<const int64_t> sizes, int64_t element_bytes, const Tiling& frame)
      : sizes_(sizes), element_bytes_(element_bytes), frame_(frame) {}

  // Cuts the axes of both tilings. Returns false if they have no common cut.
  bool Cut(const Tiling& from, const Tiling& to);
  std::optional<ReshardPlan> Search();

 private:
  struct Node {
    double cost = 0;
    State previous;
    ReshardStep step;
    bool done = false;
  };

  State Encode(const Tiling& tiling) const;
  AxisList AxesOf(const Atoms& atoms) const {
    AxisList list;
    for (const char a : atoms) AppendAxis(&list, atoms_[static_cast<size_t>(a)]);
    return list;
  }
  Tiling TilingOf(const State& state) const {
    std::vector<AxisList> dims;
    for (const Atoms& atoms : state) dims.push_back(AxesOf(atoms));
    Tiling tiling = frame_;
    tiling.dims = std::move(dims);
    return tiling;
  }
  int64_t Count(const Atoms& atoms) const {
    int64_t count = 1;
    for (const char a : atoms) count *= atoms_[static_cast<size_t>(a)].size;
    return count;
  }
  // Returns true if the parts of `outer` tiles are made of whole parts of `outer * inner` tiles.
  bool Aligned(size_t d, int64_t outer, int64_t inner) const {
    return outer == 1 || CeilOfRatio(sizes_[d], outer * inner) * inner == CeilOfRatio(sizes_[d], outer);
  }
  double Bytes(const State& state) const {
    double bytes = static_cast<double>(element_bytes_);
    for (size_t d = 0; d < state.size(); ++d) bytes *= static_cast<double>(CeilOfRatio(sizes_[d], Count(state[d])));
    return bytes;
  }
  Atoms FreeAtoms(const State& state) const {
    Atoms free;
    for (size_t a = 0; a < atoms_.size(); ++a) {
      if (fixed_[a]) continue;
      bool used = false;
      for (const Atoms& atoms : state) used = used || atoms.find(static_cast<char>(a)) != Atoms::npos;
      if (!used) free += static_cast<char>(a);
    }
    return free;
  }
  void Reach(const State& from, State to, double cost, MoveKind kind, std::vector<AxesMove> moves);
  void Slices(const State& state);
  void Gathers(const State& state);
  void AllToAlls(const State& state);
  void Permutes(const State& state, bool prefer_free);
  bool IsPrefixOfTarget(size_t d, const Atoms& atoms) const { return target_[d].compare(0, atoms.size(), atoms) == 0; }

  absl::Span<const int64_t> sizes_;
  int64_t element_bytes_;
  const Tiling& frame_;
  std::vector<DeviceAxis> atoms_;
  std::vector<bool> fixed_;  // manual and other subgroups: never used
  State source_, target_;
  std::map<State, Node> nodes_;
  std::priority_queue<std::pair<double, State>, std::vector<std::pair<double, State>>, std::greater<>> queue_;
};

bool Planner::Cut(const Tiling& from, const Tiling& to) {
  std::vector<int64_t> bounds = {1, frame_.device_count};
  const auto add = [&](const AxisList& axes) {
    for (const DeviceAxis& axis : axes) bounds.insert(bounds.end(), {axis.stride, axis.end()});
  };
  for (const Tiling* tiling : {&from, &to}) {
    if (!tiling->tiled()) continue;
    for (const AxisList& dim : tiling->dims) add(dim);
    add(tiling->manual);
    add(tiling->unreduced);
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  for (size_t i = bounds.size(); i-- > 1;) {
    if (bounds[i] % bounds[i - 1] != 0) return false;
    atoms_.push_back({bounds[i - 1], bounds[i] / bounds[i - 1]});
  }
  if (atoms_.size() > 100) return false;
  for (const DeviceAxis& atom : atoms_) {
    bool fixed = false;
    for (const AxisList* list : {&frame_.manual, &frame_.unreduced}) {
      for (const DeviceAxis& axis : *list) fixed = fixed || (axis.stride <= atom.stride && atom.end() <= axis.end());
    }
    fixed_.push_back(fixed);
  }
  source_ = Encode(from);
  target_ = Encode(to);
  return true;
}

State Planner::Encode(const Tiling& tiling) const {
  State state(sizes_.size());
  if (!tiling.tiled()) return state;
  for (size_t d = 0; d < state.size(); ++d) {
    for (const DeviceAxis& axis : tiling.dims[d]) {
      for (size_t a = 0; a < atoms_.size(); ++a) {
        if (axis.stride <= atoms_[a].stride && atoms_[a].end() <= axis.end()) state[d] += static_cast<char>(a);
      }
    }
  }
  return state;
}

void Planner::Reach(const State& from, State to, double cost, MoveKind kind, std::vector<AxesMove> moves) {
  cost += nodes_[from].cost;
  const auto [at, added] = nodes_.try_emplace(to);
  Node& node = at->second;
  if (!added && (node.done || node.cost <= cost)) return;
  node.cost = cost;
  node.previous = from;
  node.step = {kind, std::move(moves), TilingOf(to)};
  queue_.push({cost, std::move(to)});
}

void Planner::Slices(const State& state) {
  const Atoms free = FreeAtoms(state);
  for (const char a : free) {
    for (size_t d = 0; d < state.size(); ++d) {
      State next = state;
      next[d] += a;
      const int64_t count = Count(next[d]), wanted = Count(target_[d]);
      // In the order of the target, or by the count, for a permute to follow.
      if (!IsPrefixOfTarget(d, next[d]) && (count > wanted || wanted % count != 0)) continue;
      if (!Aligned(d, Count(state[d]), count / Count(state[d]))) continue;
      Reach(state, std::move(next), kSliceCost, MoveKind::kSlice, {{-1, static_cast<int64_t>(d), AxesOf(Atoms(1, a))}});
    }
  }
}

void Planner::Gathers(const State& state) {
  // How many minor atoms each dimension loses.
  std::vector<std::vector<size_t>> choices(state.size(), {0});
  size_t combinations = 1;
  for (size_t d = 0; d < state.size(); ++d) {
    const int64_t count = Count(state[d]);
    for (size_t k = 1; k <= state[d].size(); ++k) {
      const int64_t outer = Count(state[d].substr(0, state[d].size() - k));
      if (Aligned(d, outer, count / outer)) choices[d].push_back(k);
    }
    combinations *= choices[d].size();
    if (combinations > kMaxCombinations) {
      // The longest common part with the target only.
      size_t common = 0;
      while (common < state[d].size() && common < target_[d].size() && state[d][common] == target_[d][common]) ++common;
      combinations = combinations / choices[d].size() * 2;
      choices[d] = {0};
      for (size_t keep = common + 1; keep-- > 0;) {
        if (keep == state[d].size()) continue;
        const int64_t outer = Count(state[d].substr(0, keep));
        if (!Aligned(d, outer, count / outer)) continue;
        choices[d].push_back(state[d].size() - keep);
        break;
      }
    }
  }
  std::vector<size_t> at(state.size(), 0);
  while (true) {
    size_t d = 0;
    while (d < state.size() && ++at[d] == choices[d].size()) at[d++] = 0;
    if (d == state.size()) break;
    State next = state;
    std::vector<AxesMove> moves;
    for (size_t i = 0; i < state.size(); ++i) {
      const size_t k = choices[i][at[i]];
      if (k == 0) continue;
      moves.push_back({static_cast<int64_t>(i), -1, AxesOf(state[i].substr(state[i].size() - k))});
      next[i].resize(state[i].size() - k);
    }
    double bytes = Bytes(state);
    for (const AxesMove& move : moves) bytes *= static_cast<double>(SizeOf(move.axes));
    // Where most of that is padding, a sum of the elements that exist (Emitter::EmitGather).
    if (moves.size() == 1 && IsMostlyPadding(sizes_[ToSize(moves[0].from)], SizeOf(moves[0].axes)) &&
        next[ToSize(moves[0].from)].empty()) {
      bytes = Bytes(next);
    }
    Reach(state, std::move(next), bytes + kStepCost, MoveKind::kAllGather, std::move(moves));
  }
}

void Planner::AllToAlls(const State& state) {
  struct Pair {
    size_t from, to, atoms;
    bool exact;  // as the target has them
  };
  std::vector<Pair> pairs;
  for (size_t d = 0; d < state.size(); ++d) {
    for (size_t k = 1; k <= state[d].size(); ++k) {
      const Atoms moved = state[d].substr(state[d].size() - k);
      const int64_t outer = Count(state[d].substr(0, state[d].size() - k));
      if (!Aligned(d, outer, Count(moved))) continue;
      for (size_t e = 0; e < state.size(); ++e) {
        if (e == d || !Aligned(e, Count(state[e]), Count(moved))) continue;
        const int64_t after = Count(state[e]) * Count(moved);
        const bool exact = IsPrefixOfTarget(e, state[e] + moved);
        if (!exact && Count(target_[e]) % after != 0) continue;
        pairs.push_back({d, e, k, exact});
      }
    }
  }
  const auto apply = [&](absl::Span<const Pair* const> chosen) {
    State next = state;
    std::vector<AxesMove> moves;
    for (const Pair* pair : chosen) {
      const Atoms moved = state[pair->from].substr(state[pair->from].size() - pair->atoms);
      next[pair->from].resize(next[pair->from].size() - pair->atoms);
      next[pair->to] += moved;
      moves.push_back({static_cast<int64_t>(pair->from), static_cast<int64_t>(pair->to), AxesOf(moved)});
    }
    Reach(state, std::move(next), Bytes(state) + kStepCost, MoveKind::kAllToAll, std::move(moves));
  };
  for (const Pair& a : pairs) {
    apply({&a});
    // Several pairs of dimensions at once, if they lead to the target.
    if (!a.exact) continue;
    std::vector<const Pair*> chosen = {&a};
    for (const Pair& b : pairs) {
      if (!b.exact) continue;
      const bool apart = std::none_of(chosen.begin(), chosen.end(), [&](const Pair* c) {
        return b.from == c->from || b.from == c->to || b.to == c->from || b.to == c->to;
      });
      if (!apart) continue;
      chosen.push_back(&b);
      apply(chosen);
    }
  }
}

// Other devices for the same tiles, of which the major ones are as in the target.
void Planner::Permutes(const State& state, bool prefer_free) {
  State next(state.size());
  for (size_t d = 0; d < state.size(); ++d) {
    const int64_t count = Count(state[d]);
    int64_t have = 1;
    for (const char a : target_[d]) {
      const int64_t size = atoms_[static_cast<size_t>(a)].size;
      if (count % (have * size) != 0) break;
      next[d] += a;
      have *= size;
    }
  }
  // What is left over is for atoms that the target has elsewhere, or for those that it does not have.
  Atoms pool = FreeAtoms(next), wanted, other;
  for (const char a : pool) {
    bool in_target = false;
    for (const Atoms& atoms : target_) in_target = in_target || atoms.find(a) != Atoms::npos;
    (in_target ? wanted : other) += a;
  }
  pool = prefer_free ? other + wanted : wanted + other;
  for (size_t d = 0; d < state.size(); ++d) {
    int64_t rest = Count(state[d]) / Count(next[d]);
    for (size_t i = 0; i < pool.size() && rest > 1;) {
      const int64_t size = atoms_[static_cast<size_t>(pool[i])].size;
      if (rest % size != 0) {
        ++i;
        continue;
      }
      next[d] += pool[i];
      rest /= size;
      pool.erase(i, 1);
    }
    if (rest != 1) return;
  }
  if (next == state) return;
  Reach(state, std::move(next), Bytes(state) + kStepCost, MoveKind::kPermute, {});
}

std::optional<ReshardPlan> Planner::Search() {
  nodes_[source_];
  queue_.push({0, source_});
  size_t expanded = 0;
  while (!queue_.empty() && expanded < kMaxStates) {
    const State state = queue_.top().second;
    queue_.pop();
    Node& node = nodes_[state];
    if (node.done) continue;
    node.done = true;
    ++expanded;
    if (state == target_) {
      ReshardPlan plan;
      plan.cost = node.cost;
      for (State at = state; at != source_;) {
        Node& n = nodes_[at];
        plan.steps.push_back(std::move(n.step));
        at = State(n.previous);
      }
      std::reverse(plan.steps.begin(), plan.steps.end());
      return plan;
    }
    Slices(state);
    Gathers(state);
    AllToAlls(state);
    Permutes(state, false);
    Permutes(state, true);
  }
  return std::nullopt;
}

// Joins consecutive slices.
void JoinSlices(ReshardPlan* plan) {
  std::vector<ReshardStep> steps;
  for (ReshardStep& step : plan->steps) {
    if (step.kind != MoveKind::kSlice || steps.empty() || steps.back().kind != MoveKind::kSlice) {
      steps.push_back(std::move(step));
      continue;
    }
    ReshardStep& last = steps.back();
    for (AxesMove& move : step.moves) {
      const auto same =
          std::find_if(last.moves.begin(), last.moves.end(), [&](const AxesMove& m) { return m.to == move.to; });
      if (same == last.moves.end()) {
        last.moves.push_back(std::move(move));
      } else {
        AppendAxes(&same->axes, move.axes);
      }
    }
    last.after = std::move(step.after);
  }
  plan->steps = std::move(steps);
}

// Gathers all tiled dimensions, and slices those of the target.
ReshardPlan GatherAndSlice(absl::Span<const int64_t> sizes, int64_t element_bytes, const Tiling& from,
                           const Tiling& to) {
  ReshardPlan plan;
  const auto rank = static_cast<int64_t>(sizes.size());
  const auto moves_of = [&](const Tiling& tiling, bool gather) {
    std::vector<AxesMove> moves;
    const std::vector<AxisList> dims = DimsOf(tiling, rank);
    for (int64_t d = 0; d < rank; ++d) {
      if (!dims[ToSize(d)].empty()) moves.push_back({gather ? d : -1, gather ? -1 : d, dims[ToSize(d)]});
    }
    return moves;
  };
  std::vector<AxesMove> gathers = moves_of(from, true), slices = moves_of(to, false);
  if (!gathers.empty()) {
    Tiling whole = from;
    whole.dims.assign(sizes.size(), {});
    plan.steps.push_back({MoveKind::kAllGather, std::move(gathers), std::move(whole)});
    double bytes = static_cast<double>(element_bytes);
    for (int64_t size : sizes) bytes *= static_cast<double>(size);
    plan.cost += bytes + kStepCost;
    plan.rematerialized = !slices.empty();
  }
  if (!slices.empty()) {
    plan.steps.push_back({MoveKind::kSlice, std::move(slices), to});
    plan.cost += kSliceCost;
  }
  return plan;
}

// Devices exchange whole parts, so that the axes are those of the target's order; then as between tilings of one order.
ReshardPlan WithoutCommonAxes(absl::Span<const int64_t> sizes, int64_t element_bytes, const Tiling& from,
                              const Tiling& to) {
  ReshardPlan plan = GatherAndSlice(sizes, element_bytes, from, to);
  if (!from.tiled() || !to.tiled() || from.device_count != to.device_count) return plan;
  double exchange = static_cast<double>(element_bytes);
  for (int64_t size : LocalSizes(sizes, from)) exchange *= static_cast<double>(size);
  exchange += kStepCost;
  Tiling same = to;  // the same tiles, if they have as many
  if (!CanPermute(from, to)) {
    if (from.order == to.order || !from.manual.empty() || !to.manual.empty()) return plan;
    same = from;
    same.order = to.order;
  }
  ReshardPlan rest = PlanReshard(sizes, element_bytes, same, to);
  if (rest.cost + exchange >= plan.cost) return plan;
  rest.cost += exchange;
  rest.steps.insert(rest.steps.begin(), {MoveKind::kPermute, {}, std::move(same)});
  return rest;
}

}  // namespace

ReshardPlan PlanReshard(absl::Span<const int64_t> sizes, int64_t element_bytes, const Tiling& from, const Tiling& to) {
  if (from == to || (!from.tiled() && !to.tiled())) return {};
  Tiling a = from, b = to;
  if (a.tiled() && b.tiled()) {
    std::optional<std::pair<Tiling, Tiling>> both = InOneOrder(a, b);
    if (!both) return WithoutCommonAxes(sizes, element_bytes, from, to);
    a = std::move(both->first);
    b = std::move(both->second);
  }
  Planner planner(sizes, element_bytes, a.tiled() ? a : b);
  if (!planner.Cut(a, b)) return WithoutCommonAxes(sizes, element_bytes, from, to);
  std::optional<ReshardPlan> plan = planner.Search();
  if (!plan) return GatherAndSlice(sizes, element_bytes, from, to);
  for (const ReshardStep& step : plan->steps) {
    if (step.kind != MoveKind::kAllGather) continue;
    plan->rematerialized = plan->rematerialized || (step.after.tiles() == 1 && to.tiles() > 1 && from.tiles() > 1);
  }
  JoinSlices(&*plan);
  return *std::move(plan);
}

}  // namespace hlokit::spmd
