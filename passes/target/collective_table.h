// SPDX-License-Identifier: Apache-2.0
// The communication of a module: its collectives, also those in fusions, and what runs while they are in flight.
#ifndef HLOKIT_PASSES_TARGET_COLLECTIVE_TABLE_H_
#define HLOKIT_PASSES_TARGET_COLLECTIVE_TABLE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "ir/graph/module.h"

namespace hlokit::tpu {

struct CollectiveRow {
  Instruction instruction;  // the collective, its start, or the fusion that contains it
  std::string kind;         // NameOfCollective
  std::string groups;       // or pairs
  int64_t bytes = 0;        // of the operands, on a device
  int64_t result_bytes = 0;
  int64_t runs = 0;  // in one execution of the module, see CountExecutions
  bool async = false;
  // What runs between the start and the end, in the order of the text.
  int64_t overlapped_instructions = 0;
  int64_t overlapped_flops = 0;
  int64_t overlapped_bytes = 0;
};

// Returns the collectives by computation, in the order of the text.
std::vector<CollectiveRow> CollectiveTable(const Module& module);

struct CollectiveCount {
  int64_t count = 0, runs = 0, async = 0, overlapped = 0;
  int64_t bytes = 0;  // of all runs
};
// Returns the totals by kind.
std::map<std::string, CollectiveCount> CountByKind(absl::Span<const CollectiveRow> rows);

}  // namespace hlokit::tpu

#endif  // HLOKIT_PASSES_TARGET_COLLECTIVE_TABLE_H_
