// SPDX-License-Identifier: Apache-2.0
// Finds the first pass of a pipeline, and the first application of a rule in it, after which a module has other
// results.
#ifndef HLOKIT_CHECK_BISECTION_PASS_BISECTION_H_
#define HLOKIT_CHECK_BISECTION_PASS_BISECTION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "check/equivalence/equivalence_check.h"
#include "ir/graph/module.h"
#include "passes/core/pipeline.h"
#include "passes/core/registry.h"

namespace hlokit::interp {

struct BisectionOptions {
  EquivalenceOptions run;
  PipelineOptions pipeline;
  const PassRegistry* registry = nullptr;  // null: that of the library
  // Called before each run, with what is run: "after 12 of 40 passes".
  std::function<void(std::string_view)> progress;
};

struct BisectionResult {
  int64_t passes = 0;      // runs of passes that changed the module
  int64_t runs = 0;        // of the interpreter
  std::string uncompared;  // which results were not compared, and why; "": all were
  bool compared = true;    // any was
  bool differs = false;    // the rest is set if so

  int64_t number = 0;  // of the run of the pass, from 1, as counted by --bisect-limit
  std::string pass;    // with its options, as a pipeline
  std::string group;   // labels of the groups it is in; "" outside
  std::string difference;
  std::string before;  // the module before the pass, lossless text

  int64_t rewrites = 0;     // applications of rules in that run; 0: the pass has no rules
  int64_t rewrite = 0;      // the first after which the results differ, from 1; 0: none alone does
  std::string rule;         // its rule
  std::string instruction;  // that it matched, as text
};

// Searches by bisection: a pass that repairs the results of an earlier one may hide it. Results are compared within the
// tolerance of the options, or that which the passes so far declare. Returns an error if the module cannot be run as it
// is, or the pipeline fails.
absl::StatusOr<BisectionResult> BisectPasses(const Module& module, std::string_view pipeline,
                                             const BisectionOptions& options);

// Returns a description of how the results of the module differ after the pipeline, "" if they do not. A module that
// cannot be run after it differs.
absl::StatusOr<std::string> DifferenceAfter(const Module& module, std::string_view pipeline,
                                            const BisectionOptions& options);

}  // namespace hlokit::interp

#endif  // HLOKIT_CHECK_BISECTION_PASS_BISECTION_H_
