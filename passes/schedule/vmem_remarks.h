// SPDX-License-Identifier: Apache-2.0
// Remarks of memory-space assignment: which arrays are in VMEM, and why others are not.
#ifndef HLOKIT_PASSES_SCHEDULE_VMEM_REMARKS_H_
#define HLOKIT_PASSES_SCHEDULE_VMEM_REMARKS_H_

#include <cstdint>
#include <vector>

#include "ir/graph/module.h"
#include "passes/remarks/remark.h"

namespace hlokit {

// Of one computation. All functions do nothing without a collector.
class VmemRemarks {
 public:
  // `vmem_bytes`: available to arrays.
  VmemRemarks(const Module& module, int64_t vmem_bytes, RemarkCollector* collector)
      : module_(module), vmem_bytes_(vmem_bytes), collector_(RemarksFor(collector, RemarkCategory::kMemory)) {}

  // An array has memory from one position of the schedule to another.
  void Hold(InstructionId value, int32_t from, int32_t to, int64_t bytes);
  // The array is in VMEM, by a rule of the kind kPassed, from one position to another.
  void AddPlaced(RemarkRule rule, InstructionId value, int32_t from, int32_t to, int64_t bytes);
  // The array is not, although it would have to be from one position to another, by the rule.
  void AddMissed(RemarkRule rule, InstructionId value, int32_t from, int32_t to, int64_t bytes);
  // As AddMissed; `user` cannot read it, or is too far away.
  void AddUser(RemarkRule rule, InstructionId value, InstructionId user, int64_t bytes);

 private:
  struct Holder {
    InstructionId value;
    int32_t from, to;
    int64_t bytes;
  };
  const Module& module_;
  const int64_t vmem_bytes_;
  RemarkCollector* const collector_;
  std::vector<Holder> holders_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_VMEM_REMARKS_H_
