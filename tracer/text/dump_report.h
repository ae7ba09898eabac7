// SPDX-License-Identifier: Apache-2.0
// Reports on files of lazy graphs: contents and duplicates.
#ifndef HLOKIT_TRACER_TEXT_DUMP_REPORT_H_
#define HLOKIT_TRACER_TEXT_DUMP_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tracer/text/ir_reader.h"

namespace hlokit::lazy {

// Returns one line for each graph: number (from 1), nodes, leaves, roots, digest of its normalized text, name,
// innermost frame.
std::string ListGraphs(const TextDump& dump);
// Returns the list as a JSON array.
std::string ListGraphsJson(const TextDump& dump);

// Returns groups of equal graphs (by normalized text), in order of their first members; numbers from 0.
std::vector<std::vector<size_t>> EqualGraphs(const TextDump& dump);
// Returns one line for each group, and the first difference of consecutive groups.
std::string DeduplicationReport(const TextDump& dump);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_DUMP_REPORT_H_
