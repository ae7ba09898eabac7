// SPDX-License-Identifier: Apache-2.0
// Events: something that happens once, with or without an error. Callers' handles share the state, so that a handle may
// be destroyed at any time, in a callback of the event too.
#ifndef HLOKIT_PJRT_VALUES_EVENT_H_
#define HLOKIT_PJRT_VALUES_EVENT_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "pjrt/c_api/types.h"

namespace hlokit::pjrt {

class Event {
 public:
  using Callback = std::function<void(const absl::Status&)>;

  // Returns an event that has happened.
  static std::shared_ptr<Event> Ready(absl::Status status = absl::OkStatus());

  // Lets the event happen, and runs the callbacks on this thread, without a lock. Returns false if it had happened.
  bool Set(absl::Status status);
  // Returns nullopt until the event has happened.
  std::optional<absl::Status> Poll() const;
  absl::Status Wait() const;
  // Calls `callback` once: now, on this thread, if the event has happened.
  void OnReady(Callback callback);

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<absl::Status> status_;
  std::vector<Callback> callbacks_;
};

// Returns a handle that the caller owns.
PJRT_Event* NewEvent(std::shared_ptr<Event> state);

}  // namespace hlokit::pjrt

struct PJRT_Event {
  std::shared_ptr<hlokit::pjrt::Event> state;
};

#endif  // HLOKIT_PJRT_VALUES_EVENT_H_
