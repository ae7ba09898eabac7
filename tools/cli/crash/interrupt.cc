// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/crash/interrupt.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>

#include "ir/core/str_cat.h"

namespace hlokit::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

std::atomic<int> termination{0};
static_assert(std::atomic<int>::is_always_lock_free);

// timeout(1) signals its command and then the process group, so a signal arrives twice within microseconds. One that
// comes sooner than this after the first is the same request.
constexpr int64_t kSameRequestNanoseconds = 500'000'000;

// When SIGINT, SIGTERM or SIGHUP came first, or 0.
std::array<std::atomic<int64_t>, 3> first_times{};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// Async-signal-safe, as are the functions that it calls.
void OnSignal(int signal) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t nanoseconds = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + 1;
  int64_t first = 0;
  if (first_times[signal == SIGINT ? 0 : signal == SIGTERM ? 1 : 2].compare_exchange_strong(first, nanoseconds)) {
    interrupted.store(true);
    if (signal != SIGINT) termination.store(signal);
  } else if (nanoseconds - first >= kSameRequestNanoseconds) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // is delivered when this handler returns
  }
}

}  // namespace

const std::atomic<bool>* InstallTerminationHandler() {
  for (const int signal : {SIGTERM, SIGHUP}) {
    // One that is ignored, as by nohup, stays so.
    if (std::signal(signal, OnSignal) == SIG_IGN) std::signal(signal, SIG_IGN);
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
  std::signal(SIGINT, OnSignal);
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
