// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/loop_collectives.h"

#include "passes/analysis/dataflow_analysis.h"
#include "passes/fusion/fusion_rules.h"

namespace hlokit {

bool IsSyncCollective(Instruction i) {
  return HasTrait(i.opcode(), kCollective) && !HasTrait(i.opcode(), kStartsAsync) &&
         !HasTrait(i.opcode(), kEndsAsync) && !HasTrait(i.opcode(), kUpdatesAsync);
}

namespace {

// Returns true if `i` is cheap compared with a collective: data movement, or a few operations per element.
bool IsSmallWork(Instruction i) {
  if (HasTrait(i.opcode(), kElementwise) && i.shape().IsScalar()) return true;
  switch (FusionClassOf(i.opcode())) {
    case FusionClass::kSource:
    case FusionClass::kCheap:
    case FusionClass::kReordering:
    case FusionClass::kBroadcast:
    case FusionClass::kSlicing:
      return true;
    case FusionClass::kOpaque:
    case FusionClass::kExpensive:
    case FusionClass::kGather:
    case FusionClass::kUpdate:
    case FusionClass::kReduce:
    case FusionClass::kWindow:
    case FusionClass::kContraction:
      break;
  }
  return HasTrait(i.opcode(), kForwards) || HasTrait(i.opcode(), kDeviceId);
}

}  // namespace

bool IsRecomputable(Instruction i, const SideEffects& effects) {
  if (i.is_root() || i.has_control_edges() || i.has(Attr::kSharding)) {
    return false;
  }
  if (IsSyncCollective(i)) return i.shape().IsArray() && !i.bool_attr(Attr::kConstrainLayout);
  return !effects.Of(i) && i.opcode() != Opcode::kParameter && IsSmallWork(i);
}

}  // namespace hlokit
