// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/crash/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "ir/core/str_cat.h"

namespace hlokit::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnInterrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

std::atomic<int> termination{0};
static_assert(std::atomic<int>::is_always_lock_free);

void OnTermination(int signal) {
  interrupted.store(true);
  termination.store(signal);
  std::signal(signal, SIG_DFL);  // the next one ends the program
}

}  // namespace

const std::atomic<bool>* InstallTerminationHandler() {
  for (const int signal : {SIGTERM, SIGHUP}) {
    // One that is ignored, as by nohup, stays so.
    if (std::signal(signal, OnTermination) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
  return InstallInterruptHandler();
}

void RaiseTermination() {
  if (const int signal = termination.load(); signal != 0) {
    std::fflush(nullptr);
    std::raise(signal);
  }
}

const std::atomic<bool>* InstallInterruptHandler() {
  std::signal(SIGINT, OnInterrupt);
  return &interrupted;
}

bool ProgressLine::IsEnabled() { return isatty(STDERR_FILENO) != 0; }

void ProgressLine::Show(std::string_view text) {
  const std::string line = StrCat("\r\x1b[K", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
  shown_ = true;
}

void ProgressLine::Clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

}  // namespace hlokit::cli
