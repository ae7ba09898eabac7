// SPDX-License-Identifier: Apache-2.0
// Runs the instructions of a module one by one on values that were recorded in another run: of another engine, on
// another machine, or of another version of the module.
#ifndef HLOKIT_CHECK_ISOLATION_REPLAY_H_
#define HLOKIT_CHECK_ISOLATION_REPLAY_H_

#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "check/isolation/isolation.h"
#include "check/isolation/recorded_values.h"
#include "interp/program/engine_table.h"
#include "ir/graph/module.h"

namespace hlokit::interp {

// Which instruction of the recorded module has the value of an instruction. By instruction id; invalid: none.
struct Counterparts {
  std::vector<InstructionId> of;
  bool same_module = false;  // each instruction is its own counterpart
};

// Returns the counterparts in `recorded` of the instructions of `module`: instructions that passes/diff matches and
// that have the same shape, ignoring layouts. A fusion or call that has none gets that of the root of its computation,
// and an instruction that is now the root of a fusion has that of the fusion. Requires: the modules share a context.
Counterparts FindCounterparts(const Module& recorded, const Module& module);

// Returns the instructions of the recorded module whose values Replay needs.
std::vector<bool> NeededValues(const Module& recorded, const Counterparts& counterparts);

struct ReplayOptions {
  EngineKind engine = EngineKind::kExact;
  IsolationOptions isolation;
  // Polled between runs; an error ends the replay and is returned.
  std::function<absl::Status()> poll;
};

// Computes each instruction that has a counterpart from the nearest operands that have one, and compares it with the
// value of its counterpart: `expected` is the recorded value. Where that differs, it is computed once more with the
// values of operands that differed themselves computed too: if it then agrees, these were different ways to the same
// value, and count as intermediate. Loops, calls and conditionals are compared by what runs in them, or as a whole if
// their computations have no counterparts.
absl::StatusOr<IsolationResult> Replay(const Module& module, const Module& recorded, const RecordedValues& values,
                                       const Counterparts& counterparts, const ReplayOptions& options);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_ISOLATION_REPLAY_H_
