// SPDX-License-Identifier: Apache-2.0
#include "tests/properties/smaller_module.h"

#include <functional>
#include <set>
#include <utility>

#include "passes/analysis/cost.h"
#include "passes/rewrite/type_conversion.h"
#include "tests/properties/verified.h"

namespace hlokit::properties {
namespace {

int ElidedConstants(const Module& module) {
  int count = 0;
  for (Computation c : module.computations()) {
    for (Instruction i : c.instructions()) count += i.opcode() == Opcode::kConstant && i.literal().elided ? 1 : 0;
  }
  return count;
}

}  // namespace

double WorkOf(const Module& module) {
  const Cost cost = CostAnalysis(module).OfModule();
  return static_cast<double>(cost.flops) + static_cast<double>(cost.bytes());
}

void MakeSmaller(Module* module, int64_t tiles, double max_work) {
  std::set<int64_t, std::greater<>> sizes;
  for (Computation c : module->computations()) {
    for (Instruction i : c.instructions()) {
      for (const Shape leaf : Leaves(i.shape())) {
        if (leaf.IsArray()) sizes.insert(leaf.dims().begin(), leaf.dims().end());
      }
    }
  }
  const int constants = ElidedConstants(*module);
  for (const int64_t size : sizes) {
    if (WorkOf(*module) <= max_work) return;
    const int64_t smaller = size % tiles + 2 * tiles;
    if (smaller >= size) continue;
    Module changed = module->Clone();
    ReplaceDimensionSizes(&changed, size, smaller);
    if (ElidedConstants(changed) == constants && Problems(changed).empty()) *module = std::move(changed);
  }
}

}  // namespace hlokit::properties
