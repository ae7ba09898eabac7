// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/crash/crash_report.h"

#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <iterator>

#include "interp/exact/machine/current_instruction.h"
#include "ir/core/str_cat.h"

namespace hlokit::cli {
namespace {

constexpr int kReportedSignals[] = {SIGSEGV, SIGFPE, SIGBUS, SIGILL};
struct sigaction previous_actions[std::size(kReportedSignals)];

// The handler runs on a stack of its own: the fault may be that of the other.
constexpr size_t kStackBytes = 64 * 1024;
alignas(16) char handler_stack[kStackBytes];

// For the signal handler, which may only read memory and call write.
const std::string_view* volatile report_lines = nullptr;
volatile size_t report_count = 0;

void ReportCrash(int signal) {
  const uint32_t id = interp::current_instruction.load(std::memory_order_relaxed);
  if (report_lines != nullptr && id < report_count) {
    const std::string_view line = report_lines[id];
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    static_cast<void>(written);
  }
  // What was there before ends the program.
  for (size_t i = 0; i < std::size(kReportedSignals); ++i) {
    if (kReportedSignals[i] == signal) sigaction(signal, &previous_actions[i], nullptr);
  }
  raise(signal);
}

}  // namespace

CrashReport::CrashReport(std::string_view tool, const Module& module) {
  lines_.resize(module.instruction_id_bound());
  for (const Computation computation : module.computations()) {
    for (const Instruction i : computation.instructions()) {
      lines_[i.id().value] = StrCat(tool, ": crashed in ", i.name(), " (", i.opcode_text(), ")\n");
    }
  }
  views_.assign(lines_.begin(), lines_.end());
  report_lines = views_.data();
  report_count = views_.size();
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = ReportCrash;
  action.sa_flags = SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < std::size(kReportedSignals); ++i) {
    sigaction(kReportedSignals[i], &action, &previous_actions[i]);
  }
}

CrashReport::~CrashReport() {
  for (size_t i = 0; i < std::size(kReportedSignals); ++i) {
    sigaction(kReportedSignals[i], &previous_actions[i], nullptr);
  }
  report_count = 0;
  report_lines = nullptr;
}

}  // namespace hlokit::cli
