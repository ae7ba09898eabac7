// SPDX-License-Identifier: Apache-2.0
// Human-readable text about the registered passes.
#ifndef HLOKIT_PASSES_DOCUMENTATION_DOCUMENTATION_H_
#define HLOKIT_PASSES_DOCUMENTATION_DOCUMENTATION_H_

#include <string>

#include "passes/core/registry.h"

namespace hlokit {

// Returns a line for each pass and pipeline: name, tab, summary.
std::string PassesAsText(const PassRegistry& registry);

// Returns a page: a chapter for each category, a section for each pass with its options, preconditions and guarantees,
// and its example before and after.
std::string PassesAsMarkdown(const PassRegistry& registry);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_DOCUMENTATION_DOCUMENTATION_H_
