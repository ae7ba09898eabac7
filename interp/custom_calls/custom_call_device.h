// SPDX-License-Identifier: Apache-2.0
// The device on which a registered function of a custom call runs, and whether its run goes on.
#ifndef HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALL_DEVICE_H_
#define HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALL_DEVICE_H_

#include <cstdint>
#include <functional>

namespace hlokit::interp {

// Of the run, counted by replica and then partition; of the function that this thread is in.
inline thread_local int64_t device_of_custom_call = 0;

// Of the function that this thread is in; null: it is not to stop.
inline thread_local const std::function<bool()>* stop_of_custom_call = nullptr;

// Returns true when the run has ended: a long function returns then, with results of any value.
inline bool ShouldStopCustomCall() { return stop_of_custom_call != nullptr && (*stop_of_custom_call)(); }

// What the function of this thread has done since it last asked, and whether it has been told to stop.
inline thread_local int64_t work_of_custom_call = 0;
inline thread_local bool custom_call_stopped = false;

// The same, for the innermost loops: asks once in many operations, which are a fraction of a millisecond.
inline bool ShouldStopAfter(int64_t operations) {
  constexpr int64_t kOften = 1 << 18;
  if (custom_call_stopped) return true;
  work_of_custom_call += operations;
  if (work_of_custom_call < kOften) return false;
  work_of_custom_call = 0;
  custom_call_stopped = ShouldStopCustomCall();
  return custom_call_stopped;
}

// Sets it while a function is called.
class CustomCallStop {
 public:
  explicit CustomCallStop(const std::function<bool()>* stop) {
    stop_of_custom_call = stop;
    work_of_custom_call = 0;
    custom_call_stopped = false;
  }
  CustomCallStop(const CustomCallStop&) = delete;
  CustomCallStop& operator=(const CustomCallStop&) = delete;
  ~CustomCallStop() { stop_of_custom_call = nullptr; }
};

}  // namespace hlokit::interp

#endif  // HLOKIT_INTERP_CUSTOM_CALLS_CUSTOM_CALL_DEVICE_H_
