// SPDX-License-Identifier: Apache-2.0
// Callbacks of a caller in a run: programs send values to the host and receive values from it over numbered channels,
// and the options of the run have a function for each channel of each device.
#ifndef HLOKIT_INTERP_PJRT_HOST_CALLBACKS_H_
#define HLOKIT_INTERP_PJRT_HOST_CALLBACKS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "interp/pjrt/c_api/types.h"
#include "interp/runtime/client/client.h"
#include "ir/graph/module.h"

namespace hlokit::pjrt {

// Returns true if the program sends to the host, or receives from it.
bool HasHostTransfers(const Module& module);

// The callbacks of one device in one run, by channel.
struct DeviceCallbacks {
  std::map<int64_t, PJRT_SendCallbackInfo> send;
  std::map<int64_t, PJRT_RecvCallbackInfo> receive;
};
// Returns the callbacks of the options for the device at `position` of the call. `options` may be null.
DeviceCallbacks CallbacksOf(const PJRT_ExecuteOptions* options, size_t position);

// The callbacks of an executable's runs. Runs of a device are in the order of its queue, so its callbacks are too.
class HostCallbacks : public runtime::ExecutableHostIo {
 public:
  // `devices`: number of positions.
  explicit HostCallbacks(size_t devices) : queues_(devices) {}

  // A run of the device at `position` is enqueued, or has ended.
  void Push(size_t position, DeviceCallbacks callbacks);
  void Pop(size_t position);

  void BeginRun(std::optional<size_t> position) override { alone_ = position; }
  absl::Status Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) override;
  absl::Status Send(std::string_view queue, int64_t device, absl::Span<const Literal> leaves) override;

 private:
  // Returns the callbacks of the run in progress.
  absl::StatusOr<DeviceCallbacks> Current(int64_t device);

  std::optional<size_t> alone_;  // the only device of the run
  std::mutex mutex_;
  std::vector<std::deque<DeviceCallbacks>> queues_;  // by position; the first is that of the run in progress
};

}  // namespace hlokit::pjrt

#endif  // HLOKIT_INTERP_PJRT_HOST_CALLBACKS_H_
