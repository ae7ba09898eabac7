// SPDX-License-Identifier: Apache-2.0
#include "ir/text/text_size.h"

#include <algorithm>
#include <vector>

#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/graph/module.h"
#include "ir/graph/traversal.h"

namespace hlokit {

absl::Status CheckTextSize(const Module& module, const PrintOptions& options) {
  constexpr int64_t kMaxInstructions = 20'000'000;
  if (options.subcomputations != PrintOptions::Subcomputations::kFullBodies) return absl::OkStatus();
  std::vector<int64_t> printed(module.computation_id_bound(), 0);  // with the computations in place
  int64_t most = 0;
  for (ComputationId id : ComputationPostOrder(module)) {
    const Computation c = module.computation(id);
    int64_t count = static_cast<int64_t>(c.instruction_count());
    for (Instruction i : c.instructions()) {
      i.ForEachCallee([&](Computation callee) { count = SaturatingAdd(count, printed[callee.id().value]); });
    }
    printed[id.value] = count;
    most = std::max(most, count);
  }
  if (most <= kMaxInstructions) return absl::OkStatus();
  return absl::ResourceExhaustedError(StrCat("this form prints called computations in place, which makes more than ",
                                             kMaxInstructions,
                                             " instructions: other forms print each computation once"));
}

}  // namespace hlokit
