// SPDX-License-Identifier: Apache-2.0
// What differs between two lazy graphs: nodes are matched by what they are (op, shape, attributes), in order; matched
// nodes are then compared by which nodes they take. Scopes and locations do not count.
#ifndef HLOKIT_TRACER_TEXT_GRAPH_DIFF_H_
#define HLOKIT_TRACER_TEXT_GRAPH_DIFF_H_

#include <cstdint>
#include <string>

#include "tracer/text/ir_reader.h"

namespace hlokit::lazy {

struct GraphDiff {
  bool equal = false;
  int64_t matched = 0;  // nodes
  // One sentence about the first difference: what it is, and where both nodes come from if they say so.
  std::string first;
  // Lines of both: "  " in both, "- " and "+ " in one, "~ " in both with other operands. Long runs that are in both are
  // left out.
  std::string text;
};

GraphDiff DiffGraphs(const TextGraph& a, const TextGraph& b);

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_TEXT_GRAPH_DIFF_H_
