// SPDX-License-Identifier: Apache-2.0
// Waiting on a condition variable for at most some time, while a flag that nothing signals may cancel it: a signal
// handler can set a flag, but not notify a condition variable. The flag is polled.
#ifndef HLOKIT_IR_CORE_CANCELABLE_WAIT_H_
#define HLOKIT_IR_CORE_CANCELABLE_WAIT_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace hlokit {

// Why a wait ended.
enum class WaitResult : uint8_t { kDone, kCanceled, kTimedOut };

// A flag that cancels; null: nothing does, and nothing is polled.
class CancelFlag {
 public:
  explicit CancelFlag(const std::atomic<bool>* flag) : flag_(flag) {}
  bool operator()() const { return flag_ != nullptr && flag_->load(std::memory_order_relaxed); }
  friend bool IsPolled(const CancelFlag& flag) { return flag.flag_ != nullptr; }

 private:
  const std::atomic<bool>* flag_;
};

template <typename Canceled>
bool IsPolled(const Canceled&) {
  return true;
}

// Waits until done(), which is called with the lock held and whose changes are notified, returns true; until
// canceled(), which is polled, does; or until `seconds` are over.
template <typename Done, typename Canceled>
WaitResult CancelableWait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, double seconds,
                          const Done& done, const Canceled& canceled) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kPoll(100);
  constexpr double kMaxSeconds = 1e9;  // far beyond which times overflow
  const std::chrono::duration<double> limit(std::min(std::max(0.0, seconds), kMaxSeconds));  // of NaN, 0
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(limit);
  while (true) {
    if (done()) return WaitResult::kDone;
    if (canceled()) return WaitResult::kCanceled;
    const auto now = Clock::now();
    if (now >= end) return WaitResult::kTimedOut;
    changed.wait_until(lock, IsPolled(canceled) ? std::min<Clock::time_point>(end, now + kPoll) : end, done);
  }
}

}  // namespace hlokit

#endif  // HLOKIT_IR_CORE_CANCELABLE_WAIT_H_
