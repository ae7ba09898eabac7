// SPDX-License-Identifier: Apache-2.0
// Collectives within fusions, as TPU compilers write them:
//
//   rs = fusion(x), kind=kCustom, calls=%all-reduce-scatter        an all-reduce of which each device keeps its part
//   async-collective-start = fusion(x), calls=…                    starts the collective in its body, or in that of
//   f = fusion(y, async-collective-start), calls=%async_collective_fusion    a fusion that runs meanwhile
//   async-collective-done = fusion(f), calls=…                     waits for it
//
// Starts and dones have no attribute: they are recognized by their names, or the target of a custom-call.
#ifndef HLOKIT_PASSES_TARGET_FUSED_COLLECTIVES_H_
#define HLOKIT_PASSES_TARGET_FUSED_COLLECTIVES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

enum class CollectiveRole : uint8_t {
  kNone,
  kWhole,    // contains the collective, and ends when it has ended
  kStart,    // starts it
  kCarrier,  // runs while it is in flight, and passes its state on
  kDone,     // waits for it
};

struct FusedCollective {
  CollectiveRole role = CollectiveRole::kNone;
  std::vector<InstructionId> collectives;  // of kWhole and kStart: those in the body
  InstructionId start;                     // of kCarrier and kDone
  bool scatters = false;  // the first is an all-reduce of which the device keeps only its part: a reduce-scatter
};

// The collectives in fusions of all computations. Linear in the module.
class FusedCollectives {
 public:
  explicit FusedCollectives(const Module& module);

  const FusedCollective& Of(Instruction instruction) const {
    const auto found = found_.find(instruction.id().value);
    return found == found_.end() ? none_ : found->second;
  }
  bool empty() const { return found_.empty(); }

 private:
  absl::flat_hash_map<uint32_t, FusedCollective> found_;  // by InstructionId
  const FusedCollective none_;
};

// Returns the name of the kind of a collective, such as "all-gather", also of its asynchronous start.
std::string_view NameOfCollective(Instruction collective, bool scatters);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_FUSED_COLLECTIVES_H_
