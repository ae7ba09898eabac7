// SPDX-License-Identifier: Apache-2.0
// Interrupts and the progress line of a long run.
#ifndef HLOKIT_TOOLS_CLI_CRASH_INTERRUPT_H_
#define HLOKIT_TOOLS_CLI_CRASH_INTERRUPT_H_

#include <atomic>
#include <string_view>

namespace hlokit::cli {

// Installs a handler of SIGINT. The first ^C sets the returned flag, which ends the run with what it has so far; the
// next one, half a second later or more, ends the program.
const std::atomic<bool>* InstallInterruptHandler();

// Installs it for SIGTERM and SIGHUP too, for a tool that has files or processes to remove. It calls
// RaiseTermination at its end, which ends the program by the signal that came, if one did.
const std::atomic<bool>* InstallTerminationHandler();
void RaiseTermination();

// A progress line on standard error, updated in place.
class ProgressLine {
 public:
  // Returns true if standard error is a terminal.
  static bool IsEnabled();

  void Show(std::string_view text);
  // Erases the line.
  void Clear();

 private:
  bool shown_ = false;
};

}  // namespace hlokit::cli

#endif  // HLOKIT_TOOLS_CLI_CRASH_INTERRUPT_H_
