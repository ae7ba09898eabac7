// SPDX-License-Identifier: Apache-2.0
// A point where the threads of all devices wait for each other and exchange texts.
#ifndef HLOKIT_TRACER_STEP_HOST_RENDEZVOUS_H_
#define HLOKIT_TRACER_STEP_HOST_RENDEZVOUS_H_

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
  // A device that waits longer than `timeout_seconds` gets an error.
  HostRendezvous(size_t devices, double timeout_seconds) : devices_(devices), timeout_seconds_(timeout_seconds) {}

  // Waits until all devices have arrived with `tag`, and returns their payloads by device.
  absl::StatusOr<std::vector<std::string>> Meet(size_t device, std::string_view tag, std::string payload);

 private:
  struct Round {
    std::vector<std::optional<std::string>> payloads;  // by device
    size_t arrived = 0;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::shared_ptr<Round>, std::less<>> open_;  // by tag
  const size_t devices_;
  const double timeout_seconds_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_HOST_RENDEZVOUS_H_
