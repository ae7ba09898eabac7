// SPDX-License-Identifier: Apache-2.0
// The instructions of each computation that may call others: few, and sufficient for most queries of the call graph.
#ifndef HLOKIT_IR_GRAPH_POTENTIAL_CALLERS_H_
#define HLOKIT_IR_GRAPH_POTENTIAL_CALLERS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit {

class PotentialCallers {
 public:
  explicit PotentialCallers(const Module& module)
      : PotentialCallers(module, [](InstructionId, const InstructionRecord&) {}) {}

  // Calls `visit(id, record)` for every instruction of the module in id order: records are stored in this order, so it
  // takes a fraction of the time of a traversal by computation.
  template <typename Visit>
  PotentialCallers(const Module& module, Visit visit) : places_(module.computation_id_bound()) {
    const size_t bound = module.instruction_id_bound();
    const InstructionRecord* const records = bound == 0 ? nullptr : &module.record(InstructionId(0));
    for (uint32_t k = 0; k < bound; ++k) {
      const InstructionRecord& r = records[k];
      if (!r.parent.valid()) continue;
      visit(InstructionId(k), r);
      // Ids mostly ascend within a computation.
      if (r.previous.valid() && r.previous.value > k) places_[r.parent.value].shuffled = true;
      if (MightHaveCalledComputations(r.opcode)) callers_.push_back(InstructionId(k));
    }
    GroupByComputation(module);
  }

  // Returns the callers in the order of the computation. Instructions erased since have no parent.
  absl::Span<const InstructionId> Of(ComputationId id) const {
    const Place& place = places_[id.value];
    return absl::MakeConstSpan(callers_).subspan(place.begin, place.end - place.begin);
  }
  absl::Span<const InstructionId> all() const { return callers_; }

 private:
  void GroupByComputation(const Module& module);

  struct Place {
    uint32_t begin = 0, end = 0;
    bool shuffled = false;
  };
  std::vector<Place> places_;  // by ComputationId
  std::vector<InstructionId> callers_;
};

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_POTENTIAL_CALLERS_H_
