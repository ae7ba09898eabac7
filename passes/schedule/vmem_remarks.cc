// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/vmem_remarks.h"

#include <utility>

namespace hlokit {

void VmemRemarks::Hold(InstructionId value, int32_t from, int32_t to, int64_t bytes) {
  if (collector_ != nullptr) holders_.push_back({value, from, to, bytes});
}

void VmemRemarks::AddPlaced(RemarkRule rule, InstructionId value, int32_t from, int32_t to, int64_t bytes) {
  if (collector_ == nullptr) return;
  Hold(value, from, to, bytes);
  Remark remark(rule, module_.instruction(value));
  remark.Text(rule == RemarkRule::kPrefetchedToVmem  ? " is prefetched to VMEM: "
              : rule == RemarkRule::kEvictedFromVmem ? " is made in VMEM, and copied to HBM for later uses: "
                                                     : " is in VMEM until its last use: ");
  remark.Number("Bytes", bytes).Text(" bytes, for ").Number("Instructions", int64_t{to} - from + 1);
  remark.Text(" instructions of the schedule");
  collector_->Add(std::move(remark));
}

void VmemRemarks::AddMissed(RemarkRule rule, InstructionId value, int32_t from, int32_t to, int64_t bytes) {
  if (collector_ == nullptr) return;
  Remark remark(rule, module_.instruction(value));
  if (rule == RemarkRule::kVmemTooLarge) {
    remark.Text(" stays in HBM: ").Number("Bytes", bytes).Text(" bytes are more than the ");
    remark.Number("Vmem", vmem_bytes_).Text(" of VMEM");
  } else {
    remark.Text(" stays in HBM (").Number("Bytes", bytes).Text(" bytes, for ");
    remark.Number("Instructions", int64_t{to} - from + 1).Text(" of the schedule): ").Text(InfoOf(rule).says);
  }
  if (rule == RemarkRule::kVmemFull) {
    // The largest that is there in the meantime.
    const Holder* largest = nullptr;
    for (const Holder& holder : holders_) {
      if (holder.to < from || holder.from > to) continue;
      if (largest == nullptr || holder.bytes > largest->bytes) largest = &holder;
    }
    if (largest != nullptr) {
      remark.Text("; ").Name("Holder", module_.instruction(largest->value)).Text(" has ");
      remark.Number("HolderBytes", largest->bytes).Text(" of ").Number("Vmem", vmem_bytes_).Text(" bytes");
    } else {
      remark.Text("; loops, their callers or callees hold it; it has ").Number("Vmem", vmem_bytes_).Text(" bytes");
    }
  }
  collector_->Add(std::move(remark));
}

void VmemRemarks::AddUser(RemarkRule rule, InstructionId value, InstructionId user, int64_t bytes) {
  if (collector_ == nullptr) return;
  Remark remark(rule, module_.instruction(value));
  remark.Text(" stays in HBM: ");
  if (user.valid()) {
    const Instruction reader = module_.instruction(user);
    remark.Name("User", reader).Text(" (").Text(reader.opcode_text());
    remark.Text(rule == RemarkRule::kVmemUnreadable ? ") cannot read it in VMEM" : ") reads it too late");
  } else {
    remark.Text("it is a result of the computation");
  }
  remark.Text("; ").Number("Bytes", bytes).Text(" bytes");
  collector_->Add(std::move(remark));
}

}  // namespace hlokit
