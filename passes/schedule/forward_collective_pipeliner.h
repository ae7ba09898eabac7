// SPDX-License-Identifier: Apache-2.0
// Collectives of a loop's body whose results are only put aside: made a trip later, beside its work.
//
// The backward loop over the layers of a model ends each trip with a reduce-scatter of the layer's gradient, and stores
// what comes back in the layer's place of an array of all layers. Nobody reads it before the loop is over, so the
// gradient is handed to the next trip, which reduces it while it computes its own; the last one is reduced behind the
// loop. The first trip has none and is given zeros, with the first trip's own place: it writes there what the second
// trip writes over (after XLA's collective pipeliner, in its forward direction).
#ifndef HLOKIT_PASSES_SCHEDULE_FORWARD_COLLECTIVE_PIPELINER_H_
#define HLOKIT_PASSES_SCHEDULE_FORWARD_COLLECTIVE_PIPELINER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "ir/graph/module.h"
#include "ir/graph/side_effects.h"
#include "passes/analysis/loop.h"

namespace hlokit {

class ForwardCollectivePipeliner {
 public:
  // Of a loop that runs at least twice and counts its trips in element `counter`. `next_channel`: one that no
  // collective has.
  ForwardCollectivePipeliner(Module* module, const CanonicalLoop& loop, int64_t counter, const SideEffects& effects,
                             int64_t* next_channel);

  // How many can be made a trip later, and the bytes that the loop's state then holds beside what it holds now.
  int64_t count() const { return static_cast<int64_t>(sinks_.size()); }
  int64_t bytes() const { return bytes_; }
  absl::Status Run();

 private:
  // A collective, and where the trip puts what it computes from it.
  struct Sink {
    InstructionId collective;
    InstructionId update;         // the dynamic-update-slice
    int64_t element = 0;          // of the state, which it updates
    std::vector<int64_t> starts;  // its operands that depend on the trip
  };

  void ClassifyLoopValues();
  bool MatchSink(Instruction collective, Sink* sink) const;
  bool IsOnlyUpdatedBy(Instruction update, int64_t element) const;

  Module& module_;
  const CanonicalLoop& loop_;
  const int64_t counter_;
  const SideEffects& effects_;
  int64_t& next_channel_;
  std::vector<uint8_t> known_;  // by InstructionId: 1 the same in all trips, 2 depends on their number alone
  std::vector<Sink> sinks_;
  int64_t bytes_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_FORWARD_COLLECTIVE_PIPELINER_H_
