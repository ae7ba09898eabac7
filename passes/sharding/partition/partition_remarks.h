// SPDX-License-Identifier: Apache-2.0
// Remarks of the partitioner: why each collective is there. They are completed when the module is partitioned, since
// instructions get their names at the end and collectives without users are erased.
#ifndef HLOKIT_PASSES_SHARDING_PARTITION_PARTITION_REMARKS_H_
#define HLOKIT_PASSES_SHARDING_PARTITION_PARTITION_REMARKS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"
#include "passes/remarks/remark.h"

namespace hlokit::spmd {

// A reshard that made instructions. Ids grow, so the range is that of those made since `first`.
struct ReshardRecord {
  InstructionId part;
  Shape whole;
  Tiling from, to;
  uint32_t first = 0, end = 0;
};

class PartitionRemarks {
 public:
  // `collector`: null, or gets the remarks.
  PartitionRemarks(const Module* module, RemarkCollector* collector)
      : module_(*module), collector_(RemarksFor(collector, RemarkCategory::kSharding)) {}
  bool enabled() const { return collector_ != nullptr; }

  // The collectives of the record are there because `producer`, an operand of `user`, has another sharding than the
  // user computes with; because its result has, if `producer` is invalid.
  void AddReshard(Instruction user, Instruction producer, const ReshardRecord& record);
  // The collectives of the range that are in none of `records` are a part of `user`. `operands`: the operands with the
  // shardings that they have.
  void AddOthers(Instruction user, uint32_t first, uint32_t end, const std::vector<ReshardRecord>& records,
                 const std::vector<std::pair<Instruction, Tiling>>& operands);
  // The operand of `user`, which is computed whole, is divided.
  void AddComputedWhole(Instruction user, Instruction operand, const Tiling& tiling);
  // Hands the remarks to the collector.
  void Report();

 private:
  struct Pending {
    Remark remark;
    InstructionId collective;  // invalid: the remark is complete
  };
  void Add(InstructionId collective, Instruction user, Remark remark);

  const Module& module_;
  RemarkCollector* const collector_;
  std::vector<Pending> pending_;
};

}  // namespace hlokit::spmd

#endif  // HLOKIT_PASSES_SHARDING_PARTITION_PARTITION_REMARKS_H_
