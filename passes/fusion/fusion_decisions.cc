// SPDX-License-Identifier: Apache-2.0
// Remarks on the decisions of the planner (fusion_remarks.h).
#include <algorithm>

#include "passes/fusion/fusion_planner.h"

namespace hlokit {

FusionRemarks::Members FusionPlanner::MembersFor(Node representative) {
  std::vector<Node> nodes;
  group_order_.ForEachNode(representative, [&](Node n) { nodes.push_back(n); });
  for (const Copy& copy : GroupOf(representative).copies) nodes.push_back(copy.node);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  remark_members_.clear();
  for (Node n : nodes) remark_members_.push_back(order_[n]);
  return remark_members_;
}

InstructionId FusionPlanner::ReaderIn(Node representative) const {
  for (const ConsumerGroup& group : current_users_.groups) {
    if (group.group == representative) return order_[current_users_.readers[group.first].user];
  }
  return order_[representative];
}

// An instruction that is never in a fusion, and an update in place, which no consumer computes.
void FusionPlanner::RemarkInitial(Node n) {
  // By its opcode: shapes and control edges may forbid it.
  const auto may_be_fused = [&](Node other) {
    return FusionClassOf(module_.record(order_[other]).opcode) != FusionClass::kOpaque;
  };
  const FusionClass c = info_[n].fusion_class;
  if (c == FusionClass::kOpaque) {
    const absl::Span<const Node> operands = OperandsOf(n), users = UsersOf(n);
    remarks_->AddNotFusible(order_[n], std::any_of(operands.begin(), operands.end(), may_be_fused) ||
                                           std::any_of(users.begin(), users.end(), may_be_fused));
  } else if (c == FusionClass::kUpdate) {
    for (Node user : UsersOf(n)) {
      if (may_be_fused(user)) remarks_->AddUpdateInPlace(order_[n], order_[user]);
    }
  }
}

void FusionPlanner::RemarkRejected(Node n, const ConsumerGroup& group) {
  const InstructionId reader = order_[current_users_.readers[group.first].user];
  remarks_->AddRejected(order_[n], reader, MembersFor(group.group), rejection_);
}

void FusionPlanner::RemarkPlaced(Node n, const Decision& decision) {
  const int64_t bytes = info_[n].bytes;
  const bool has_home =
      std::find(decision.outcomes.begin(), decision.outcomes.end(), Outcome::kHome) != decision.outcomes.end();
  for (size_t k = 0; k < fits_.size(); ++k) {
    const FusionCandidate& fit = fits_[k];
    const InstructionId reader = ReaderIn(fit.group);
    const FusionRemarks::Members members = MembersFor(fit.group);
    if (decision.outcomes[k] != Outcome::kAbsent) {
      const RemarkRule rule = decision.outcomes[k] == Outcome::kCopied ? RemarkRule::kDuplicated
                              : decision.only                          ? RemarkRule::kFused
                                                                       : RemarkRule::kFusedAsResult;
      remarks_->AddFused(rule, order_[n], reader, members, bytes);
      continue;
    }
    RemarkRule rule = RemarkRule::kWouldReadMore;
    if (has_home) {
      rule = RemarkRule::kFusedElsewhere;
    } else if (decision.cycle) {
      rule = RemarkRule::kWouldFormCycle;
    } else if (!decision.only && !MayBeResult(GroupOf(fit.group), fit.role)) {
      rule = RemarkRule::kMultipleUsers;
    }
    remarks_->AddUnprofitable(rule, order_[n], reader, members, fit.reads, bytes);
  }
}

// The groups are those of current_users_ before the groups were joined. A group is named by the member that reads the
// value, or, where that is a copy of one instruction in both, by a member of its own.
void FusionPlanner::RemarkSiblings(Node n, size_t first, size_t second, std::string_view cause) {
  const auto group = [&](size_t k) { return current_users_.groups[k].group; };
  const auto reader = [&](size_t k) { return order_[current_users_.readers[current_users_.groups[k].first].user]; };
  InstructionId a = reader(first), b = reader(second);
  if (a == b) {
    a = order_[group(first)];
    b = order_[group(second)];
  }
  if (a != b) remarks_->AddSiblings(order_[n], a, b, MembersFor(group_order_.Find(group(second))), cause);
}

}  // namespace hlokit
