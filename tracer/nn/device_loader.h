// SPDX-License-Identifier: Apache-2.0
// Loads batches for a device in the background, like MpDeviceLoader: one thread produces them and others upload them, a
// few ahead, so that loading batch n + 1 and tracing step n + 1 overlap with step n on the device.
#ifndef HLOKIT_TRACER_NN_DEVICE_LOADER_H_
#define HLOKIT_TRACER_NN_DEVICE_LOADER_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/types/literal.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::nn {

struct DeviceLoaderOptions {
  int64_t batches_per_execution = 1;  // batches between two steps of the device
  size_t loader_prefetch = 16;        // batches produced ahead
  size_t device_prefetch = 8;         // batches uploaded ahead
  int transfer_threads = 1;
};

class DeviceLoader {
 public:
  // Returns the arrays of the next batch, nullopt after the last, or an error. Called on one thread of the loader.
  using Source = std::function<absl::StatusOr<std::optional<std::vector<Literal>>>()>;

  DeviceLoader(Tracer* tracer, DeviceState* device, Source source, const DeviceLoaderOptions& options = {});
  // Stops the threads.
  ~DeviceLoader();
  DeviceLoader(const DeviceLoader&) = delete;
  DeviceLoader& operator=(const DeviceLoader&) = delete;

  // Returns the next batch on the device, in the source's order; nullopt after the last. Before each batch but the
  // first, and at the end, marks a step of the device (every batches_per_execution batches). Waits for the batch, never
  // for the device. Returns an error of the source at its position, that of a step at once.
  absl::StatusOr<std::optional<Tensors>> Next();

 private:
  void Load();
  void Transfer();

  Tracer* const tracer_;
  DeviceState* const device_;
  const Source source_;
  const DeviceLoaderOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  bool made_all_ = false;                                         // the source has ended
  std::map<int64_t, absl::StatusOr<std::vector<Literal>>> made_;  // by number
  std::map<int64_t, absl::StatusOr<Tensors>> uploaded_;           // by number
  int64_t next_made_ = 0, next_upload_ = 0, next_given_ = 0;      // numbers
  bool ended_ = false;                                            // the end was returned, and its step marked
  std::vector<std::thread> threads_;
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_DEVICE_LOADER_H_
