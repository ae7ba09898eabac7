// SPDX-License-Identifier: Apache-2.0
// Retries with exponential backoff and jitter, and a circuit breaker for a server that stays down.
#ifndef HLOKIT_IO_STORES_RETRY_H_
#define HLOKIT_IO_STORES_RETRY_H_

#include <chrono>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "io/stores/byte_store.h"

namespace hlokit {

struct Attempt {
  absl::Status status;
  int64_t retry_after_ms = 0;  // as the server asks for
};

// The end of one operation, of which there may be several requests.
class Deadline {
 public:
  // 0: none.
  explicit Deadline(int64_t ms) : ms_(ms) {}

  // Returns the milliseconds that are left, 1 at least; 0 without a deadline.
  int64_t left_ms() const;
  // Returns the smaller one of `ms` and what is left.
  int64_t Within(int64_t ms) const;
  bool is_over() const;
  // Returns true if it is over after another `ms`.
  bool IsOverAfter(int64_t ms) const;

 private:
  using Clock = std::chrono::steady_clock;
  int64_t spent_ms() const;

  const int64_t ms_;
  const Clock::time_point begin_ = Clock::now();
};

// Calls `attempt` until its status is other than Unavailable, at most `options.attempts` times within the deadline. It
// gets the milliseconds that are left of it, 0 without one. Pauses are random, up to 100 ms at first, twice as long
// each time, or as long as the server asks for, which is said on standard error. One that asks for more than half a
// minute, or than is left, gets no further attempt, and the message says so.
absl::Status WithRetries(const StoreOptions& options, const Deadline& deadline,
                         absl::FunctionRef<Attempt(int64_t)> attempt);

// After a failure refuses operations for 30 s, twice as long after each further one, 10 minutes at most; after a
// permanent failure for good. Then lets one operation try again.
class CircuitBreaker {
 public:
  using Clock = std::chrono::steady_clock;

  bool Allows(Clock::time_point now) const;
  void Record(const absl::Status& status, Clock::time_point now);

 private:
  int failures_ = 0;
  bool permanent_ = false;
  Clock::time_point closed_until_;
};

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_RETRY_H_
