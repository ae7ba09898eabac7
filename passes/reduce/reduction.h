// SPDX-License-Identifier: Apache-2.0
// Reduction of a module to a small one that a test still finds interesting: delta debugging with the edits of reducers.
//
// Each reducer's targets are edited all at once, then in halves, quarters and so on down to single ones; an edit stays
// if the module verifies, is smaller and still interesting. The reducers run in turn until none can make the module
// smaller. Candidates are tested concurrently, and the first in order that is interesting is taken: the result does not
// depend on the number of threads or their timing, unless a limit of time ends the search.
//
// Source: A. Zeller, R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002.
#ifndef HLOKIT_PASSES_REDUCE_REDUCTION_H_
#define HLOKIT_PASSES_REDUCE_REDUCTION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ir/graph/module.h"
#include "ir/types/literal.h"

namespace hlokit::reduce {

// What reduction minimizes, in this order.
struct ModuleSize {
  int64_t computing = 0;     // instructions other than parameters, constants, tuples and their elements
  int64_t instructions = 0;  // all
  int64_t bytes = 0;         // of the values of all instructions; saturates
  int64_t parameters = 0;    // of the entry, if values can be recorded: a constant in its place keeps the value
  int64_t text = 0;          // characters of the text

  friend auto operator<=>(const ModuleSize&, const ModuleSize&) = default;
};

// Returns true if the module that this text holds is interesting. Called by several threads.
using InterestingTest = std::function<bool(std::string_view text)>;

struct ReductionProgress {
  std::string_view reducer;
  int64_t tests = 0;     // calls of the test
  int64_t accepted = 0;  // edits that stayed
  ModuleSize size;
};

struct ReductionOptions {
  // Returns the values of the entry's instructions in a run, by instruction; empty literals for unknown ones. Null: no
  // instruction becomes a constant with its value.
  std::function<std::vector<Literal>(const Module&)> record;
  int jobs = 1;                // concurrent tests
  int64_t max_tests = -1;      // none if negative
  std::function<bool()> stop;  // polled before each test: the smallest module so far is the result
  // Called after each batch of tests, with the text of the smallest module after a change.
  std::function<void(const ReductionProgress&, const std::string* smaller)> progress;
};

struct ReductionResult {
  std::string text;  // lossless
  ModuleSize before, after;
  int64_t tests = 0;
  int64_t repeated = 0;  // candidates that had been tested before
  int64_t invalid = 0;   // candidates that do not verify
  bool complete = true;  // false: stopped by a limit
  struct Row {
    std::string_view reducer;
    int64_t tests = 0, accepted = 0;
  };
  std::vector<Row> rows;  // by reducer
};

// Returns an error if the module is not interesting as it is.
absl::StatusOr<ReductionResult> Reduce(const Module& module, const InterestingTest& test,
                                       const ReductionOptions& options);

}  // namespace hlokit::reduce

#endif  // HLOKIT_PASSES_REDUCE_REDUCTION_H_
