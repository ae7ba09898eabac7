// SPDX-License-Identifier: Apache-2.0
// Interrupts and the progress line of a run.
#ifndef HLOKIT_TOOLS_HLO_RUN_INTERRUPT_H_
#define HLOKIT_TOOLS_HLO_RUN_INTERRUPT_H_

#include <atomic>

#include "interp/exact/execution_observer.h"

namespace hlokit::run {

// Installs a handler of SIGINT. The first ^C sets the returned flag, which ends the run with a report of its position;
// the next one ends the program.
const std::atomic<bool>* InstallInterruptHandler();

// A progress line on standard error, updated in place once a run takes longer than two seconds.
class ProgressLine {
 public:
  // Returns true if standard error is a terminal.
  static bool IsEnabled();

  void Show(const interp::RunProgress& progress);
  // Erases the line.
  void Clear();

 private:
  bool shown_ = false;
};

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_INTERRUPT_H_
