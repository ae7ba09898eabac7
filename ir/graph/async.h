// SPDX-License-Identifier: Apache-2.0
// Chains of asynchronous operations: async-start, any number of async-update, async-done.
#ifndef HLOKIT_IR_GRAPH_ASYNC_H_
#define HLOKIT_IR_GRAPH_ASYNC_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/module.h"

namespace hlokit {

// Finds the async-start of the chain that a start, update or done belongs to. Results are cached, so that all lookups
// in a long chain take linear time; the module may grow in between, but not change.
class AsyncStarts {
 public:
  // Follows chains through loop states: tuples, get-tuple-elements, while loops and the parameters of their bodies,
  // copies, barriers and sharding annotations. Returns an invalid instruction if there is no start.
  Instruction Find(Instruction instruction);

 private:
  Instruction LoopInit(Computation body_or_condition);

  absl::flat_hash_map<uint32_t, InstructionId> found_;      // by id of an update or done; invalid: none
  absl::flat_hash_map<uint32_t, InstructionId> loop_init_;  // by id of a loop's body or condition
  bool has_loop_init_ = false;
};

// Returns true if the computation consists of parameters and a root, so that XLA prints `<opcode>-start` for it. Not
// for send and recv, since `send-done` and `recv-done` are opcodes.
bool IsSingleInstructionWrapper(Computation computation);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_ASYNC_H_
