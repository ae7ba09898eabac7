// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/potential_callers.h"

#include <utility>

namespace hlokit {

void PotentialCallers::GroupByComputation(const Module& module) {
  bool grouped = true;
  ComputationId current;
  for (InstructionId caller : callers_) {
    const ComputationId parent = module.record(caller).parent;
    Place& place = places_[parent.value];
    grouped &= parent == current || place.end == 0;
    current = parent;
    ++place.end;  // the number, until places are given
  }
  uint32_t begin = 0;
  if (grouped) {
    for (size_t k = 0; k < callers_.size(); k = begin) {
      Place& place = places_[module.record(callers_[k]).parent.value];
      place.begin = begin;
      place.end = begin += place.end;
    }
  } else {
    for (Place& place : places_) {
      place.begin = begin;
      begin += std::exchange(place.end, begin);
    }
    std::vector<InstructionId> sorted(callers_.size());
    for (InstructionId caller : callers_) sorted[places_[module.record(caller).parent.value].end++] = caller;
    callers_ = std::move(sorted);
  }
  for (size_t c = 0; c < places_.size(); ++c) {
    const Place& place = places_[c];
    if (!place.shuffled || place.end - place.begin < 2) continue;
    uint32_t at = place.begin;
    for (InstructionId id = module.record(ComputationId(static_cast<uint32_t>(c))).first; id.valid();) {
      const InstructionRecord& r = module.record(id);
      if (MightHaveCalledComputations(r.opcode)) callers_[at++] = id;
      id = r.next;
    }
  }
}

}  // namespace hlokit
