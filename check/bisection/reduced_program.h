// SPDX-License-Identifier: Apache-2.0
// A small program for the pass that a bisection found.
#ifndef HLOKIT_CHECK_BISECTION_REDUCED_PROGRAM_H_
#define HLOKIT_CHECK_BISECTION_REDUCED_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"
#include "check/bisection/pass_bisection.h"
#include "passes/reduce/reduction.h"

namespace hlokit::interp {

// Returns a small part of the module before the pass, as text, whose results the pass alone changes. `options`: those
// of the bisection, of which `progress` is not called. `reduction`: limits and progress of the search; values are
// recorded in runs. Returns an error if the pass alone does not change the results of that module.
absl::StatusOr<std::string> ReduceBeforePass(const BisectionResult& found, BisectionOptions options,
                                             reduce::ReductionOptions reduction);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_BISECTION_REDUCED_PROGRAM_H_
