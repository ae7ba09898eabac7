// SPDX-License-Identifier: Apache-2.0
// The pass memory-space-assignment (memory_space_assignment.h).
#include "passes/core/pass_row.h"
#include "passes/schedule/memory_limit.h"
#include "passes/schedule/memory_space_assignment.h"
#include "passes/target/tpu_target.h"

namespace hlokit {
namespace {

class MemorySpaceAssignment : public Pass {
 public:
  absl::StatusOr<bool> Run(Module& module) override {
    const tpu::TpuTarget target = tpu::TargetOf(*this, module);
    MemorySpaceOptions assignment{.vmem_bytes = options().Int("vmem-bytes"),
                                  .prefetch = options().Bool("prefetch"),
                                  .remarks = context().remarks};
    if (assignment.vmem_bytes < 0) assignment.vmem_bytes = ToBytes(target.VmemForArrays() * target.parts);
    const absl::StatusOr<MemorySpaceCounts> counts = AssignMemorySpaces(module, target, assignment);
    if (!counts.ok()) return counts.status();
    if (counts->pinned > 0) Count("arrays pinned", counts->pinned);
    if (counts->evicted > 0) Count("arrays evicted", counts->evicted);
    if (counts->prefetched > 0) Count("arrays prefetched", counts->prefetched);
    if (counts->changes() > 0) Count("bytes of VMEM at the peak", counts->peak_bytes);
    return counts->changes() > 0;
  }
};

}  // namespace

HLOKIT_PASS(MemorySpaceAssignment) {
  return {.name = "memory-space-assignment",
          .category = "schedule",
          .summary = "assign arrays to a TPU's vector memory, with prefetches and evictions",
          .doc =
              "An array is in VMEM, S(1), from its definition to its last use if it fits; if it has later uses, or "
              "users that cannot read from VMEM, it is evicted to HBM concurrently. Arrays in HBM are prefetched by "
              "copy-start and copy-done, overlapped with instructions that are bound by computation.",
          .example = R"(HloModule stream, is_scheduled=true

ENTRY main {
  x = f32[2048,2048]{1,0} parameter(0)
  w = f32[2048,2048]{1,0} parameter(1)
  v = f32[2048,2048]{1,0} parameter(2)
  t = f32[2048,2048]{1,0} tanh(x)
  d = f32[2048,2048]{1,0} dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT e = f32[2048,2048]{1,0} dot(d, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)",
          .options = {{.name = "vmem-bytes",
                       .type = OptionInfo::Type::kInt,
                       .default_text = "-1",
                       .doc = "VMEM for arrays, without the tiles of kernels; -1: that of the device",
                       .min = -1},
                      tpu::DeviceOption(),
                      {.name = "prefetch",
                       .type = OptionInfo::Type::kBool,
                       .default_text = "true",
                       .doc = "prefetch arrays before their use"}},
          .preconditions = kScheduled,
          .create = MakePass<MemorySpaceAssignment>};
}

}  // namespace hlokit
