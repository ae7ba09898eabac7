// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_PASSES_VIEW_SECTIONS_H_
#define HLOKIT_PASSES_VIEW_SECTIONS_H_

#include "ir/graph/module.h"
#include "passes/view/graph_groups.h"

namespace hlokit {

// Divides the children of each node that has more than GraphGroups::kMaxChildren of them into sections, in as many
// levels as that takes. A section ends near its even share, where the fewest children after it use children before it.
void AddSections(const Module& module, GraphGroups* groups);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_SECTIONS_H_
