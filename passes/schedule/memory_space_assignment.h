// SPDX-License-Identifier: Apache-2.0
// Assigns arrays to a TPU's vector memory, and inserts prefetches and evictions.
//
// TPU cores work on vector memory (VMEM, memory space 1: S(1) in a layout). A kernel streams arrays in the large memory
// (HBM) through it; an array that is in VMEM already costs no transfer. An array gets there in three ways (XLA's
// memory-space assignment, openxla/xla xla/hlo/ir/hlo_instruction.h and docs of MSA):
//
//   pinned      from its defining instruction to its last use
//   evicted     defined and used in VMEM; an asynchronous copy to HBM, while HBM is otherwise idle, serves later uses
//   prefetched  copied to VMEM asynchronously, while HBM is otherwise idle
//
// The module has a schedule; positions below are indices into it.
#ifndef HLOKIT_PASSES_SCHEDULE_MEMORY_SPACE_ASSIGNMENT_H_
#define HLOKIT_PASSES_SCHEDULE_MEMORY_SPACE_ASSIGNMENT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "ir/graph/module_fwd.h"
#include "passes/remarks/remark.h"
#include "passes/target/tpu_target.h"

namespace hlokit {

struct MemorySpaceOptions {
  int64_t vmem_bytes = 0;  // for arrays, without the tiles of kernels
  bool prefetch = true;
  RemarkCollector* remarks = nullptr;  // gets the decisions; null: nobody
};

struct MemorySpaceCounts {
  int64_t pinned = 0;
  int64_t evicted = 0;
  int64_t prefetched = 0;
  int64_t peak_bytes = 0;  // of VMEM
  int64_t changes() const { return pinned + evicted + prefetched; }
};

// Assigns arrays of the computations that run instruction by instruction. A computation without a schedule, or with an
// array in VMEM already, does not change. VMEM that a callee holds is not available to its caller during the call.
// Loop-variant state is pinned for the whole loop if all its users in the body can access VMEM. Parameters, results,
// and operands and results of collectives and custom-calls stay in HBM. Linear in the module times the longest live
// interval, which is bounded.
absl::StatusOr<MemorySpaceCounts> AssignMemorySpaces(Module& module, const tpu::TpuTarget& target,
                                                     const MemorySpaceOptions& options);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_MEMORY_SPACE_ASSIGNMENT_H_
