// SPDX-License-Identifier: Apache-2.0
// Instruments that print the module around passes.
#ifndef HLOKIT_PASSES_INSTRUMENTATION_PRINTING_H_
#define HLOKIT_PASSES_INSTRUMENTATION_PRINTING_H_

#include <functional>
#include <string>
#include <string_view>

#include "passes/core/pass_instrumentation.h"

namespace hlokit {

// The text of a module in the middle of a pipeline, as it would be printed if the pipeline ended there.
std::string PrintMidPipeline(const Module& module);

class PrintIr : public PassInstrumentation {
 public:
  enum class Changes : uint8_t { kOff, kFull, kDiff };
  struct Options {
    // Of a pass's name; not set: none.
    std::function<bool(std::string_view)> before;
    std::function<bool(std::string_view)> after;
    // Prints after a pass only if it changed the module, all of it or what changed.
    Changes changes = Changes::kOff;
  };

  PrintIr(Options options, std::function<void(std::string_view)> write)
      : options_(std::move(options)), write_(std::move(write)) {}

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

 private:
  Options options_;
  std::function<void(std::string_view)> write_;
  std::string last_;  // the text before the pass, for kDiff
};

// Lines removed (`-`) and added (`+`) with three lines around each change, in the manner of `diff -u`.
std::string LineDiff(std::string_view before, std::string_view after);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_PRINTING_H_
