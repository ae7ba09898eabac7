// SPDX-License-Identifier: Apache-2.0
// Writes a reproducer of a failed pass: the module before the pass, and the command that runs the pass on it. Written
// if a pass returns an error or an invalid module, and from the handler of fatal signals.
#ifndef HLOKIT_TOOLS_CLI_CRASH_CRASH_REPRODUCER_H_
#define HLOKIT_TOOLS_CLI_CRASH_CRASH_REPRODUCER_H_

#include <string>

#include "passes/core/pass_instrumentation.h"

namespace hlokit::cli {

class CrashReproducer : public PassInstrumentation {
 public:
  // At most one instance. Handles signals until destroyed.
  explicit CrashReproducer(std::string path);
  ~CrashReproducer() override;

  absl::Status RunBeforePass(const PassRun& run, const Module& module) override;
  // Writes the file.
  absl::Status Write() const;

 private:
  std::string path_;
  std::string text_;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_CRASH_CRASH_REPRODUCER_H_
