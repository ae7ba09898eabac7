// SPDX-License-Identifier: Apache-2.0
// Instrumentation that prints the module around passes.
#ifndef HLOKIT_PASSES_INSTRUMENTATION_PRINTING_H_
#define HLOKIT_PASSES_INSTRUMENTATION_PRINTING_H_

#include <functional>
#include <string>
#include <string_view>

#include "ir/text/printer.h"
#include "passes/core/pass_instrumentation.h"

namespace hlokit {

// Returns the text of a module in the middle of a pipeline, as it would be printed if the pipeline ended there.
std::string PrintMidPipeline(const Module& module, const PrintOptions& form);

class PrintIr : public PassInstrumentation {
 public:
  enum class Changes : uint8_t { kOff, kFull, kDiff };
  struct Options {
    // Predicates on pass names; empty: none.
    std::function<bool(std::string_view)> before;
    std::function<bool(std::string_view)> after;
    // Prints after a pass only if it changed the module: the whole module, or the difference.
    Changes changes = Changes::kOff;
    PrintOptions form;
  };

  PrintIr(Options options, std::function<void(std::string_view)> write)
      : options_(std::move(options)), write_(std::move(write)) {}

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  absl::Status RunAfterPass(const PassRun& run, const Module& module, bool changed) override;

 private:
  Options options_;
  std::function<void(std::string_view)> write_;
  std::string last_;  // text before the pass, for kDiff
};

// Returns removed (`-`) and added (`+`) lines with three lines of context, in the style of `diff -u`.
std::string LineDiff(std::string_view before, std::string_view after);

}  // namespace hlokit

#endif  // HLOKIT_PASSES_INSTRUMENTATION_PRINTING_H_
