// SPDX-License-Identifier: Apache-2.0
// Moves collectives whose results are only stored to the next iteration, where they overlap with its work.
//
// The backward loop over the layers of a model ends each iteration with a reduce-scatter of the layer's gradient and
// stores the result in the layer's slice of an array of all layers, which has no reader before the loop ends. The
// pipelined loop carries the gradient to the next iteration, which reduces it while it computes its own; the last
// gradient is reduced after the loop. The first iteration gets zeros and the slice indices of the first layer, which
// the second iteration overwrites (XLA's collective pipeliner, forward direction).
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
  // Requires: `loop` has a trip count of at least 2 and its induction variable is element `counter`. `next_channel` is
  // a channel id that no collective uses.
  ForwardCollectivePipeliner(Module* module, const CanonicalLoop& loop, int64_t counter, const SideEffects& effects,
                             int64_t* next_channel);

  // Returns the number of collectives that can move, and the bytes that moving them adds to the loop state.
  int64_t count() const { return static_cast<int64_t>(sinks_.size()); }
  int64_t bytes() const { return bytes_; }
  absl::Status Run();

 private:
  // A collective, and the update that stores the value computed from it.
  struct Sink {
    InstructionId collective;
    InstructionId update;         // the dynamic-update-slice
    int64_t element = 0;          // index of the state element that `update` updates
    std::vector<int64_t> starts;  // start indices of `update` that vary with the iteration
  };

  void ClassifyLoopValues();
  bool MatchSink(Instruction collective, Sink* sink) const;
  bool IsOnlyUpdatedBy(Instruction update, int64_t element) const;

  Module& module_;
  const CanonicalLoop& loop_;
  const int64_t counter_;
  const SideEffects& effects_;
  int64_t& next_channel_;
  std::vector<uint8_t> known_;  // by InstructionId: kLoopInvariant, kInductionDependent or 0
  std::vector<Sink> sinks_;
  int64_t bytes_ = 0;
};

}  // namespace hlokit

#endif  // HLOKIT_PASSES_SCHEDULE_FORWARD_COLLECTIVE_PIPELINER_H_
