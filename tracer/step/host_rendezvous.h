// SPDX-License-Identifier: Apache-2.0
// A point where the threads of all devices wait for each other and exchange texts.
#ifndef HLOKIT_TRACER_STEP_HOST_RENDEZVOUS_H_
#define HLOKIT_TRACER_STEP_HOST_RENDEZVOUS_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace hlokit::lazy {

class HostRendezvous {
 public:
  // A device that waits longer than `timeout_seconds` gets an error, and so does one that waits while `cancel`, if not
  // null, is true.
  HostRendezvous(size_t devices, double timeout_seconds, const std::atomic<bool>* cancel = nullptr)
      : left_(devices), devices_(devices), timeout_seconds_(timeout_seconds), cancel_(cancel) {}

  // Waits until all devices have arrived with `tag`, and returns their payloads by device. Returns an ABORTED error if
  // one of them left.
  absl::StatusOr<std::vector<std::string>> Meet(size_t device, std::string_view tag, std::string payload);
  // Declares that the device does not arrive any more: the others do not wait for it, and get an error with this text.
  void Leave(size_t device, std::string why);
  // Lets all devices take part again. Requires: none waits.
  void NextSession();

 private:
  struct Round {
    std::vector<std::optional<std::string>> payloads;  // by device
    size_t arrived = 0;
  };

  // Returns why a device that the round waits for does not arrive; null if each still can.
  const std::string* ReasonToEnd(const Round& round) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Round>, std::less<>> open_;  // by tag
  std::vector<std::optional<std::string>> left_;                     // the reasons, by device
  const size_t devices_;
  const double timeout_seconds_;
  const std::atomic<bool>* const cancel_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_HOST_RENDEZVOUS_H_
