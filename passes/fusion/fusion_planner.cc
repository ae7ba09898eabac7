#include "passes/fusion/fusion_planner.h"

#include <algorithm>
#include <utility>

#include "ir/attribute_views.h"
#include "ir/traversal.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/saturating.h"

namespace hlokit {
namespace {

constexpr size_t kMaxReaders = 32;  // groups around one value that are looked at
constexpr double kOnce = 1.0001;

bool IsHero(FusionClass c) { return c == FusionClass::kReduce || c == FusionClass::kProduct; }

// Computed once or not at all.
bool IsDear(FusionClass c) { return c == FusionClass::kDear || c == FusionClass::kWindow || IsHero(c); }

bool InDefaultMemory(Shape shape) { return !shape.has_layout() || shape.layout()->memory_space() == 0; }

bool IsPlainArray(Shape shape) {
  return shape.IsArray() && !shape.has_dynamic_dims() && shape.element_count() > 0 && InDefaultMemory(shape);
}

int64_t WindowReuse(Instruction i) {
  const WindowView window = WindowView::Of(i);
  int64_t reuse = 1;
  for (int64_t d = 0; d < window.rank(); ++d) {
    reuse = SatMul(reuse, std::max<int64_t>(1, window[d].size / std::max<int64_t>(1, window[d].stride)));
  }
  return reuse;
}

}  // namespace

FusionPlanner::FusionPlanner(Computation computation, const FusionLimits& limits)
    : module_(computation.module()), computation_(computation), limits_(limits) {
  Number();
}

FusionClass FusionPlanner::ClassOf(Instruction i) const {
  const FusionClass c = FusionClassOf(i.opcode());
  if (c == FusionClass::kOpaque || i.has(Attr::kControlPredecessors) || !i.control_successors().empty()) {
    return FusionClass::kOpaque;
  }
  const Shape shape = i.shape();
  if (shape.IsTuple()) {
    if (c != FusionClass::kReduce) return FusionClass::kOpaque;
    for (Shape element : shape.elements()) {
      if (!IsPlainArray(element)) return FusionClass::kOpaque;
    }
  } else if (!IsPlainArray(shape)) {
    return FusionClass::kOpaque;
  }
  for (Instruction operand : i.operands()) {
    if (!IsPlainArray(operand.shape())) return FusionClass::kOpaque;
  }
  if (c == FusionClass::kProduct && (!limits_.output_fusion || i.operand_count() != 2)) return FusionClass::kOpaque;
  // Larger constants stay where they are: they are read either way.
  if (i.opcode() == Opcode::kConstant && shape.element_count() > 1) return FusionClass::kOpaque;
  return c;
}

void FusionPlanner::Number() {
  order_ = PostOrder(computation_);
  uint32_t highest = 0;
  lowest_ = 0xffffffffu;
  for (InstructionId id : order_) {
    lowest_ = std::min(lowest_, id.value);
    highest = std::max(highest, id.value);
  }
  if (order_.empty()) return;
  node_of_.resize(highest - lowest_ + 1);
  const auto count = static_cast<uint32_t>(order_.size());
  for (Node n = 0; n < count; ++n) node_of_[order_[n].value - lowest_] = n;
  info_.resize(count);
  operand_begin_.assign(count + 1, 0);
  operands_.reserve(2 * size_t{count});
  std::vector<uint32_t> uses(count + 1, 0);
  for (Node n = 0; n < count; ++n) {
    const Instruction i = module_.instruction(order_[n]);
    for (Instruction operand : i.operands()) {
      const Node o = node_of_[operand.id().value - lowest_];
      operands_.push_back(o);
      ++uses[o + 1];
    }
    operand_begin_[n + 1] = static_cast<uint32_t>(operands_.size());
    NodeInfo& info = info_[n];
    info.fusion_class = ClassOf(i);
    info.elements = i.shape().IsArray() ? std::max<int64_t>(0, i.shape().element_count()) : 0;
    info.bytes = BufferBytes(i.shape());
  }
  for (Node n = 0; n < count; ++n) uses[n + 1] += uses[n];
  user_begin_ = uses;
  users_.resize(operands_.size());
  for (Node n = 0; n < count; ++n) {
    for (uint32_t k = operand_begin_[n]; k < operand_begin_[n + 1]; ++k) users_[uses[operands_[k]]++] = n;
  }
  first_copy_.assign(count, kNone);
  seen_.assign(count, 0);
}

void FusionPlanner::StartGroup(Node n) {
  NodeInfo& info = info_[n];
  info.group = static_cast<int32_t>(groups_.size());
  info.role = Role{Zone::kResult, true, 1};
  Group& group = groups_.emplace_back();
  group.size = info.elements;
  const Node* operands = operands_.data() + operand_begin_[n];
  const uint32_t operand_count = operand_begin_[n + 1] - operand_begin_[n];
  if (IsHero(info.fusion_class)) group.hero = n;
  if (info.fusion_class == FusionClass::kReduce) {
    group.reduced_size = info_[operands[0]].elements;
    const Shape shape = module_.instruction(order_[n]).shape();
    if (shape.IsTuple()) {
      group.single_result = true;
      group.size = shape.element(0).element_count();
    }
  }
  if (info.fusion_class == FusionClass::kUpdate) group.size = info_[operands[1]].elements;
  for (uint32_t k = 0; k < operand_count; ++k) {
    if (std::find(group.inputs.begin(), group.inputs.end(), operands[k]) == group.inputs.end()) {
      group.inputs.push_back(operands[k]);
    }
  }
}

void FusionPlanner::FindUsers(Node n, Users* users) {
  users->groups.clear();
  users->others = order_[n] == computation_.record().root;
  ++round_;
  const auto meet = [&](Node member) {
    const Node group = groups_order_->Find(member);
    if (info_[group].group < 0) {
      users->others = true;
    } else if (seen_[group] != round_) {
      seen_[group] = round_;
      users->groups.push_back(group);
    }
  };
  for (uint32_t k = user_begin_[n]; k < user_begin_[n + 1]; ++k) {
    const Node user = users_[k];
    if (info_[user].stays) meet(user);
    ForEachCopy(user, meet);
  }
  if (users->groups.size() < 2) return;
  std::sort(users->groups.begin(), users->groups.end(), [&](Node a, Node b) { return groups_order_->Before(a, b); });
}

std::optional<FusionPlanner::Role> FusionPlanner::RoleOf(Node n, Node group) const {
  for (const Copy& copy : GroupOf(group).copies) {
    if (copy.node == n) return copy.role;
  }
  return std::nullopt;
}

std::optional<FusionPlanner::Role> FusionPlanner::RoleIn(Node n, Node group, double* recompute) {
  const NodeInfo& info = info_[n];
  const Group& g = GroupOf(group);
  Role role;
  role.times = 0;
  bool all_exact = true, first = true;
  for (uint32_t k = user_begin_[n]; k < user_begin_[n + 1]; ++k) {
    const Node u = users_[k];
    if (k > user_begin_[n] && u == users_[k - 1]) continue;
    const NodeInfo& user = info_[u];
    std::optional<Role> as;
    if (user.stays && groups_order_->Find(u) == group) {
      as = user.role;
    } else if (first_copy_[u] != kNone) {
      as = RoleOf(u, group);
    }
    if (!as) continue;
    const Node* operands = operands_.data() + operand_begin_[u];
    const auto operand_count = static_cast<int64_t>(operand_begin_[u + 1] - operand_begin_[u]);
    for (int64_t o = 0; o < operand_count; ++o) {
      if (operands[o] != n) continue;
      const double ratio =
          static_cast<double>(std::max<int64_t>(1, user.elements)) / static_cast<double>(info.elements);
      Role here{as->zone, false, as->times};
      switch (user.fusion_class) {
        case FusionClass::kCheap:
        case FusionClass::kDear:
        case FusionClass::kRearranged:
        case FusionClass::kBroadcast:
          here.exact = as->exact && user.elements == info.elements;
          here.times *= std::max(1.0, ratio);
          break;
        case FusionClass::kCut:
          break;
        case FusionClass::kGather:
          here.times *= std::max(1.0, ratio);
          break;
        case FusionClass::kUpdate:
          if (o == 0) return std::nullopt;
          here.exact = o == 1 && as->exact;
          break;
        case FusionClass::kReduce:
          if (as->zone != Zone::kResult) return std::nullopt;
          here = {Zone::kReduced, o < operand_count / 2 && as->exact && info.elements == g.reduced_size, as->times};
          break;
        case FusionClass::kWindow:
          here.times *= o < operand_count / 2 ? static_cast<double>(WindowReuse(module_.instruction(order_[u]))) : 1;
          break;
        case FusionClass::kProduct:
          here = {Zone::kMultiplied, false, limits_.operand_loads};
          break;
        case FusionClass::kSource:
        case FusionClass::kOpaque:
          return std::nullopt;
      }
      if (info.elements <= 1) here.times = 1;  // computed before the loop
      all_exact &= here.exact;
      role.times = std::max(role.times, here.times);
      if (first || (here.exact && !role.exact)) {
        role.zone = here.zone;
        role.exact = here.exact;
      }
      first = false;
    }
  }
  if (first) return std::nullopt;
  *recompute = 0;
  const bool once = role.times <= kOnce;
  switch (info.fusion_class) {
    case FusionClass::kReduce:
      if (!all_exact || !once || role.zone != Zone::kResult || g.single_result) return std::nullopt;
      if (info.elements != g.size) return std::nullopt;
      if (g.hero != kNone && !SameReduction(n, g.hero)) return std::nullopt;
      break;
    case FusionClass::kProduct:
      if (!all_exact || !once || role.zone != Zone::kResult || g.single_result || g.hero != kNone) return std::nullopt;
      if (info.elements != g.size) return std::nullopt;
      break;
    case FusionClass::kDear:
    case FusionClass::kWindow:
      if (!once) return std::nullopt;
      break;
    case FusionClass::kCheap:
      if (!once) {
        const double loop = static_cast<double>(std::max<int64_t>(1, std::max(g.size, g.reduced_size)));
        *recompute =
            role.zone == Zone::kMultiplied ? 1 : std::min(1.0, role.times * static_cast<double>(info.elements) / loop);
        if (g.recompute + *recompute > limits_.max_recompute) return std::nullopt;
      }
      break;
    case FusionClass::kSource:
    case FusionClass::kRearranged:
    case FusionClass::kBroadcast:
    case FusionClass::kCut:
    case FusionClass::kGather:
      break;
    case FusionClass::kUpdate:
    case FusionClass::kOpaque:
      return std::nullopt;
  }
  return role;
}

bool FusionPlanner::MayBeResult(const Group& group, const Role& role) const {
  return limits_.multi_output && role.exact && role.times <= kOnce && role.zone != Zone::kMultiplied &&
         !group.single_result;
}

bool FusionPlanner::SameReduction(Node a, Node b) const {
  const Instruction x = module_.instruction(order_[a]), y = module_.instruction(order_[b]);
  if (x.opcode() != Opcode::kReduce || y.opcode() != Opcode::kReduce) return false;
  return x.operand(0).shape().dims() == y.operand(0).shape().dims() &&
         x.list_attr(Attr::kDimensions) == y.list_attr(Attr::kDimensions);
}

bool FusionPlanner::HasRoom(const Group& group, Node n) const {
  if (group.members + static_cast<int64_t>(group.copies.size()) >= limits_.max_instructions) return false;
  int64_t inputs = static_cast<int64_t>(group.inputs.size()) + group.results;
  for (uint32_t k = operand_begin_[n]; k < operand_begin_[n + 1]; ++k) {
    inputs += std::find(group.inputs.begin(), group.inputs.end(), operands_[k]) == group.inputs.end();
  }
  return inputs <= limits_.max_operands;
}

int64_t FusionPlanner::BytesReadBy(Node n, const Group* group) const {
  int64_t bytes = 0;
  for (uint32_t k = operand_begin_[n]; k < operand_begin_[n + 1]; ++k) {
    const Node o = operands_[k];
    if (std::find(operands_.begin() + operand_begin_[n], operands_.begin() + k, o) != operands_.begin() + k) continue;
    if (info_[o].fusion_class == FusionClass::kSource) continue;
    // A slice reads what it keeps, and is counted apart from other readers.
    if (k == operand_begin_[n] && info_[n].fusion_class == FusionClass::kCut && info_[n].elements < info_[o].elements) {
      bytes = SatAdd(bytes, info_[n].bytes);
      continue;
    }
    const bool counted_apart =
        info_[n].fusion_class == FusionClass::kBroadcast || module_.record(order_[n]).opcode == Opcode::kReshape;
    if (group != nullptr && !counted_apart &&
        std::find(group->inputs.begin(), group->inputs.end(), o) != group->inputs.end()) {
      continue;
    }
    bytes = SatAdd(bytes, info_[o].bytes);
  }
  return bytes;
}

bool FusionPlanner::TryJoin(Node a, Node b) {
  const Group &x = GroupOf(a), &y = GroupOf(b);
  if (x.single_result || y.single_result) return false;
  const int64_t results = x.results + y.results;
  if (x.members + y.members + static_cast<int64_t>(x.copies.size() + y.copies.size()) > limits_.max_instructions) {
    return false;
  }
  int64_t inputs = static_cast<int64_t>(x.inputs.size());
  for (Node n : y.inputs) inputs += std::find(x.inputs.begin(), x.inputs.end(), n) == x.inputs.end();
  if (inputs + results > limits_.max_operands) return false;
  // Which of them runs over what a reduction of the other reads.
  Node inside = kNone;
  if (x.hero != kNone && y.hero != kNone) {
    if (x.size != y.size || x.reduced_size != y.reduced_size || !SameReduction(x.hero, y.hero)) return false;
  } else if (x.size != y.size) {
    if (x.hero == kNone && x.size == y.reduced_size) {
      inside = a;
    } else if (y.hero == kNone && y.size == x.reduced_size) {
      inside = b;
    } else {
      return false;
    }
  }
  std::vector<Node> moved_in;
  if (inside != kNone) groups_order_->ForEachNode(inside, [&](Node n) { moved_in.push_back(n); });
  const uint64_t pair = uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  if (apart_.contains(pair)) return false;
  if (!groups_order_->Join(a, b)) {
    apart_.insert(pair);
    return false;
  }
  for (Node n : moved_in) info_[n].role.zone = Zone::kReduced;
  if (inside != kNone) {
    for (Copy& copy : GroupOf(inside).copies) copy.role.zone = Zone::kReduced;
  }
  const Node kept = groups_order_->Find(a);
  Group& into = GroupOf(kept);
  Group from = std::move(GroupOf(kept == a ? b : a));
  if (inside == kept || (into.hero == kNone && from.hero != kNone)) {
    into.hero = from.hero;
    into.size = from.size;
    into.reduced_size = from.reduced_size;
  }
  into.recompute = std::max(into.recompute, from.recompute);
  into.results += from.results;
  into.members += from.members;
  for (const Copy& copy : from.copies) {
    const bool known =
        std::any_of(into.copies.begin(), into.copies.end(), [&](const Copy& mine) { return mine.node == copy.node; });
    if (!known) into.copies.push_back(copy);
  }
  for (Node n : from.inputs) {
    if (std::find(into.inputs.begin(), into.inputs.end(), n) == into.inputs.end()) into.inputs.push_back(n);
  }
  for (const Copy& copy : into.copies) {
    into.inputs.erase(std::remove(into.inputs.begin(), into.inputs.end(), copy.node), into.inputs.end());
  }
  return true;
}

void FusionPlanner::JoinReaders(Node n, Users* users) {
  if (!limits_.multi_output || users->groups.size() < 2 || info_[n].elements < 2) return;
  absl::InlinedVector<Node, kMaxReaders> joined;
  bool changed = false;
  for (size_t k = 0; k < std::min(users->groups.size(), kMaxReaders); ++k) {
    Node group = users->groups[k];
    const Group& g = GroupOf(group);
    if (g.size != info_[n].elements && g.reduced_size != info_[n].elements) continue;
    bool done = false;
    for (Node& other : joined) {
      if (!TryJoin(other, group)) continue;
      other = groups_order_->Find(other);
      done = changed = true;
      break;
    }
    if (!done) joined.push_back(group);
  }
  if (changed) FindUsers(n, users);
}

void FusionPlanner::ReplaceInput(Group& group, Node n) {
  group.inputs.erase(std::remove(group.inputs.begin(), group.inputs.end(), n), group.inputs.end());
  for (uint32_t k = operand_begin_[n]; k < operand_begin_[n + 1]; ++k) {
    const Node o = operands_[k];
    if (std::find(group.inputs.begin(), group.inputs.end(), o) == group.inputs.end()) group.inputs.push_back(o);
  }
}

bool FusionPlanner::Absorb(Node n, Node group, const Role& role, double recompute, bool result) {
  if (!groups_order_->Absorb(n, group)) return false;
  Group& g = GroupOf(group);
  NodeInfo& info = info_[n];
  info.role = role;
  if (g.hero == kNone && IsHero(info.fusion_class)) {
    g.hero = n;
    if (info.fusion_class == FusionClass::kReduce) g.reduced_size = info_[operands_[operand_begin_[n]]].elements;
  }
  g.recompute += recompute;
  ++g.members;
  g.results += result;
  ReplaceInput(g, n);
  return true;
}

void FusionPlanner::AddCopy(Node n, Node group, const Role& role, double recompute) {
  Group& g = GroupOf(group);
  g.copies.push_back({n, role});
  g.recompute += recompute;
  ReplaceInput(g, n);
  copy_places_.push_back({group, first_copy_[n]});
  first_copy_[n] = static_cast<uint32_t>(copy_places_.size() - 1);
}

void FusionPlanner::Place(Node n, const Users& users) {
  NodeInfo& info = info_[n];
  struct Fit {
    Node group;
    Role role;
    double recompute;
    int64_t reads;  // what the group has to read more to compute n
  };
  absl::InlinedVector<Fit, 4> fits;
  for (size_t k = 0; k < std::min(users.groups.size(), kMaxReaders); ++k) {
    Fit fit{users.groups[k], {}, 0, 0};
    const Group& group = GroupOf(fit.group);
    const std::optional<Role> role = RoleIn(n, fit.group, &fit.recompute);
    if (!role || !HasRoom(group, n)) continue;
    fit.role = *role;
    fit.reads = BytesReadBy(n, &group);
    fits.push_back(fit);
  }
  if (fits.empty()) return;
  const bool only = users.groups.size() == 1 && !users.others;
  const int64_t bytes = info.bytes;
  int64_t reads = BytesReadBy(n, nullptr);
  // On its own a gather reads what it takes, and the indices; in a fusion all of its operand counts.
  if (info.fusion_class == FusionClass::kGather) reads = SatAdd(bytes, info_[operands_[operand_begin_[n] + 1]].bytes);
  // Savings of computing it at every user; of computing it in one group, and at others where that is cheaper than to
  // read it; of the latter alone.
  const bool may_copy = !IsDear(info.fusion_class);
  int64_t everywhere = 0, some = 0;
  for (const Fit& fit : fits) {
    everywhere = SatAdd(everywhere, bytes - fit.reads);
    if (fit.reads < bytes) some = SatAdd(some, bytes - fit.reads);
  }
  everywhere = SatAdd(everywhere, SatAdd(reads, bytes));
  const bool can_vanish = may_copy && !users.others && fits.size() == users.groups.size();
  const Fit* home = nullptr;
  int64_t at_home = 0;
  for (const Fit& fit : fits) {
    if (!only && !MayBeResult(GroupOf(fit.group), fit.role)) continue;
    int64_t saved = bytes + reads - fit.reads + (only ? bytes : 0);
    if (may_copy) saved += some - std::max<int64_t>(0, bytes - fit.reads);
    if (saved > 0 && (home == nullptr || saved > at_home)) {
      home = &fit;
      at_home = saved;
    }
  }
  if (home != nullptr && (!can_vanish || at_home >= everywhere) && (!may_copy || at_home >= some)) {
    const Node group = home->group;
    if (Absorb(n, group, home->role, home->recompute, !only)) {
      if (!may_copy) return;
      for (const Fit& fit : fits) {
        if (fit.group != group && fit.reads < bytes) AddCopy(n, fit.group, fit.role, CopyCost(n, fit.group));
      }
      return;
    }
  }
  if (!may_copy) return;
  const bool vanishes = can_vanish && everywhere > 0 && everywhere >= some;
  for (const Fit& fit : fits) {
    if (vanishes || fit.reads < bytes) AddCopy(n, fit.group, fit.role, CopyCost(n, fit.group));
  }
  if (vanishes) info.stays = false;
}

double FusionPlanner::CopyCost(Node n, Node group) const {
  if (info_[n].fusion_class != FusionClass::kCheap) return 0;
  const Group& g = GroupOf(group);
  const double loop = static_cast<double>(std::max<int64_t>(1, std::max(g.size, g.reduced_size)));
  return std::min(1.0, static_cast<double>(info_[n].elements) / loop);
}

FusionGroup FusionPlanner::Finish(Node representative) {
  FusionGroup result;
  const Group& group = GroupOf(representative);
  struct Entry {
    Node node;
    bool moved;
  };
  std::vector<Entry> entries;
  groups_order_->ForEachNode(representative, [&](Node n) { entries.push_back({n, true}); });
  for (const Copy& copy : group.copies) entries.push_back({copy.node, false});
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.node < b.node; });
  for (const Entry& entry : entries) {
    const Node n = entry.node;
    result.instructions.push_back(order_[n]);
    result.moved.push_back(entry.moved);
    if (!entry.moved) continue;
    // What nothing uses is a result too: it is not for this pass to remove it.
    bool used_outside = order_[n] == computation_.record().root || user_begin_[n] == user_begin_[n + 1];
    for (uint32_t k = user_begin_[n]; k < user_begin_[n + 1] && !used_outside; ++k) {
      const Node user = users_[k];
      used_outside |= info_[user].stays && groups_order_->Find(user) != representative;
      ForEachCopy(user, [&](Node member) { used_outside |= groups_order_->Find(member) != representative; });
    }
    if (used_outside) result.results.push_back(order_[n]);
  }
  result.namesake = order_[entries.back().node];
  if (group.hero != kNone) {
    result.namesake = order_[group.hero];
    result.kind = info_[group.hero].fusion_class == FusionClass::kReduce ? FusionKind::kInput : FusionKind::kOutput;
  }
  return result;
}

