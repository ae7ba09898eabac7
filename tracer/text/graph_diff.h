// SPDX-License-Identifier: Apache-2.0
// Differences between two lazy graphs: matches nodes by op, shape and attributes, in order, then compares the operands
// of matched nodes. Ignores scopes and locations.
#ifndef HLOKIT_TRACER_TEXT_GRAPH_DIFF_H_
#define HLOKIT_TRACER_TEXT_GRAPH_DIFF_H_

#include <cstdint>
#include <string>

#include "tracer/text/ir_reader.h"

namespace hlokit::lazy {

struct GraphDiff {
  bool equal = false;
  int64_t matched = 0;  // number of nodes
  // The first difference in one sentence, with the locations of both nodes if known.
  std::string first;
  // Lines of both: "  " in both, "- " and "+ " in one, "~ " in both with other operands. Long equal runs are omitted.
  std::string text;
};

GraphDiff DiffGraphs(const TextGraph& a, const TextGraph& b);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_GRAPH_DIFF_H_
