// SPDX-License-Identifier: Apache-2.0
#ifndef HLOKIT_IR_GRAPH_ENTRY_SIGNATURE_H_
#define HLOKIT_IR_GRAPH_ENTRY_SIGNATURE_H_

#include "ir/graph/module.h"

namespace hlokit {

// Gives the header the shapes of the entry's parameters and root after an edit of these. If they changed, what the
// header says of single parameters and results (aliases, donors, propagation of shardings) is dropped. Requires: the
// entry has a root.
void RefreshEntrySignature(Module& module);

}  // namespace hlokit

#endif  // HLOKIT_IR_GRAPH_ENTRY_SIGNATURE_H_
