// SPDX-License-Identifier: Apache-2.0
// What the registry knows, as text for people.
#ifndef HLOKIT_PASSES_DOCUMENTATION_DOCUMENTATION_H_
#define HLOKIT_PASSES_DOCUMENTATION_DOCUMENTATION_H_

#include <string>

#include "passes/core/registry.h"

namespace hlokit {

// A line for each pass and pipeline: name, tab, summary.
std::string PassesAsText(const PassRegistry& registry);

// A page: a chapter for each room, a section for each pass with its options, what it needs and keeps, and its example
// before and after.
std::string PassesAsMarkdown(const PassRegistry& registry);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_DOCUMENTATION_DOCUMENTATION_H_