// False if no two instructions could be put together: neither does one that may be fused use another, nor do two use
// the same value.
bool FusionPlanner::HasCandidates() const {
  const auto may_be_fused = [this](Node n) { return info_[n].fusion_class != FusionClass::kOpaque; };
  for (Node n = 0; n < order_.size(); ++n) {
    int readers = may_be_fused(n) ? 1 : 0;
    for (uint32_t k = user_begin_[n]; k < user_begin_[n + 1]; ++k) {
      const bool again = k > user_begin_[n] && users_[k] == users_[k - 1];
      if (!again && may_be_fused(users_[k]) && ++readers == 2) return true;
    }
  }
  return false;
}

std::vector<FusionGroup> FusionPlanner::Plan() {
  std::vector<FusionGroup> plan;
  if (!HasCandidates()) return plan;
  groups_order_.emplace(user_begin_, users_);
  Users users;
  for (Node n = static_cast<Node>(order_.size()); n-- > 0;) {
    const FusionClass c = info_[n].fusion_class;
    FindUsers(n, &users);
    JoinReaders(n, &users);
    if (c != FusionClass::kOpaque && c != FusionClass::kUpdate) Place(n, users);
    const bool alone = info_[n].stays && groups_order_->Find(n) == n;
    if (alone && c != FusionClass::kOpaque && c != FusionClass::kSource) StartGroup(n);
  }
  std::vector<Node> representatives;
  for (Node n = 0; n < order_.size(); ++n) {
    if (groups_order_->Find(n) != n || info_[n].group < 0 || !info_[n].stays) continue;
    const Group& group = GroupOf(n);
    if (group.members + static_cast<int64_t>(group.copies.size()) >= 2) representatives.push_back(n);
  }
  std::sort(representatives.begin(), representatives.end(),
            [&](Node a, Node b) { return groups_order_->Before(a, b); });
  for (Node n : representatives) plan.push_back(Finish(n));
  return plan;
}

std::vector<FusionGroup> PlanFusions(Computation computation, const FusionLimits& limits) {
  return FusionPlanner(computation, limits).Plan();
}

}  // namespace hlokit
