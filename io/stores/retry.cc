// SPDX-License-Identifier: Apache-2.0
#include "io/stores/retry.h"

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <thread>

#include "ir/core/str_cat.h"

namespace hlokit {

namespace {

std::string Seconds(int64_t ms) { return StrCat((ms + 999) / 1000, " s"); }

}  // namespace

int64_t Deadline::spent_ms() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin_).count();
}

int64_t Deadline::left_ms() const { return ms_ > 0 ? std::max<int64_t>(1, ms_ - spent_ms()) : 0; }

int64_t Deadline::Within(int64_t ms) const { return ms_ > 0 ? std::min(ms, left_ms()) : ms; }

bool Deadline::is_over() const { return IsOverAfter(0); }

bool Deadline::IsOverAfter(int64_t ms) const { return ms_ > 0 && spent_ms() + ms >= ms_; }

absl::Status WithRetries(const StoreOptions& options, const Deadline& deadline,
                         absl::FunctionRef<Attempt(int64_t)> attempt) {
  constexpr int64_t kFirstPauseMs = 100, kMaxPauseMs = 5000, kMaxRetryAfterMs = 30000, kMinSaidMs = 1000;
  thread_local std::minstd_rand random{std::random_device{}()};
  int64_t pause_limit = kFirstPauseMs;
  for (int k = 1;; ++k) {
    const Attempt result = attempt(deadline.left_ms());
    if (!absl::IsUnavailable(result.status) || k >= options.attempts) return result.status;
    const int64_t asked = result.retry_after_ms;
    const std::string message(result.status.message());
    if (asked > kMaxRetryAfterMs || (asked > 0 && deadline.IsOverAfter(asked))) {
      return absl::UnavailableError(
          StrCat(message, "; the server asks to be tried again after ", Seconds(asked), ", which is not waited for"));
    }
    int64_t pause = std::uniform_int_distribution<int64_t>(pause_limit / 2, pause_limit)(random);
    pause = std::max(pause, asked);
    pause_limit = std::min(pause_limit * 2, kMaxPauseMs);
    if (deadline.IsOverAfter(pause)) return result.status;
    if (asked >= kMinSaidMs) {
      std::fprintf(stderr, "hlokit: note: %s: waits %s, as the server asks\n", message.c_str(), Seconds(asked).c_str());
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
