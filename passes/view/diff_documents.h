// SPDX-License-Identifier: Apache-2.0
// Two modules and what differs between them, for viewers.
#ifndef HLOKIT_PASSES_VIEW_DIFF_DOCUMENTS_H_
#define HLOKIT_PASSES_VIEW_DIFF_DOCUMENTS_H_

#include <string>

#include "ir/core/json_writer.h"
#include "ir/graph/module.h"
#include "passes/diff/module_diff.h"

namespace hlokit {

// Writes an array of two graph documents (graph_document.h), before and after. Requires: `diff` is of these modules,
// which have an entry computation each.
void WriteDiffDocuments(const Module& a, const Module& b, const ModuleDiff& diff, const std::string& file_a,
                        const std::string& file_b, JsonWriter* json);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_VIEW_DIFF_DOCUMENTS_H_
