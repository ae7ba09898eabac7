// SPDX-License-Identifier: Apache-2.0
// Sharding propagation by XLA's policy over sharding rules: shardings that the user wrote spread along the factors of
// operations, in levels from those that never need a reshard to broadcasts, until nothing becomes finer. Nothing ever
// becomes coarser. The result depends on the graph and on names, never on the order of the text; a second run changes
// nothing.
#ifndef HLOKIT_PASSES_SHARDING_PROPAGATION_H_
#define HLOKIT_PASSES_SHARDING_PROPAGATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "ir/sharding/tiling.h"

namespace hlokit::sharding {

struct PropagationOptions {
  // All devices run one program. Otherwise partial replication and merging are off.
  bool is_spmd = false;
  // Shardings carry the metadata of the instruction where they began; otherwise metadata of shardings is removed.
  bool propagate_metadata = false;
  // Keep only what lands on broadcasts of scalars, marked, so that CSE does not merge them.
  bool cse_prevention_only = false;
  // Whether the results (parameters) of the entry may get other shardings than the text gives: one value for all, or
  // one for each element of the root's tuple (for each parameter, or each element of a single tuple parameter).
  std::vector<bool> to_output;
  std::vector<bool> to_parameters;
  // The execution threads whose computations change; empty: all.
  std::vector<std::string> threads;
};

// Returns the values of a header's allow_spmd_sharding_propagation_to_output or …_to_parameters, for the options.
std::vector<bool> AllowedByHeader(const Module& module, ListId list);

// Why a leaf of an instruction's value has its sharding.
enum class SourceKind : uint8_t {
  kText,          // the text gives it
  kOperand,       // along the rule of the instruction, from an operand
  kUser,          // along the rule of a user
  kSameValue,     // a loop, call or conditional has one value with the other instruction
  kConstraint,    // operand of a Sharding custom-call
  kShardGroup,    // shard_as, shard_like
  kManual,        // a neighbor is manual
  kNotDivisible,  // a parameter or result that does not divide equally became replicated
};

// One change of the sharding of a leaf.
struct PropagationStep {
  InstructionId instruction;
  int64_t leaf = 0;
  SourceKind kind = SourceKind::kText;
  InstructionId source;  // invalid: none
  int64_t source_leaf = 0;
  int level = 0;
  Tiling before, after;   // before: unknown if it had none
  bool rejected = false;  // `after` was proposed, but conflicts with `before`, which stays
};

// The changes in the order in which they were made; for explanations.
struct PropagationLog {
  std::vector<PropagationStep> steps;
};

// What propagation did to a module.
struct PropagationCounts {
  int64_t added = 0;         // instructions that had no sharding
  int64_t changed = 0;       // instructions with another one, or without the one they had
  int64_t constraints = 0;   // Sharding custom-calls that became copies
  int64_t copied_loops = 0;  // at the root of the entry
  int64_t imported = 0;      // attributes and custom-calls of Shardy (shardy_import.h)
  int64_t total() const { return added + changed + constraints + copied_loops + imported; }
};

// Propagates the shardings of the module, those of Shardy's export too. `log` may be null. Returns an error for
// shardings that cannot be calculated with, and for device conflicts in loops.
absl::StatusOr<PropagationCounts> PropagateShardings(Module& module, const PropagationOptions& options,
                                                     PropagationLog* log);

}  // namespace hlokit::sharding

#endif  // HLOKIT_PASSES_SHARDING_PROPAGATION_H_
