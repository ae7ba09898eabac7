// SPDX-License-Identifier: Apache-2.0
// Part of a module in Graphviz's DOT language.
#ifndef HLOKIT_PASSES_VIEW_DOT_H_
#define HLOKIT_PASSES_VIEW_DOT_H_

#include "ir/core/text_writer.h"
#include "passes/view/subgraph.h"

namespace hlokit {

// Prints a digraph with a cluster for each computation, and an edge for each operand within the part. Operands outside
// of it are counted in the label of the user.
void PrintDot(TextWriter& out, const Subgraph& subgraph);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_DOT_H_
