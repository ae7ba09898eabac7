// SPDX-License-Identifier: Apache-2.0
// Clones of instructions of a loop body, for other iterations or for outside of the loop.
#ifndef HLOKIT_PASSES_REWRITE_LOOP_BODY_CLONER_H_
#define HLOKIT_PASSES_REWRITE_LOOP_BODY_CLONER_H_

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/builder/builder.h"
#include "ir/graph/module.h"

namespace hlokit {

// Clones instructions of a loop body with their operands, each once.
class LoopBodyCloner {
 public:
  // Returns the replacement of a state element, given as the body reads it.
  using ElementFn = std::function<InstructionId(Instruction)>;

  // `position`: clones are inserted before it, or at the end of `parent`. `next_channel`: for collectives with a
  // channel, whose clones need a new one; nullptr if no collective will be cloned.
  LoopBodyCloner(Module* module, Computation body, ComputationId parent, InstructionId position, ElementFn element,
                 int64_t* next_channel)
      : module_(*module),
        body_(body),
        builder_(module, parent, position),
        element_(std::move(element)),
        next_channel_(next_channel) {}

  InstructionId Clone(InstructionId id);

  // Returns the cloned instructions, operands first, without elements of the state.
  const std::vector<InstructionId>& cloned() const { return cloned_; }
  // Returns the clone of a body instruction; invalid if it was not cloned.
  InstructionId LookupClone(InstructionId id) const;

 private:
  Module& module_;
  const Computation body_;
  Builder builder_;
  const ElementFn element_;
  int64_t* const next_channel_;
  absl::flat_hash_map<uint32_t, InstructionId> clones_;
  std::vector<InstructionId> cloned_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_REWRITE_LOOP_BODY_CLONER_H_
