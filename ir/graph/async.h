// SPDX-License-Identifier: Apache-2.0
// Chains of asynchronous operations: async-start, any number of async-update, async-done.
#ifndef HLOKIT_IR_GRAPH_ASYNC_H_
#define HLOKIT_IR_GRAPH_ASYNC_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/module.h"

namespace hlokit {

// Finds the async-start at the head of the chain that a start, update or done belongs to. What was found is remembered,
// so that looking for all of a long chain takes time linear in it; the module may grow meanwhile, but not change.
class AsyncStarts {
 public:
  // A chain may pass through the state of a loop: tuples, get-tuple-elements, while loops and the parameters of their
  // bodies, copies, barriers and sharding markers are followed. Invalid if no start is found.
  Instruction Find(Instruction instruction);

 private:
  Instruction LoopInit(Computation body_or_condition);

  absl::flat_hash_map<uint32_t, InstructionId> found_;      // by id of an update or done; invalid: none
  absl::flat_hash_map<uint32_t, InstructionId> loop_init_;  // by id of a loop's body or condition
  bool has_loop_init_ = false;
};

// True if the computation is nothing but parameters and a root, so that XLA prints `<opcode>-start` for it. Not for
// send and recv: `send-done` and `recv-done` are operations of their own, and what XLA prints there reads back as
// those.
bool IsSingleInstructionWrapper(Computation computation);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_ASYNC_H_
