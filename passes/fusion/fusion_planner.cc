// SPDX-License-Identifier: Apache-2.0
// Idea: one walk over a computation in reverse post-order, users before operands. When a value comes up, all its users
// have their groups. It joins the groups that read it, as a member or as a copy, or those groups merge around it, or it
// begins a group of its own: whichever saves most bytes of memory traffic, by the constraints of fusion_plan.h.
// Invariant: groups are disjoint, each is one loop nest, and no path leads from a group through others back to it.
// IncrementalTopologicalOrder holds an order of the groups, and refuses what would close a cycle.
// Cost: about linear. A value looks at up to kMaxReaders groups, a search for a cycle visits a bounded number of them,
// and pairs that cannot merge are remembered.
#include "passes/fusion/fusion_planner.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "ir/core/saturating.h"
#include "ir/graph/traversal.h"
#include "passes/analysis/cost.h"

namespace hlokit {
namespace {

constexpr size_t kMaxReaders = 32;  // consumer groups considered per value

bool IsHero(FusionClass c) { return c == FusionClass::kReduce || c == FusionClass::kContraction; }

// Returns true for instructions that are never duplicated.
bool IsExpensive(FusionClass c) {
  return c == FusionClass::kExpensive || c == FusionClass::kWindow || c == FusionClass::kGather || IsHero(c);
}

bool InDefaultMemory(Shape shape) { return !shape.has_layout() || shape.layout()->memory_space() == 0; }

bool IsPlainArray(Shape shape) {
  return shape.IsArray() && !shape.has_dynamic_dims() && shape.element_count() > 0 && InDefaultMemory(shape);
}

}  // namespace

const FusionPlanner::ShapeFacts& FusionPlanner::ComputeFacts(ShapeId id) {
  if (shapes_.size() <= id.value) shapes_.resize(module_.context().shapes.size());
  ShapeFacts& facts = shapes_[id.value];
  const Shape shape = module_.context().shape(id);
  facts.bytes = BufferBytes(shape);
  facts.elements = shape.IsArray() ? std::max<int64_t>(0, shape.element_count()) : 0;
  facts.plain = IsPlainArray(shape);
  facts.plain_tuple = shape.IsTuple() && absl::c_all_of(shape.elements(), IsPlainArray);
  return facts;
}

FusionClass FusionPlanner::ClassOf(const InstructionRecord& r, const ShapeFacts& shape) const {
  const FusionClass c = FusionClassOf(r.opcode);
  if (!shape.plain && !(shape.plain_tuple && c == FusionClass::kReduce)) return FusionClass::kOpaque;
  if (c == FusionClass::kContraction && (!limits_.output_fusion || r.operand_count != 2)) return FusionClass::kOpaque;
  // Larger constants are not fused: they are read either way.
  if (r.opcode == Opcode::kConstant && shape.elements > 1) return FusionClass::kOpaque;
  return c;
}

void FusionPlanner::Number(Computation computation) {
  order_ = PostOrder(computation);
  const auto count = static_cast<uint32_t>(order_.size());
  // Other computations are ignored.
  if (node_of_.size() < module_.instruction_id_bound()) node_of_.resize(module_.instruction_id_bound());
  for (Node n = 0; n < count; ++n) node_of_[order_[n].value] = n;
  const InstructionId root = computation.record().root;
  root_ = root.valid() ? node_of_[root.value] : kNone;
  round_ = 0;
  info_.assign(count, NodeInfo());
  operands_.clear();
  operands_.reserve(2 * size_t{count});
  operand_begin_.resize(count + 1);
  operand_begin_[0] = 0;
  user_begin_.assign(count + 2, 0);  // prefix sums: counts are stored two positions later
  for (Node n = 0; n < count; ++n) {
    const InstructionRecord& r = module_.record(order_[n]);
    const ShapeFacts& shape = FactsOf(r.shape);
    NodeInfo& info = info_[n];
    info.plain = shape.plain;
    info.elements = shape.elements;
    info.bytes = shape.bytes;
    bool may_be_fused = true;
    for (uint32_t k = 0; k < r.operand_count; ++k) {
      const Node o = node_of_[module_.use(UseId(r.operand_begin + k)).def.value];
      operands_.push_back(o);
      ++user_begin_[o + 2];
      may_be_fused &= info_[o].plain;
    }
    operand_begin_[n + 1] = static_cast<uint32_t>(operands_.size());
    for (const AttrValue& a : module_.attrs_of(r)) {
      if (a.attr != Attr::kControlPredecessors) continue;
      may_be_fused = false;
      for (int64_t before : module_.context().list(ListId(a.payload))) {
        info_[node_of_[static_cast<size_t>(before)]].fusion_class = FusionClass::kOpaque;
      }
    }
    if (may_be_fused) info.fusion_class = ClassOf(r, shape);
    info.reads_independently = info.fusion_class == FusionClass::kBroadcast || r.opcode == Opcode::kReshape;
  }
  for (Node n = 0; n < count; ++n) user_begin_[n + 2] += user_begin_[n + 1];
  users_.resize(operands_.size());
  for (Node n = 0; n < count; ++n) {
    for (Node o : OperandsOf(n)) users_[user_begin_[o + 1]++] = n;
  }
  user_begin_.pop_back();
}

void FusionPlanner::StartGroup(Node n) {
  NodeInfo& info = info_[n];
  info.group = static_cast<int32_t>(groups_.size());
  info.role = Role{LoopRegion::kResult, true, 1};
  Group& group = groups_.emplace_back();
  group.size = info.elements;
  const absl::Span<const Node> operands = OperandsOf(n);
  if (IsHero(info.fusion_class)) group.hero = n;
  if (info.fusion_class == FusionClass::kReduce) {
    group.reduced_size = info_[operands[0]].elements;
    if (!info.plain) {
      group.single_result = true;
      group.size = module_.instruction(order_[n]).shape().element(0).element_count();
    }
  }
  if (info.fusion_class == FusionClass::kUpdate) group.size = info_[operands[1]].elements;
  for (Node o : operands) {
    if (!Reads(group, o)) group.inputs.push_back(o);
  }
}

void FusionPlanner::CollectUsers(Node n) {
  Users& users = current_users_;
  users.groups.clear();
  users.readers.clear();
  users.others = n == root_;
  ++round_;
  const auto add_consumer = [&](Node user, Node group, const Role& role) {
    if (info_[group].group < 0) {
      users.others = true;
      return;
    }
    const auto reader = static_cast<uint32_t>(users.readers.size());
    users.readers.push_back({user, kNone, role});
    Group& g = GroupOf(group);
    if (g.round != round_) {
      g.round = round_;
      g.user_group = static_cast<uint32_t>(users.groups.size());
      users.groups.push_back({group, reader, reader});
      return;
    }
    ConsumerGroup& reading = users.groups[g.user_group];
    reading.last = users.readers[reading.last].next = reader;
  };
  Node previous = kNone;
  for (Node user : UsersOf(n)) {
    if (user == previous) continue;
    previous = user;
    const NodeInfo& info = info_[user];
    const Node home = info.remains ? group_order_.Find(user) : kNone;
    if (home != kNone) add_consumer(user, home, info.role);
    ForEachCopy(user, [&](const CopyLocation& copy) {
      if (const Node group = group_order_.Find(copy.member); group != home) add_consumer(user, group, copy.role);
    });
  }
  if (users.groups.size() < 2) return;
  std::sort(users.groups.begin(), users.groups.end(),
            [&](const ConsumerGroup& a, const ConsumerGroup& b) { return group_order_.Before(a.group, b.group); });
}

bool FusionPlanner::Reads(const Group& group, Node n) {
  return std::find(group.inputs.begin(), group.inputs.end(), n) != group.inputs.end();
}

bool FusionPlanner::HasCapacity(const Group& group, Node n) const {
  if (group.size_in_all() >= limits_.max_instructions) {
    rejection_ = {RemarkRule::kFusionTooLarge};
    return false;
  }
  const absl::Span<const Node> operands = OperandsOf(n);
  int64_t inputs = static_cast<int64_t>(group.inputs.size()) + group.results;
  if (inputs + static_cast<int64_t>(operands.size()) <= limits_.max_operands) return true;
  for (Node o : operands) inputs += !Reads(group, o);
  rejection_ = {RemarkRule::kTooManyOperands, static_cast<double>(inputs)};
  return inputs <= limits_.max_operands;
}

FusionPlanner::Node FusionPlanner::Narrowest(Node n) const {
  constexpr int kMaxSteps = 4;
  for (int step = 0; step < kMaxSteps; ++step) {
    const FusionClass c = info_[n].fusion_class;
    const bool converts = c == FusionClass::kCheap && module_.record(order_[n]).opcode == Opcode::kConvert;
    if (!converts && c != FusionClass::kBroadcast) return n;
    const Node operand = OperandsOf(n)[0];
    if (info_[operand].bytes >= info_[n].bytes) return n;
    n = operand;
  }
  return n;
}

int64_t FusionPlanner::CollectReads(Node n) {
  reads_.clear();
  int64_t bytes = 0;
  const absl::Span<const Node> operands = OperandsOf(n);
  for (auto o = operands.begin(); o != operands.end(); ++o) {
    if (std::find(operands.begin(), o, *o) != o || info_[*o].fusion_class == FusionClass::kSource) continue;
    // A slice reads only its result, so it counts separately from other readers.
    const bool cut = o == operands.begin() && info_[n].fusion_class == FusionClass::kSlicing &&
                     info_[n].elements < info_[*o].elements;
    const Node read = cut ? *o : Narrowest(*o);
    reads_.push_back({read, info_[cut ? n : read].bytes, cut || info_[n].reads_independently});
    bytes = SaturatingAdd(bytes, reads_.back().bytes);
  }
  return bytes;
}

int64_t FusionPlanner::ReadsMissingIn(const Group& group) const {
  int64_t bytes = 0;
  for (const Read& read : reads_) {
    if (read.independently || !Reads(group, read.operand)) bytes = SaturatingAdd(bytes, read.bytes);
  }
  return bytes;
}

int64_t FusionPlanner::UnreadByGather(Node representative) const {
  if (info_[representative].fusion_class != FusionClass::kGather) return 0;
  if (GroupOf(representative).size_in_all() > 1) return 0;
  return std::max<int64_t>(0, info_[OperandsOf(representative)[0]].bytes - info_[representative].bytes);
}

bool FusionPlanner::MayJoin(const Group& x, const Group& y) {
  if (x.single_result || y.single_result) return Separate("one of them is a reduction with several results");
  if (x.multiplies && y.multiplies) return Separate("both reduce the result of a dot or convolution");
  if (x.size_in_all() + y.size_in_all() > limits_.max_instructions) {
    return Separate("the fusion would have more instructions than max-instructions");
  }
  if (x.hero != kNone && y.hero != kNone) {
    if (x.size != y.size || x.reduced_size != y.reduced_size || !SameReduction(x.hero, y.hero)) {
      return Separate("they are around reductions, dots or convolutions that differ in sizes or dimensions");
    }
  } else if (x.size != y.size && (x.hero != kNone || x.size != y.reduced_size) &&
             (y.hero != kNone || y.size != x.reduced_size)) {
    return Separate("their loops have different numbers of elements");
  }
  int64_t inputs = static_cast<int64_t>(x.inputs.size() + y.inputs.size()) + x.results + y.results;
  if (inputs <= limits_.max_operands) return true;
  ++round_;
  for (Node n : x.inputs) info_[n].mark = round_;
  for (Node n : y.inputs) inputs -= info_[n].mark == round_;
  return inputs <= limits_.max_operands ||
         Separate("the fusion would have more operands and results than max-operands");
}

bool FusionPlanner::TryJoin(Node a, Node b) {
  if (!MayJoin(GroupOf(a), GroupOf(b))) return false;
  if (UnreadByGather(a) > 0 || UnreadByGather(b) > 0) {
    return Separate("one is a gather, which in a fusion would count the whole of its operand");
  }
  constexpr std::string_view kDependent = "one depends on the other through instructions outside";
  const uint64_t pair = uint64_t{std::min(a, b)} << 32 | std::max(a, b);
  if (unmergeable_.contains(pair)) return Separate(kDependent);
  // The one that runs over the operand of the other's reduction.
  Node inside = kNone;
  if (GroupOf(a).size != GroupOf(b).size) {
    inside = GroupOf(a).hero == kNone && GroupOf(a).size == GroupOf(b).reduced_size ? a : b;
  }
  moved_members_.clear();
  if (inside != kNone) group_order_.ForEachNode(inside, [&](Node n) { moved_members_.push_back(n); });
  if (!group_order_.Join(a, b)) {
    unmergeable_.insert(pair);
    return Separate(kDependent);
  }
  for (Node n : moved_members_) info_[n].role.zone = LoopRegion::kReduced;
  if (inside != kNone) {
    for (const Copy& copy : GroupOf(inside).copies) copy_locations_[copy.place].role.zone = LoopRegion::kReduced;
  }
  const Node kept = group_order_.Find(a);
  Group& into = GroupOf(kept);
  Group from = std::move(GroupOf(kept == a ? b : a));
  if (inside == kept || (into.hero == kNone && from.hero != kNone)) {
    into.hero = from.hero;
    into.size = from.size;
    into.reduced_size = from.reduced_size;
  }
  into.recompute = std::max(into.recompute, from.recompute);
  into.multiplies |= from.multiplies;
  into.results += from.results;
  into.members += from.members;
  for (const Copy& copy : from.copies) {
    const bool known =
        std::any_of(into.copies.begin(), into.copies.end(), [&](const Copy& mine) { return mine.node == copy.node; });
    if (known) {
      copy_locations_[copy.place].member = kNone;
    } else {
      into.copies.push_back(copy);
    }
  }
  ++round_;
  for (Node n : into.inputs) info_[n].mark = round_;
  for (Node n : from.inputs) {
    if (info_[n].mark != round_) into.inputs.push_back(n);
  }
  for (const Copy& copy : into.copies) {
    into.inputs.erase(std::remove(into.inputs.begin(), into.inputs.end(), copy.node), into.inputs.end());
  }
  return true;
}

bool FusionPlanner::MayHaveReadersToJoin(Node n) const {
  if (!limits_.multi_output || info_[n].elements < 2) return false;
  const absl::Span<const Node> users = UsersOf(n);
  return users.size() > 1 || (users.size() == 1 && info_[users[0]].first_copy != kNone);
}

void FusionPlanner::JoinReaders(Node n) {
  const std::vector<ConsumerGroup>& groups = current_users_.groups;
  if (groups.size() < 2 || !MayHaveReadersToJoin(n)) return;
  absl::InlinedVector<Node, kMaxReaders> joined;
  size_t first_joined = 0;  // index of the first of them, for remarks
  bool changed = false;
  for (size_t k = 0; k < std::min(groups.size(), kMaxReaders); ++k) {
    const Node group = groups[k].group;
    const Group& g = GroupOf(group);
    if (g.size != info_[n].elements && g.reduced_size != info_[n].elements) continue;
    bool done = false;
    for (Node& other : joined) {
      if (!TryJoin(other, group)) continue;
      other = group_order_.Find(other);
      done = changed = true;
      break;
    }
    if (remarks_ != nullptr && !joined.empty()) {
      RemarkSiblings(n, first_joined, k, done ? std::string_view() : separation_);
    }
    if (joined.empty()) first_joined = k;
    if (!done) joined.push_back(group);
  }
  if (changed) CollectUsers(n);
}

void FusionPlanner::ReplaceInput(Group& group, Node n) {
  const auto found = std::find(group.inputs.begin(), group.inputs.end(), n);
  if (found != group.inputs.end()) {
    *found = group.inputs.back();
    group.inputs.pop_back();
  }
  for (Node o : OperandsOf(n)) {
    if (!Reads(group, o)) group.inputs.push_back(o);
  }
}

bool FusionPlanner::Absorb(Node n, Node group, const Role& role, double recompute, bool result) {
  if (!group_order_.Absorb(n, group)) return false;
  Group& g = GroupOf(group);
  NodeInfo& info = info_[n];
  info.role = role;
  if (g.hero != kNone && info.fusion_class == FusionClass::kContraction) g.multiplies = true;
  if (g.hero == kNone && IsHero(info.fusion_class)) {
    g.hero = n;
    if (info.fusion_class == FusionClass::kReduce) g.reduced_size = info_[OperandsOf(n)[0]].elements;
  }
  g.recompute += recompute;
  ++g.members;
  g.results += result;
  ReplaceInput(g, n);
  return true;
}

void FusionPlanner::AddCopy(Node n, Node group, const Role& role, double recompute) {
  Group& g = GroupOf(group);
  const auto place = static_cast<uint32_t>(copy_locations_.size());
  copy_locations_.push_back({group, info_[n].first_copy, role});
  info_[n].first_copy = place;
  g.copies.push_back({n, place});
  g.recompute += recompute;
  ReplaceInput(g, n);
}

void FusionPlanner::CollectFits(Node n) {
  const Users& users = current_users_;
  fits_.clear();
  for (size_t k = 0; k < users.groups.size(); ++k) {
    if (k == kMaxReaders) {
      rejection_ = {RemarkRule::kTooManyConsumers};
      if (remarks_ != nullptr) RemarkRejected(n, users.groups[k]);
      break;
    }
    const Group& group = GroupOf(users.groups[k].group);
    double recompute = 0;
    const std::optional<Role> role = RoleIn(n, users.groups[k], &recompute);
    if (!role || !HasCapacity(group, n)) {
      if (remarks_ != nullptr) RemarkRejected(n, users.groups[k]);
      continue;
    }
    const Node representative = users.groups[k].group;
    fits_.push_back(
        {representative, *role, recompute, SaturatingAdd(ReadsMissingIn(group), UnreadByGather(representative))});
  }
}

void FusionPlanner::Place(Node n) {
  const int64_t reads = CollectReads(n);
  CollectFits(n);
  if (fits_.empty()) return;
  const Decision decision = PlaceIn(n, reads);
  if (remarks_ != nullptr) RemarkPlaced(n, decision);
}

FusionPlanner::Decision FusionPlanner::PlaceIn(Node n, int64_t reads) {
  const Users& users = current_users_;
  NodeInfo& info = info_[n];
  Decision decision;
  if (remarks_ != nullptr) decision.outcomes.assign(fits_.size(), Outcome::kAbsent);
  const auto set_outcome = [&](const FusionCandidate& fit, Outcome outcome) {
    if (remarks_ != nullptr) decision.outcomes[static_cast<size_t>(&fit - fits_.data())] = outcome;
  };
  const bool only = decision.only = users.groups.size() == 1 && !users.others;
  const int64_t bytes = info.bytes;
  // Unfused, a gather reads the gathered elements and the indices; in a fusion it counts all of its operand.
  if (info.fusion_class == FusionClass::kGather) reads = SaturatingAdd(bytes, info_[OperandsOf(n)[1]].bytes);
  // Savings of computing the value at every user; of computing it in one group, and at other users where that is
  // cheaper than reading it; of the latter alone.
  const bool may_copy = !IsExpensive(info.fusion_class);
  int64_t everywhere = 0, some = 0;
  for (const FusionCandidate& fit : fits_) {
    everywhere = SaturatingAdd(everywhere, bytes - fit.reads);
    if (fit.reads < bytes) some = SaturatingAdd(some, bytes - fit.reads);
  }
  everywhere = SaturatingAdd(everywhere, SaturatingAdd(reads, bytes));
  const bool can_vanish = may_copy && !users.others && fits_.size() == users.groups.size();
  const FusionCandidate* home = nullptr;
  int64_t at_home = 0;
  for (const FusionCandidate& fit : fits_) {
    if (!only && !MayBeResult(GroupOf(fit.group), fit.role)) continue;
    int64_t saved = bytes + reads - fit.reads + (only ? bytes : 0);
    if (may_copy) saved += some - std::max<int64_t>(0, bytes - fit.reads);
    if (saved > 0 && (home == nullptr || saved > at_home)) {
      home = &fit;
      at_home = saved;
    }
  }
  const auto copy_into = [&](const FusionCandidate& fit) {
    AddCopy(n, fit.group, fit.role, CopyCost(n, GroupOf(fit.group)));
    set_outcome(fit, Outcome::kCopied);
  };
  if (home != nullptr && (!can_vanish || at_home >= everywhere) && (!may_copy || at_home >= some)) {
    const Node group = home->group;
    if (Absorb(n, group, home->role, home->recompute, !only)) {
      set_outcome(*home, Outcome::kHome);
      if (!may_copy) return decision;
      for (const FusionCandidate& fit : fits_) {
        if (fit.group != group && fit.reads < bytes) copy_into(fit);
      }
      return decision;
    }
    decision.cycle = true;
  }
  if (!may_copy) return decision;
  const bool vanishes = can_vanish && everywhere > 0 && everywhere >= some;
  for (const FusionCandidate& fit : fits_) {
    if (vanishes || fit.reads < bytes) copy_into(fit);
  }
  if (!vanishes) return decision;
  info.remains = false;
  group_order_.Dissolve(n);
  return decision;
}

void FusionPlanner::Finish(Node representative) {
  const Group& group = GroupOf(representative);
  entries_.clear();
  ++round_;
  group_order_.ForEachNode(representative, [&](Node n) {
    info_[n].mark = round_;
    entries_.push_back({n, true});
  });
  for (const Copy& copy : group.copies) {
    if (info_[copy.node].mark != round_) entries_.push_back({copy.node, false});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.node < b.node; });
  FusionGroup made;
  made.begin = static_cast<uint32_t>(plan_.members.size());
  const auto is_outside = [&](Node member) { return group_order_.Find(member) != representative; };
  for (const Entry& entry : entries_) {
    const Node n = entry.node;
    // An unused instruction is a result too: removing it is up to DCE.
    bool result = entry.exclusive && (n == root_ || UsersOf(n).empty());
    if (entry.exclusive && !result) {
      for (Node user : UsersOf(n)) {
        result |= info_[user].remains && is_outside(user);
        ForEachCopy(user, [&](const CopyLocation& copy) { result |= is_outside(copy.member); });
        if (result) break;
      }
    }
    plan_.members.push_back({order_[n], entry.exclusive, result});
    made.results += result;
  }
  made.end = static_cast<uint32_t>(plan_.members.size());
  made.inputs = static_cast<uint32_t>(group.inputs.size());
  made.metadata_source = order_[entries_.back().node];
  if (group.hero != kNone) {
    made.metadata_source = order_[group.hero];
    made.kind = info_[group.hero].fusion_class == FusionClass::kReduce && !group.multiplies ? FusionKind::kInput
                                                                                            : FusionKind::kOutput;
  }
  plan_.groups.push_back(made);
}

