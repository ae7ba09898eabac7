// SPDX-License-Identifier: Apache-2.0
// A file to take a failure of a pass away in: the module as it was before the pass that failed, and how to run that
// pass on it again. Written when a pass gives an error or breaks the module, and from the handler of a signal that ends
// the program.
#ifndef HLOKIT_TOOLS_CLI_CRASH_REPRODUCER_H_
#define HLOKIT_TOOLS_CLI_CRASH_REPRODUCER_H_

#include <string>

#include "passes/core/pass_instrumentation.h"

namespace hlokit::cli {

class CrashReproducer : public PassInstrumentation {
 public:
  // One at a time. Signals are handled until it goes away.
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

#endif  // HLOKIT_TOOLS_CLI_CRASH_REPRODUCER_H_
