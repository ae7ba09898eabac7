// SPDX-License-Identifier: Apache-2.0
// Flags for remarks of passes.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_REMARK_FLAGS_H_
#define HLOKIT_TOOLS_CLI_FLAGS_REMARK_FLAGS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "passes/remarks/remark.h"
#include "tools/cli/cli.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hlokit::cli {

class RemarkFlags {
 public:
  // `group`: of the flags in --help; "": the default.
  void AddFlags(CLI::App* app, std::string_view group = "");
  // Prepares the collector. `always`: also if no flag was given. Returns an exit code after a usage error.
  std::optional<int> Prepare(std::string_view tool, bool always = false);
  // Returns the flag that was given; "" if none was.
  std::string_view given() const;
  // Returns null if no remarks are wanted.
  RemarkCollector* collector() const { return collector_.get(); }
  // Writes the remarks to their file, the steps of fusion to theirs, and unless there is a file, or `elsewhere` is set,
  // the remarks as text on standard error. Prints errors.
  void Write(bool elsewhere, DiagnosticReporter* diagnostics) const;

 private:
  std::string categories_;
  std::string kinds_ = "all";
  std::string filter_;
  std::string output_;
  std::string steps_;
  std::shared_ptr<RemarkCollector> collector_;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_REMARK_FLAGS_H_
