// Chains of asynchronous operations: async-start, any number of async-update, async-done.
#ifndef HLOKIT_IR_ASYNC_H_
#define HLOKIT_IR_ASYNC_H_

#include "ir/module.h"

namespace hlokit {

// The async-start at the head of the chain that `instruction` (a start, update or done) belongs to. A chain may pass
// through the state of a loop: tuples, get-tuple-elements, while loops and the parameters of their bodies are followed.
// Invalid if no start is found.
Instruction FindAsyncStart(Instruction instruction);

// The opcode of the root of the computation that the chain runs, or nullopt if its start is out of sight.
std::optional<Opcode> AsyncWrappedOpcode(Instruction instruction);

// True if the computation is nothing but parameters and a root, so that XLA prints `<opcode>-start` for it. Not for send
// and recv: `send-done` and `recv-done` are operations of their own, and what XLA prints there reads back as those.
bool IsSingleInstructionWrapper(Computation computation);

}  // namespace hlokit

#endif  // HLOKIT_IR_ASYNC_H_
