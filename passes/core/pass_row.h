// SPDX-License-Identifier: Apache-2.0
// The row of a pass in the registry. It stands at the end of the source of the pass:
//
//   HLOKIT_PASS(LogisticExpander) {
//     return {.name = "logistic-expander", .category = "expand", .summary = "…", .create = MakePass<Logistic>};
//   }
//
// The build lists the rows of all sources of passes/ (cmake/PassList.cmake), and registry.cc calls each of them, so
// that a row needs no line elsewhere, no global is constructed before main, and a linker keeps what the list names.
#ifndef HLOKIT_PASSES_CORE_PASS_ROW_H_
#define HLOKIT_PASSES_CORE_PASS_ROW_H_

#include "passes/core/registry.h"

// In namespace hlokit. `identifier` is the name of the pass without hyphens.
#define HLOKIT_PASS(identifier) PassInfo identifier##Row()

namespace hlokit {

// Preconditions that many passes have.
inline constexpr std::string_view kNoSchedule = "No schedule: a module that has one is left alone.";
inline constexpr std::string_view kScheduled = "A schedule; a module without one is left alone.";

}  // namespace hlokit

#endif  // HLOKIT_PASSES_CORE_PASS_ROW_H_
