// What moving collectives of a loop's body to other trips needs: which may move, and copies of what they compute.
#ifndef HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_
#define HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_

#include <cstdint>
#include <functional>

#include "absl/container/flat_hash_map.h"
#include "ir/module.h"
#include "ir/side_effects.h"
#include "passes/simplify/loops/loop.h"

namespace hlokit {

bool IsBlockingCollective(Instruction i);

// Can be computed in another trip than its own, and once more than before: a collective, or what costs little beside
// one.
bool MayRepeat(Instruction i, const SideEffects& effects);

// Copies instructions of a loop's body, with what they are computed from.
class BodyCopier {
 public:
  // `position`: copies stand before it, at the end of `parent` if there is none. `element`: what stands for an element
  // of the state. `next_channel`: for collectives that have a channel, which need one of their own.
  BodyCopier(Module* module, Computation body, ComputationId parent, InstructionId position,
             std::function<InstructionId(int64_t)> element, int64_t* next_channel)
      : module_(*module),
        body_(body),
        parent_(parent),
        position_(position),
        element_(std::move(element)),
        next_channel_(*next_channel) {}

  InstructionId Copy(InstructionId id);

 private:
  Module& module_;
  const Computation body_;
  const ComputationId parent_;
  const InstructionId position_;
  const std::function<InstructionId(int64_t)> element_;
  int64_t& next_channel_;
  absl::flat_hash_map<uint32_t, InstructionId> copies_;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_LOOP_COLLECTIVES_H_
