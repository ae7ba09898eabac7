// SPDX-License-Identifier: Apache-2.0
// Flags that select the printed form of a module.
#ifndef HLOKIT_TOOLS_CLI_FLAGS_PRINT_FLAGS_H_
#define HLOKIT_TOOLS_CLI_FLAGS_PRINT_FLAGS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "ir/core/text_writer.h"
#include "ir/graph/module_fwd.h"
#include "ir/text/printer.h"

namespace CLI {
class App;
}

namespace hlokit::cli {

// Returns true if the output file `path` is standard output ("-"), and that is a terminal.
bool IsTerminal(std::string_view path);
// Returns how tools print modules to `path` unless flags say otherwise: to a terminal as XLA does, with large constants
// elided; to files and pipes with everything, since the text may be read again.
PrintOptions PrintOptionsFor(std::string_view path);

class PrintFlags {
 public:
  // Adds --print=default|short|canonical|fingerprint|dump|lossless|json|none, and --print-x/--no-print-x for each
  // toggle of PrintOptions.
  void AddFlags(CLI::App* app);
  // Sets the output file, on which the form depends if --print is not given.
  void SetOutput(std::string_view path) { output_ = path; }
  // Returns true if a form was asked for.
  bool given() const { return !form_.empty(); }
  // Returns true if the form is for files that are read again, in which things stay as they were read (as_dumped).
  bool KeepsInput() const;
  // Returns an error if the form would have no end.
  absl::Status Check(const Module& module) const;
  void Print(TextWriter& out, const Module& module) const;
  // Returns the number of constants whose values the form elides as {...}.
  int64_t CountElided(const Module& module) const;

 private:
  PrintOptions Options() const;

  std::string form_;  // empty: not given
  std::string output_ = "-";
  // Toggles given on the command line, by index into the table of print_flags.cc; -1: not given.
  std::vector<int> toggles_;
  bool full_bodies_ = false;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_FLAGS_PRINT_FLAGS_H_