template <typename MayBeFused>
bool FusionPlanner::HasCandidates(MayBeFused may_be_fused) const {
  for (Node n = 0; n < order_.size(); ++n) {
    int readers = may_be_fused(n) ? 1 : 0;
    Node previous = kNone;
    for (Node user : UsersOf(n)) {
      if (user != previous && may_be_fused(user) && ++readers == 2) return true;
      previous = user;
    }
  }
  return false;
}

bool FusionPlanner::LeavesCandidates() {
  ++round_;
  bool any = false;
  for (Node n = 0; n < order_.size(); ++n) {
    NodeInfo& info = info_[n];
    if (info.fusion_class == FusionClass::kOpaque || !info.remains) continue;
    const NodeInfo& group = info_[group_order_.Find(n)];
    if (group.group >= 0 && groups_[static_cast<size_t>(group.group)].planned) continue;
    info.mark = round_;
    any = true;
  }
  return any && HasCandidates([this](Node n) { return info_[n].mark == round_; });
}

const FusionPlan& FusionPlanner::Plan(Computation computation) {
  plan_.groups.clear();
  plan_.members.clear();
  plan_.may_fuse_more = false;
  Number(computation);
  if (!HasCandidates([this](Node n) { return info_[n].fusion_class != FusionClass::kOpaque; })) {
    for (Node n = static_cast<Node>(order_.size()); remarks_ != nullptr && n-- > 0;) RemarkInitial(n);
    return plan_;
  }
  groups_.clear();
  groups_.reserve(order_.size());  // reallocation would cost more than reserving the maximum
  copy_locations_.clear();
  unmergeable_.clear();
  group_order_.Begin(user_begin_, users_);
  for (Node n = static_cast<Node>(order_.size()); n-- > 0;) {
    const FusionClass c = info_[n].fusion_class;
    if (remarks_ != nullptr) RemarkInitial(n);
    const bool may_move = c != FusionClass::kOpaque && c != FusionClass::kUpdate;
    if (may_move || MayHaveReadersToJoin(n)) {
      CollectUsers(n);
      JoinReaders(n);
      if (may_move) Place(n);
    }
    const bool alone = info_[n].remains && group_order_.Find(n) == n;
    if (alone && c != FusionClass::kOpaque && c != FusionClass::kSource) StartGroup(n);
  }
  representatives_.clear();
  for (Node n = 0; n < order_.size(); ++n) {
    if (group_order_.Find(n) != n || info_[n].group < 0 || !info_[n].remains) continue;
    Group& group = GroupOf(n);
    group.planned = group.size_in_all() >= 2;
    if (group.planned) representatives_.push_back(n);
  }
  std::sort(representatives_.begin(), representatives_.end(),
            [&](Node a, Node b) { return group_order_.Before(a, b); });
  for (Node n : representatives_) Finish(n);
  plan_.may_fuse_more = LeavesCandidates();
  return plan_;
}

}  // namespace hlokit
