// SPDX-License-Identifier: Apache-2.0
// ^C and the progress line of a run.
#ifndef HLOKIT_TOOLS_HLO_RUN_INTERRUPT_H_
#define HLOKIT_TOOLS_HLO_RUN_INTERRUPT_H_

#include <atomic>

#include "interp/exact/execution_observer.h"

namespace hlokit::run {

// From here on the first ^C sets the flag that is returned, which ends a run with a report of where it was; the next
// one ends the program.
const std::atomic<bool>* InstallInterruptHandler();

// A line on standard error that is written over again and again, once a run takes longer than two seconds.
class ProgressLine {
 public:
  // True if standard error is a terminal.
  static bool IsEnabled();

  void Show(const interp::RunProgress& progress);
  // Takes the line away.
  void Clear();

 private:
  bool shown_ = false;
};

}  // namespace hlokit::run

#endif  // HLOKIT_TOOLS_HLO_RUN_INTERRUPT_H_
