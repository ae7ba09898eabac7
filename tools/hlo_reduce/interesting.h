// SPDX-License-Identifier: Apache-2.0
// The tests of hlo-reduce: what makes a module interesting.
#ifndef HLOKIT_TOOLS_HLO_REDUCE_INTERESTING_H_
#define HLOKIT_TOOLS_HLO_REDUCE_INTERESTING_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "check/equivalence/equivalence_check.h"
#include "passes/reduce/reduction.h"

namespace hlokit::reduce {

struct TestFlags {
  // One of these.
  std::string test;                    // a command, interesting if its exit code is 0
  bool crash = false;                  // the command crashes
  std::string diagnostic;              // the command prints text that this expression finds
  std::optional<std::string> differs;  // passes after which the results differ
  std::string pattern;                 // the module has a match of it
  std::string where;                   // for which this holds
  bool nan = false;                    // the results have a NaN

  std::string command;  // of crash and diagnostic
  std::string passes;   // of the default command
  interp::EquivalenceOptions run;
  double max_seconds = 60;
};

class Test {
 public:
  virtual ~Test() = default;
  // May be called by several threads.
  virtual bool IsInteresting(std::string_view text) = 0;
  // Returns the values of a run (ReductionOptions::record); null if the test does not run the module itself.
  virtual std::function<std::vector<Literal>(const Module&)> Recorder() const { return nullptr; }
  // Returns what the test found for the last interesting module, in a line; "" if there is nothing to say.
  virtual std::string Finding() const { return ""; }
};

// Requires: exactly one of the tests is given. Returns an error if a flag's value is wrong. `cancel`, which must
// outlive the test, ends tests that are running.
absl::StatusOr<std::unique_ptr<Test>> MakeTest(const TestFlags& flags, const std::atomic<bool>* cancel);

}  // namespace hlokit::reduce

#endif  // HLOKIT_TOOLS_HLO_REDUCE_INTERESTING_H_
