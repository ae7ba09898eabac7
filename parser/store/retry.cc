// SPDX-License-Identifier: Apache-2.0
#include "parser/store/retry.h"

#include <algorithm>
#include <random>
#include <thread>

namespace hlokit {

absl::Status WithRetries(const StoreOptions& options, absl::FunctionRef<Attempt(int64_t)> attempt) {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kFirstPauseMs = 100, kMaxPauseMs = 5000, kMaxRetryAfterMs = 30000;
  const Clock::time_point begin = Clock::now();
  thread_local std::minstd_rand random{std::random_device{}()};
  int64_t pause_limit = kFirstPauseMs;
  for (int k = 1;; ++k) {
    int64_t left = 0;
    if (options.deadline_ms > 0) {
      const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
      left = std::max<int64_t>(1, options.deadline_ms - spent);
    }
    const Attempt result = attempt(left);
    if (!absl::IsUnavailable(result.status) || k >= options.attempts) return result.status;
    int64_t pause = std::uniform_int_distribution<int64_t>(pause_limit / 2, pause_limit)(random);
    pause = std::max(pause, std::min(result.retry_after_ms, kMaxRetryAfterMs));
    pause_limit = std::min(pause_limit * 2, kMaxPauseMs);
    if (options.deadline_ms > 0) {
      const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count();
      if (spent + pause >= options.deadline_ms) return result.status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
  }
}

bool CircuitBreaker::Allows(Clock::time_point now) const {
  return failures_ == 0 || (!permanent_ && now >= closed_until_);
}

void CircuitBreaker::Record(const absl::Status& status, Clock::time_point now) {
  constexpr std::chrono::seconds kFirst(30), kMost(600);
  // Answers of a server that works.
  if (status.ok() || absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsResourceExhausted(status)) {
    failures_ = 0;
    return;
  }
  permanent_ = !absl::IsUnavailable(status);
  closed_until_ = now + std::min<std::chrono::seconds>(kMost, kFirst * (int64_t{1} << std::min(failures_, 10)));
  failures_ = std::min(failures_ + 1, 1000);
}

}  // namespace hlokit
