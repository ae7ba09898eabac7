// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/partition/partition_remarks.h"

#include <algorithm>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/ops/opcode_set.h"
#include "passes/sharding/explanation.h"

namespace hlokit::spmd {
namespace {

int64_t BytesOf(Shape array) {
  return array.IsArray() ? SaturatingMultiply(array.element_count(), BitsOf(array.element_type())) / 8 : 0;
}

}  // namespace

void PartitionRemarks::AddReshard(Instruction user, Instruction producer, const ReshardRecord& record) {
  const std::string from = sharding::TilingText(module_, record.from), to = sharding::TilingText(module_, record.to);
  for (uint32_t id = record.first; id < record.end; ++id) {
    const Instruction made = module_.instruction(InstructionId(id));
    if (!HasTrait(made.opcode(), kCollective)) continue;
    const RemarkRule rule = producer.valid() ? RemarkRule::kReshardOperand : RemarkRule::kReshardResult;
    Remark remark(rule, user);
    remark.Text(": ");
    if (producer.valid()) {
      remark.Text("operand ").Name("Operand", producer).Text(" of ").Name("User", user).Text(" has the sharding ");
      remark.Value("From", from).Text(", and ").Text(user.opcode_text()).Text(" computes with ").Value("To", to);
    } else {
      remark.Text("the result of ").Name("User", user).Text(" is computed with the sharding ").Value("From", from);
      remark.Text(", and has ").Value("To", to);
    }
    remark.Text("; each device gets ").Number("Bytes", BytesOf(made.shape())).Text(" bytes");
    Add(made.id(), user, std::move(remark));
  }
}

void PartitionRemarks::AddOthers(Instruction user, uint32_t first, uint32_t end,
                                 const std::vector<ReshardRecord>& records,
                                 const std::vector<std::pair<Instruction, Tiling>>& operands) {
  for (uint32_t id = first; id < end; ++id) {
    const bool reshards = std::any_of(records.begin(), records.end(),
                                      [&](const ReshardRecord& r) { return r.first <= id && id < r.end; });
    const Instruction made = module_.instruction(InstructionId(id));
    if (reshards || !HasTrait(made.opcode(), kCollective) || made.opcode() == user.opcode()) continue;
    RemarkRule rule = RemarkRule::kComputesWithCollective;
    if (OpcodeSet{Opcode::kAllReduce, Opcode::kReduceScatter}.Contains(made.opcode())) {
      rule = RemarkRule::kPartialResults;
    } else if (made.opcode() == Opcode::kCollectivePermute) {
      rule = RemarkRule::kHaloExchange;
    }
    Remark remark(rule, user);
    remark.Text(": a part of ").Name("User", user).Text(" (").Text(user.opcode_text()).Text("): ");
    remark.Text(InfoOf(rule).says);
    for (size_t k = 0; k < operands.size(); ++k) {
      remark.Text(k == 0 ? "; " : ", ").Name("Operand", operands[k].first).Text(" has ");
      remark.Value("Sharding", sharding::TilingText(module_, operands[k].second));
    }
    remark.Text("; each device gets ");
    remark.Number("Bytes", BytesOf(made.shape())).Text(" bytes");
    Add(made.id(), user, std::move(remark));
  }
}

void PartitionRemarks::AddComputedWhole(Instruction user, Instruction operand, const Tiling& tiling) {
  if (!enabled()) return;
  Remark remark(RemarkRule::kComputedWhole, user);
  remark.Text(" is computed whole on every device: ").Text(user.opcode_text()).Text(" has no dimension to divide; ");
  remark.Text("operand ").Name("Operand", operand).Text(" is gathered from ");
  remark.Value("From", sharding::TilingText(module_, tiling));
  pending_.push_back({std::move(remark), InstructionId()});
}

void PartitionRemarks::Add(InstructionId collective, Instruction user, Remark remark) {
  remark.related = user.name();
  pending_.push_back({std::move(remark), collective});
}

void PartitionRemarks::Report() {
  for (Pending& pending : pending_) {
    if (pending.collective.valid()) {
      if (!module_.record(pending.collective).parent.valid()) continue;  // it had no user
      const Instruction made = module_.instruction(pending.collective);
      pending.remark.instruction = made.name();
      pending.remark.opcode = made.opcode_text();
      pending.remark.function = made.parent().name();
    }
    collector_->Add(std::move(pending.remark));
  }
  pending_.clear();
}

}  // namespace hlokit::spmd
