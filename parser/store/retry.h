// SPDX-License-Identifier: Apache-2.0
// Retries with exponential backoff and jitter, and a circuit breaker for a server that stays down.
#ifndef HLOKIT_PARSER_STORE_RETRY_H_
#define HLOKIT_PARSER_STORE_RETRY_H_

#include <chrono>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "parser/store/byte_store.h"

namespace hlokit {

struct Attempt {
  absl::Status status;
  int64_t retry_after_ms = 0;  // as the server asks for
};

// Calls `attempt` until its status is other than Unavailable, at most `options.attempts` times within the deadline. It
// gets the milliseconds that are left of it, 0 without one. Pauses are random, up to 100 ms at first, twice as long
// each time.
absl::Status WithRetries(const StoreOptions& options, absl::FunctionRef<Attempt(int64_t)> attempt);

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

#endif  // HLOKIT_PARSER_STORE_RETRY_H_
