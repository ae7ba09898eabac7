// SPDX-License-Identifier: Apache-2.0
// Prints the buffer assignment of a dump beside our estimate of the memory: hlo-inspect memory --assignment.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_ASSIGNMENT_H_
#define HLOKIT_TOOLS_HLO_INSPECT_ASSIGNMENT_H_

#include <cstddef>

#include "ir/core/json_writer.h"
#include "ir/core/text_writer.h"
#include "passes/analysis/memory.h"
#include "passes/dumps/buffer_assignment.h"

namespace hlokit::cli {

void WriteAssignmentText(const dump::AssignmentSummary& summary, const MemoryUse& estimate, size_t top,
                         TextWriter* out);
void WriteAssignmentJson(const dump::AssignmentSummary& summary, JsonWriter* json);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_ASSIGNMENT_H_
