// SPDX-License-Identifier: Apache-2.0
// Which arrays stand in a TPU's vector memory, and when they are brought there and taken away.
//
// A TPU's cores work on vector memory (VMEM, memory space 1: S(1) in a layout); arrays in the large memory (HBM) are
// streamed through it by the kernel that reads them. An array that stands in VMEM already costs its reader no transfer.
// There are three ways to get one there (after XLA's memory-space assignment, openxla/xla
// xla/hlo/ir/hlo_instruction.h and docs of MSA):
//
//   kept        from the instruction that makes it to its last use
//   evicted     made there and used there; an asynchronous copy to HBM, while instructions run that leave HBM idle,
//               serves whoever needs it later
//   prefetched  copied there asynchronously while instructions run that leave HBM idle
//
// The module has a schedule: places below are those of its instructions in order.
#ifndef HLOKIT_PASSES_SCHEDULE_MEMORY_SPACE_ASSIGNMENT_H_
#define HLOKIT_PASSES_SCHEDULE_MEMORY_SPACE_ASSIGNMENT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "passes/target/tpu_target.h"

namespace hlokit {

struct MemorySpaceOptions {
  int64_t vmem_bytes = 0;  // for arrays: what kernels need for their tiles is not in it
  bool prefetch = true;
};

struct MemorySpaceCounts {
  int64_t pinned = 0;
  int64_t evicted = 0;
  int64_t prefetched = 0;
  int64_t peak_bytes = 0;  // of VMEM
  int64_t changes() const { return pinned + evicted + prefetched; }
};

// Places arrays of the computations whose instructions run one by one; one without a schedule, or in which an array
// stands in VMEM already, is left alone. What a called computation holds there is not available to its caller
// meanwhile. Arrays that a loop carries and changes are kept there from before the loop until after it, where all who
// use them in the body can. Parameters, results and what collectives or custom-calls touch stay in HBM. Linear in the
// module, times the longest stay, which is bounded.
absl::StatusOr<MemorySpaceCounts> AssignMemorySpaces(Module& module, const tpu::TpuTarget& target,
                                                     const MemorySpaceOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_MEMORY_SPACE_ASSIGNMENT_H_
