// SPDX-License-Identifier: Apache-2.0
// Roles of instructions in groups: whether a fusion may compute a value, given how its users in the group are computed.
// fusion_plan.h states the contract.
#include <algorithm>

#include "ir/core/saturating.h"
#include "ir/graph/attribute_views.h"
#include "passes/fusion/fusion_planner.h"

namespace hlokit {
namespace {

constexpr double kOnce = 1.0001;

int64_t WindowReuse(Instruction i) {
  const WindowView window = WindowView::Of(i);
  int64_t reuse = 1;
  for (int64_t d = 0; d < window.rank(); ++d) {
    reuse = SaturatingMultiply(reuse, std::max<int64_t>(1, window[d].size / std::max<int64_t>(1, window[d].stride)));
  }
  return reuse;
}

}  // namespace

std::optional<FusionPlanner::Role> FusionPlanner::RoleAsOperand(Node n, const Consumer& reader, uint32_t index,
                                                                const Group& group) const {
  const NodeInfo &info = info_[n], &user = info_[reader.user];
  const Role& as = reader.role;
  const uint32_t operand_count = operand_begin_[reader.user + 1] - operand_begin_[reader.user];
  // Returns the elements of the user per element of the value.
  const auto ratio = [&] {
    return std::max(1.0, static_cast<double>(std::max<int64_t>(1, user.elements)) / static_cast<double>(info.elements));
  };
  Role role{as.zone, false, as.times};
  switch (user.fusion_class) {
    case FusionClass::kCheap:
    case FusionClass::kExpensive:
    case FusionClass::kReordering:
    case FusionClass::kBroadcast:
      role.exact = as.exact && user.elements == info.elements;
      if (user.elements > info.elements) role.times *= ratio();
      break;
    case FusionClass::kSlicing:
      break;
    case FusionClass::kGather:
      role.times *= ratio();
      break;
    case FusionClass::kUpdate:
      if (index == 0) return Reject(RemarkRule::kInPlaceOperand);
      role.exact = index == 1 && as.exact;
      break;
    case FusionClass::kReduce:
      if (as.zone != LoopRegion::kResult) return Reject(RemarkRule::kReductionInReduction);
      role = {LoopRegion::kReduced, index < operand_count / 2 && as.exact && info.elements == group.reduced_size,
              as.times};
      break;
    case FusionClass::kWindow:
      if (index < operand_count / 2) {
        role.times *= static_cast<double>(WindowReuse(module_.instruction(order_[reader.user])));
      }
      break;
    case FusionClass::kContraction:
      role = {LoopRegion::kMultiplied, false, limits_.operand_reload_factor};
      break;
    case FusionClass::kSource:
    case FusionClass::kOpaque:
      return Reject(RemarkRule::kOpcodeNotFusible);
  }
  if (info.elements <= 1) role.times = 1;  // computed before the loop
  return role;
}

std::optional<FusionPlanner::Role> FusionPlanner::RoleIn(Node n, const ConsumerGroup& in, double* recompute) const {
  const NodeInfo& info = info_[n];
  const Group& g = GroupOf(in.group);
  Role role;
  role.times = 0;
  bool all_exact = true, first = true;
  for (uint32_t k = in.first; k != kNone; k = current_users_.readers[k].next) {
    const Consumer& reader = current_users_.readers[k];
    uint32_t index = 0;
    for (Node operand : OperandsOf(reader.user)) {
      const uint32_t o = index++;
      if (operand != n) continue;
      const std::optional<Role> here = RoleAsOperand(n, reader, o, g);
      if (!here) return std::nullopt;
      all_exact &= here->exact;
      role.times = std::max(role.times, here->times);
      if (first || (here->exact && !role.exact)) {
        role.zone = here->zone;
        role.exact = here->exact;
      }
      first = false;
    }
  }
  *recompute = 0;
  const bool once = role.times <= kOnce;
  switch (info.fusion_class) {
    case FusionClass::kReduce:
      if (role.zone == LoopRegion::kReduced) return Reject(RemarkRule::kReductionInReduction);
      if (!all_exact || !once || role.zone != LoopRegion::kResult || g.single_result) {
        return Reject(RemarkRule::kReductionNotAtEnd);
      }
      if (info.elements != g.size) return Reject(RemarkRule::kReductionNotAtEnd);
      if (g.hero != kNone && !SameReduction(n, g.hero)) return Reject(RemarkRule::kReductionKindsDiffer);
      break;
    case FusionClass::kContraction:
      if (!all_exact || !once || g.single_result || g.multiplies) return Reject(RemarkRule::kContractionOperand);
      if (g.hero == kNone) {
        if (role.zone != LoopRegion::kResult || info.elements != g.size) {
          return Reject(RemarkRule::kContractionOperand);
        }
      } else {
        const bool reduces = info_[g.hero].fusion_class == FusionClass::kReduce;
        if (!limits_.reduction_epilogues || !reduces || role.zone != LoopRegion::kReduced ||
            info.elements != g.reduced_size) {
          return Reject(RemarkRule::kContractionOperand);
        }
      }
      break;
    case FusionClass::kExpensive:
    case FusionClass::kGather:
    case FusionClass::kWindow:
      if (!once) return Reject(RemarkRule::kDuplicatesExpensive, role.times);
      break;
    case FusionClass::kCheap:
      if (!once) {
        const double loop = static_cast<double>(std::max<int64_t>(1, std::max(g.size, g.reduced_size)));
        *recompute = role.zone == LoopRegion::kMultiplied
                         ? 1
                         : std::min(1.0, role.times * static_cast<double>(info.elements) / loop);
        if (g.recompute + *recompute > limits_.max_recompute) {
          return Reject(RemarkRule::kRecomputesTooMuch, g.recompute + *recompute);
        }
      }
      break;
    case FusionClass::kSource:
    case FusionClass::kReordering:
    case FusionClass::kBroadcast:
    case FusionClass::kSlicing:
      break;
    case FusionClass::kUpdate:
    case FusionClass::kOpaque:
      return Reject(RemarkRule::kProducerUpdatesInPlace);
  }
  return role;
}

bool FusionPlanner::MayBeResult(const Group& group, const Role& role) const {
  return limits_.multi_output && role.exact && role.times <= kOnce && role.zone != LoopRegion::kMultiplied &&
         !group.single_result;
}

bool FusionPlanner::SameReduction(Node a, Node b) const {
  const Instruction x = module_.instruction(order_[a]), y = module_.instruction(order_[b]);
  if (x.opcode() != Opcode::kReduce || y.opcode() != Opcode::kReduce) return false;
  return x.operand(0).shape().dims() == y.operand(0).shape().dims() &&
         x.list_attr(Attr::kDimensions) == y.list_attr(Attr::kDimensions);
}

double FusionPlanner::CopyCost(Node n, const Group& group) const {
  if (info_[n].fusion_class != FusionClass::kCheap) return 0;
  const double loop = static_cast<double>(std::max<int64_t>(1, std::max(group.size, group.reduced_size)));
  return std::min(1.0, static_cast<double>(info_[n].elements) / loop);
}

}  // namespace hlokit
