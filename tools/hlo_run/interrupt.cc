// SPDX-License-Identifier: Apache-2.0
#include "tools/hlo_run/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"

namespace hlokit::run {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void OnInterrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

const std::atomic<bool>* InstallInterruptHandler() {
  std::signal(SIGINT, OnInterrupt);
  return &interrupted;
}

bool ProgressLine::IsEnabled() { return isatty(STDERR_FILENO) != 0; }

void ProgressLine::Show(const interp::RunProgress& progress) {
  constexpr double kProgressDelaySeconds = 2;
  if (progress.seconds < kProgressDelaySeconds) return;
  const std::string line =
      absl::StrFormat("\r\x1b[K%.1f s: %d instructions, %d loop iterations, %.1f MB", progress.seconds, progress.steps,
                      progress.loop_iterations, static_cast<double>(progress.bytes) * 1e-6);
  std::fwrite(line.data(), 1, line.size(), stderr);
  shown_ = true;
}

void ProgressLine::Clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

}  // namespace hlokit::run
