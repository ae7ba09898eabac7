// SPDX-License-Identifier: Apache-2.0
#include "passes/target/collective_table.h"

#include <optional>
#include <utility>

#include "ir/core/saturating.h"
#include "ir/core/text_writer.h"
#include "ir/graph/module_statistics.h"
#include "ir/graph/traversal.h"
#include "ir/text/printer.h"
#include "passes/analysis/cost.h"
#include "passes/analysis/execution_counts.h"
#include "passes/target/aliases.h"
#include "passes/target/fused_collectives.h"

namespace hlokit::tpu {
namespace {

std::string TextOfAttr(Instruction i, Attr attr) {
  const std::optional<uint32_t> payload = i.payload(attr);
  std::string text;
  if (!payload) return text;
  TextWriter out(&text);
  PrintAttrValue(out, i.module(), {attr, *payload});
  out.Flush();
  return text;
}

// Returns true for parameters, constants and others that take no time.
bool TakesNoTime(Instruction i) {
  return !GeneratesCode(i) || HasTrait(i.opcode(), kStartsAsync) || HasTrait(i.opcode(), kEndsAsync);
}

// Collects the collectives of a computation in its order, and what runs between their starts and ends.
void CollectCollectives(Computation computation, const CostAnalysis& costs, const FusedCollectives& fused, int64_t runs,
                        std::vector<CollectiveRow>* rows) {
  struct Sums {
    int64_t instructions = 0, flops = 0, bytes = 0;
  };
  Sums sums;
  std::map<uint32_t, std::pair<size_t, Sums>> open;  // by id of the start: its row, and the sums there
  for (const Instruction i : computation.instructions()) {
    const FusedCollective& in_fusion = fused.Of(i);
    std::vector<Instruction> collectives;
    for (const InstructionId id : in_fusion.collectives) collectives.push_back(i.module().instruction(id));
    const Instruction wrapped = AsyncWrappedInstruction(i);
    if (HasTrait(wrapped.opcode(), kCollective) && !HasTrait(i.opcode(), kEndsAsync) &&
        !HasTrait(i.opcode(), kUpdatesAsync)) {
      collectives.push_back(wrapped);
    }
    for (const Instruction collective : collectives) {
      CollectiveRow row;
      row.instruction = i;
      row.kind = std::string(NameOfCollective(collective, in_fusion.scatters && collective == collectives[0]));
      row.groups = TextOfAttr(collective, Attr::kReplicaGroups);
      if (row.groups.empty()) row.groups = TextOfAttr(collective, Attr::kSourceTargetPairs);
      for (const Instruction operand : collective.operands()) {
        row.bytes = SaturatingAdd(row.bytes, ByteSize(operand.shape()));
      }
      row.result_bytes = ByteSize(collective.shape());
      row.runs = runs;
      row.async = HasTrait(i.opcode(), kStartsAsync) || in_fusion.role == CollectiveRole::kStart;
      if (row.async) open.emplace(i.id().value, std::pair(rows->size(), sums));
      rows->push_back(std::move(row));
    }
    if (!collectives.empty()) continue;
    if (in_fusion.role == CollectiveRole::kDone || (HasTrait(i.opcode(), kEndsAsync) && i.operand_count() > 0)) {
      Instruction start = in_fusion.start.valid() ? i.module().instruction(in_fusion.start) : i.operand(0);
      while (HasTrait(start.opcode(), kUpdatesAsync) && start.operand_count() > 0) start = start.operand(0);
      if (const auto found = open.find(start.id().value); found != open.end()) {
        const auto& [number, at] = found->second;
        CollectiveRow& row = (*rows)[number];
        row.overlapped_instructions = sums.instructions - at.instructions;
        row.overlapped_flops = sums.flops - at.flops;
        row.overlapped_bytes = sums.bytes - at.bytes;
      }
      continue;
    }
    if (TakesNoTime(i)) continue;
    ++sums.instructions;
    sums.flops = SaturatingAdd(sums.flops, costs.Of(i).flops);
    sums.bytes = SaturatingAdd(sums.bytes, costs.Of(i).bytes());
  }
}

}  // namespace

std::vector<CollectiveRow> CollectiveTable(const Module& module) {
  const CostAnalysis costs(module);
  const ComputationRoles roles = RolesOf(module);
  const FusedCollectives fused(module);
  const ExecutionCounts runs = CountExecutions(module, /*trip_counts=*/true);
  std::vector<CollectiveRow> rows;
  for (const Computation c : module.computations()) {
    const size_t id = c.id().value;
    if (roles.async[id] == 0 && roles.fusion[id] == 0)
      CollectCollectives(c, costs, fused, runs.computations[id].times, &rows);
  }
  return rows;
}

std::map<std::string, CollectiveCount> CountByKind(absl::Span<const CollectiveRow> rows) {
  std::map<std::string, CollectiveCount> totals;
  for (const CollectiveRow& row : rows) {
    CollectiveCount& total = totals[row.kind];
    ++total.count;
    total.async += row.async;
    total.overlapped += row.overlapped_instructions > 0;
    total.runs = SaturatingAdd(total.runs, row.runs);
    total.bytes = SaturatingAdd(total.bytes, SaturatingMultiply(row.bytes, row.runs));
  }
  return totals;
}

}  // namespace hlokit::tpu
