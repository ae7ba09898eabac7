// SPDX-License-Identifier: Apache-2.0
// Cost of recognized custom calls: kernels that state it in their backend_config (Pallas: "cost_estimate" with flops,
// transcendentals and bytes_accessed), fused attention by its blocks (attention_cost.h), and "ragged_paged_attention"
// of queries [sequences, ...] over a cache. Other kernels with an estimate run their operations on the matrix unit, or
// on the vector unit if they have few for each element of their arrays.
#ifndef HLOKIT_PASSES_TARGET_CUSTOM_CALL_COST_H_
#define HLOKIT_PASSES_TARGET_CUSTOM_CALL_COST_H_

#include "ir/graph/module_fwd.h"
#include "passes/target/device_description.h"

namespace hlokit::tpu {

struct CustomCallWork {
  bool known = false;
  double flops = 0;
  double transcendentals = 0;
  double matrix_seconds = 0;
  double vector_operations = 0;  // of 32 bits
  double vector_seconds = 0;
  double compute_seconds = 0;   // at least, where units wait for each other
  double grid_steps = 0;        // blocks that the kernel reads one after the other
  double refetched_bytes = 0;   // read in addition to the operands
  double sequence_seconds = 0;  // for the blocks of sequences that paged attention processes one by one
  double launch_seconds = 0;    // before anything is read
  bool own_pipeline = false;
};
CustomCallWork WorkOfCustomCall(const DeviceDescription& machine, Instruction call);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_CUSTOM_CALL_COST_H_
