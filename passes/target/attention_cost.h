// SPDX-License-Identifier: Apache-2.0
// Time of fused attention kernels on the units of a core: blocks of queries by blocks of keys, two matmuls in the
// forward pass and five in the backward pass for each, and the softmax of the scores between them.
#ifndef HLOKIT_PASSES_TARGET_ATTENTION_COST_H_
#define HLOKIT_PASSES_TARGET_ATTENTION_COST_H_

#include <optional>

#include "ir/graph/module_fwd.h"
#include "passes/target/device_description.h"

namespace hlokit::tpu {

// Attention of `heads` heads, those of all sequences of the batch. Operands have 16 bits.
struct AttentionShape {
  double heads = 1;
  double queries = 1;  // of a head
  double keys = 1;
  double depth = 128;
  bool causal = false;  // blocks above the diagonal are skipped
  bool backward = false;
  bool masks_all_blocks = false;  // applies the causal mask to each block, not only to those on the diagonal
  double query_block = 512;
  double key_block = 512;
};

struct AttentionTime {
  double matrix = 0;           // seconds of the matrix units
  double vector = 0;           // of the vector unit
  double transcendental = 0;   // of the exponentials
  double total = 0;            // of all three: the units overlap except at the ends of a block
  double blocks = 0;           // of keys, of all heads and blocks of queries
  double refetched_bytes = 0;  // of keys and values, which each block of queries reads again
};

// Returns the shape of a fused attention kernel, or nullopt if the call is not one. It is one if its name (the target,
// op_name or name of the kernel) says so, or if it has operands q, k, v of which k and v are alike and the result is
// like q. `flops` is its cost estimate, `exponentials` may be 0. Block sizes are those that the kernel's metadata state
// (block_q, block_kv), or the defaults of Pallas' kernels: 128 for flash_attention, 512 for splash attention and
// others.
std::optional<AttentionShape> AttentionShapeOf(Instruction call, double flops, double exponentials);

// Returns the flops of a fused attention call by the shapes of its operands: q, k, v of [batch, sequence, heads,
// depth].
double AttentionFlops(Instruction call, bool causal, bool backward);

AttentionTime TimeOf(const DeviceDescription& machine, const AttentionShape& shape);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_ATTENTION_COST_H_
