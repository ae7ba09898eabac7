// SPDX-License-Identifier: Apache-2.0
// Callbacks of a caller in a run: programs send values to the host and receive values from it over numbered channels,
// and the options of the run have a function for each channel of each device.
#ifndef HLOKIT_PJRT_EXECUTION_HOST_CALLBACKS_H_
#define HLOKIT_PJRT_EXECUTION_HOST_CALLBACKS_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ir/graph/module.h"
#include "pjrt/c_api/types.h"
#include "pjrt/ffi/ffi_handlers.h"
#include "runtime/client/client.h"

namespace hlokit::pjrt {

// Returns true if the program sends to the host, or receives from it.
bool HasHostTransfers(const Module& module);

// The callbacks of one device in one run, by channel.
struct DeviceCallbacks {
  std::map<int64_t, PJRT_SendCallbackInfo> send;
  std::map<int64_t, PJRT_RecvCallbackInfo> receive;
  std::shared_ptr<FfiUserData> user_data;  // for handlers of typed custom calls
};
// Returns the callbacks of the options for the device at `position` of the call. `options` may be null.
DeviceCallbacks CallbacksOf(const PJRT_ExecuteOptions* options, size_t position);

// How long a run waits for the value of a callback: until the first of two limits, in seconds.
struct CallbackLimits {
  double wait = std::numeric_limits<double>::infinity();  // of one value
  double run = std::numeric_limits<double>::infinity();   // of the run
};

// The callbacks of an executable's runs. Runs of a device are in the order of its queue, so its callbacks are too.
class HostCallbacks : public runtime::ExecutableHostIo {
 public:
  // `devices`: by position. `transfers`: the program sends to the host or receives from it, and does not only make
  // typed calls.
  HostCallbacks(std::vector<const PJRT_Device*> devices, const CallbackLimits& limits, bool transfers)
      : devices_(std::move(devices)), limits_(limits), transfers_(transfers), queues_(devices_.size()) {}

  // Returns true if this thread is in a callback, which a device has called.
  static bool IsInCallback();
  // Returns an error if this thread is in a callback of a run that a program on the device would wait for: one on this
  // device, or of this program, which runs on one device after the other. `program`: its callbacks; null: none.
  static absl::Status CheckMayRun(const PJRT_Device* device, const HostCallbacks* program);

  // A run of the device at `position` is enqueued, or has ended.
  void Push(size_t position, DeviceCallbacks callbacks);
  void Pop(size_t position);

  // Keeps the calls of the program alive, whose handlers have states.
  void SetCalls(std::vector<std::shared_ptr<FfiCall>> calls) { calls_ = std::move(calls); }

  void BeginRun(std::optional<size_t> position) override;
  bool MayOverlap() const override { return !transfers_; }
  std::shared_mutex* compile_mutex() const override { return &FfiHandlersMutex(); }
  absl::Status Receive(std::string_view queue, int64_t device, absl::Span<Literal> leaves) override;
  absl::Status Send(std::string_view queue, int64_t device, absl::Span<const Literal> leaves) override;

 private:
  // Returns the callbacks of the run in progress.
  absl::StatusOr<DeviceCallbacks> Current(int64_t device);
  // Returns the devices of a run: the one at `position`, or all.
  absl::Span<const PJRT_Device* const> DevicesOf(std::optional<size_t> position) const;

  const std::vector<const PJRT_Device*> devices_;
  const CallbackLimits limits_;
  const bool transfers_;
  std::vector<std::shared_ptr<FfiCall>> calls_;
  // Of the run in progress, of a program with transfers.
  std::optional<size_t> alone_;  // its only device
  std::chrono::steady_clock::time_point begin_;
  std::mutex mutex_;
  std::vector<std::deque<DeviceCallbacks>> queues_;  // by position; the first is that of the run in progress
};

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_EXECUTION_HOST_CALLBACKS_H_
