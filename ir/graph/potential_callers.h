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
    for (uint32_t k = 0; k < module.instruction_id_bound(); ++k) {
      const InstructionRecord& r = module.record(InstructionId(k));
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

// Calls `visit(ComputationId)` for each computation that the instruction names, in the order of its attributes.
template <typename Visit>
void ForEachCallee(const Module& module, const InstructionRecord& r, Visit visit) {
  for (const AttrValue& a : module.attrs_of(r)) {
    const AttrType type = InfoOf(a.attr).type;
    if (type == AttrType::kComputation) {
      visit(ComputationId(a.payload));
    } else if (type == AttrType::kComputationList) {
      for (int64_t callee : module.context().list(ListId(a.payload))) {
        visit(ComputationId(static_cast<uint32_t>(callee)));
      }
    }
  }
}

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_POTENTIAL_CALLERS_H_
