// SPDX-License-Identifier: Apache-2.0
// Passes as reducers: what they simplify is smaller.
#include <string_view>
#include <vector>

#include "passes/core/pipeline.h"
#include "passes/reduce/reducer.h"

namespace hlokit::reduce {
namespace {

// Each of these passes, alone, where it makes the module smaller.
constexpr std::string_view kPasses[] = {
    "dce",
    "tuple-simplifier",
    "dead-parameter-removal",
    "while-loop-simplifier",
    "conditional-simplifier",
    "inline",
    "defuse",
    "conditional-to-select",
    "map-inliner",
    "cse",
    "computation-deduplicator",
    "control-dep-remover",
    "hlo-descheduler",
    "sharding-remover",
    "zero-sized-hlo-elimination",
    "simplify",
};

class SimplifyingPasses : public Reducer {
 public:
  std::string_view name() const override { return "passes"; }
  Search search() const override { return Search::kAlternatives; }
  std::vector<Target> Targets(const Module&) const override {
    std::vector<Target> targets;
    for (uint32_t k = 0; k < std::size(kPasses); ++k) {
      if (PassRegistry::Get().Find(kPasses[k]) != nullptr) targets.push_back({k, 0});
    }
    return targets;
  }
  bool Apply(Module& module, Target target) const override {
    absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(kPasses[target.id]);
    if (!pipeline.ok()) return false;
    const absl::StatusOr<Pipeline::Result> result = pipeline->Run(module);
    return result.ok() && result->changed;
  }
};

}  // namespace

void AddPassReducers(Reducers* reducers) { reducers->push_back(std::make_unique<SimplifyingPasses>()); }

}  // namespace hlokit::reduce
