// SPDX-License-Identifier: Apache-2.0
// Copies of what a loop's body computes, for other trips than its own or for outside of the loop.
#ifndef HLOKIT_PASSES_REWRITE_LOOP_BODY_CLONER_H_
#define HLOKIT_PASSES_REWRITE_LOOP_BODY_CLONER_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/module.h"

namespace hlokit {

// Copies instructions of a loop's body, with what they are computed from, each once.
class LoopBodyCloner {
 public:
  // What stands for an element of the state, given as the body reads it.
  using ElementFn = std::function<InstructionId(Instruction)>;

  // `position`: copies stand before it, at the end of `parent` if there is none. `next_channel`: for collectives that
  // have a channel, which need one of their own; nullptr if no collective will be copied.
  LoopBodyCloner(Module* module, Computation body, ComputationId parent, InstructionId position, ElementFn element,
                 int64_t* next_channel)
      : module_(*module),
        body_(body),
        parent_(parent),
        position_(position),
        element_(std::move(element)),
        next_channel_(next_channel) {}

  InstructionId Clone(InstructionId id);

  // What was copied, operands first, without elements of the state.
  const std::vector<InstructionId>& cloned() const { return cloned_; }
  // What stands for an instruction of the body; not valid if it was not copied.
  InstructionId LookupClone(InstructionId id) const;

 private:
  Module& module_;
  const Computation body_;
  const ComputationId parent_;
  const InstructionId position_;
  const ElementFn element_;
  int64_t* const next_channel_;
  absl::flat_hash_map<uint32_t, InstructionId> clones_;
  std::vector<InstructionId> cloned_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_LOOP_BODY_CLONER_H_
