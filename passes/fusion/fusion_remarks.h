// SPDX-License-Identifier: Apache-2.0
// Remarks of the fusion planner: each pair of producer and consumer that it considers, the decision and the rule.
#ifndef HLOKIT_PASSES_FUSION_FUSION_REMARKS_H_
#define HLOKIT_PASSES_FUSION_FUSION_REMARKS_H_

#include <cstdint>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "passes/fusion/fusion_plan.h"
#include "passes/remarks/remark.h"

namespace hlokit {

// Why a producer cannot join a group of consumers.
struct FusionRejection {
  RemarkRule rule = RemarkRule::kWouldReadMore;
  double number = 0;  // times an element is computed, operations, operands: by the rule
};

class FusionRemarks {
 public:
  FusionRemarks(const Module& module, const FusionLimits& limits, RemarkCollector* collector)
      : module_(module), limits_(limits), collector_(*collector) {}

  // Instructions of the consumer's group so far, in program order.
  using Members = absl::Span<const InstructionId>;

  // The instruction is never in a fusion. Reports nothing unless it has a neighbor that might be.
  void AddNotFusible(InstructionId instruction, bool has_fusible_neighbor);
  // The producer updates in place, so it is not computed in `consumer`.
  void AddUpdateInPlace(InstructionId producer, InstructionId consumer);
  // The producer cannot join the group.
  void AddRejected(InstructionId producer, InstructionId consumer, Members members, const FusionRejection& why);
  // The producer joins it, by a rule of the kind kPassed. `stored`: bytes of the value.
  void AddFused(RemarkRule rule, InstructionId producer, InstructionId consumer, Members members, int64_t stored);
  // The producer could join it, but does not: by the rule, with the bytes that the group would read in addition and
  // those of the value.
  void AddUnprofitable(RemarkRule rule, InstructionId producer, InstructionId consumer, Members members, int64_t reads,
                       int64_t stored);
  // Two groups that read `value` are joined, or not for the reason `cause`.
  void AddSiblings(InstructionId value, InstructionId first, InstructionId second, Members members,
                   std::string_view cause);

 private:
  void Add(Remark remark, InstructionId producer, InstructionId consumer, Members members);
  Instruction At(InstructionId id) const { return module_.instruction(id); }

  const Module& module_;
  const FusionLimits limits_;
  RemarkCollector& collector_;
  // Pairs that are reported, in earlier rounds too: rule, producer and consumer.
  absl::flat_hash_set<std::tuple<RemarkRule, uint32_t, uint32_t>> reported_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_FUSION_FUSION_REMARKS_H_
