// SPDX-License-Identifier: Apache-2.0
// Reports on files of lazy graphs: what is in them, which are the same.
#ifndef HLOKIT_TRACER_TEXT_DUMP_REPORT_H_
#define HLOKIT_TRACER_TEXT_DUMP_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tracer/text/ir_reader.h"

namespace hlokit::lazy {

// One line a graph: number (from 1), nodes, leaves, roots, digest of its normalized text, name, innermost frame.
std::string ListGraphs(const TextDump& dump);
// The same as a JSON array.
std::string ListGraphsJson(const TextDump& dump);

// Groups of equal graphs (by normalized text), in the order of their first members; numbers from 0.
std::vector<std::vector<size_t>> EqualGraphs(const TextDump& dump);
// One line a group, and how consecutive groups differ first.
std::string DeduplicationReport(const TextDump& dump);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_DUMP_REPORT_H_
