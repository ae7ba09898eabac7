// SPDX-License-Identifier: Apache-2.0
// What a reader of numbers of a module before partitioning or fusion has to know.
#ifndef HLOKIT_TOOLS_HLO_INSPECT_WHOLE_PROGRAM_H_
#define HLOKIT_TOOLS_HLO_INSPECT_WHOLE_PROGRAM_H_

#include <vector>

#include "ir/core/json_writer.h"
#include "ir/core/text_writer.h"
#include "ir/graph/module.h"
#include "passes/analysis/cost.h"

namespace hlokit::cli {

// Prints a line if the module is not partitioned: its numbers are those of all devices.
void WriteWholeProgramNote(const Module& module, TextWriter* out);
// As above, of communication, which partitioning adds.
void WriteUnpartitionedNote(const Module& module, TextWriter* out);
// As above, for live bytes, which fusion changes too.
void WriteMemoryNote(const Module& module, TextWriter* out);
// Prints a line that names the loops of which one iteration is counted, if there are any.
void WriteUncountedLoopsNote(const std::vector<Instruction>& loops, TextWriter* out);
// Writes the member `uncounted_loops`: their names.
void WriteUncountedLoops(const std::vector<Instruction>& loops, JsonWriter* json);
// Returns the operations of a custom call, of what it states in its backend_config or its target is known for
// (custom_call_cost.h); zeros otherwise. Bytes are those of its operands and results, which are counted elsewhere.
Cost StatedCost(Instruction custom_call);
// Prints lines that say which custom calls have such a cost and which have none, if there are any custom calls.
void WriteCustomCallsNote(const Module& module, TextWriter* out);
// Writes the member `custom_calls`, with the numbers `with_cost` and `without_cost`.
void WriteCustomCalls(const Module& module, JsonWriter* json);
// Writes the member `whole_program_devices`: 1 if the module is partitioned.
void WriteWholeProgramMember(const Module& module, JsonWriter* json);

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_HLO_INSPECT_WHOLE_PROGRAM_H_
