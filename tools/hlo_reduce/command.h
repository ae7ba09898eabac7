// SPDX-License-Identifier: Apache-2.0
// Commands that test a module: each runs in a process group of its own, with a time limit.
#ifndef HLOKIT_TOOLS_HLO_REDUCE_COMMAND_H_
#define HLOKIT_TOOLS_HLO_REDUCE_COMMAND_H_

#include <atomic>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hlokit::reduce {

struct CommandOutcome {
  int exit_code = -1;  // -1: ended by a signal, or by the time limit
  int signal = 0;      // 0: none
  bool timed_out = false;
  bool interrupted = false;  // by `cancel`
  std::string output;        // of both streams, up to a limit
};

struct CommandOptions {
  double max_seconds = 60;
  bool capture = false;                       // the output; otherwise it is dropped
  const std::atomic<bool>* cancel = nullptr;  // polled; true ends the command
};

// Runs a command of the shell. `{}` stands for the file; without one the file follows the command. May be called by
// several threads. Returns an error if no process can be made.
absl::StatusOr<CommandOutcome> RunCommand(std::string_view command, const std::string& file,
                                          const CommandOptions& options);

}  // namespace hlokit::reduce

#endif  // HLOKIT_TOOLS_HLO_REDUCE_COMMAND_H_
