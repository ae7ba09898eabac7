// SPDX-License-Identifier: Apache-2.0
// Loads batches for a device in the background, like torch's DataLoader with workers below an MpDeviceLoader: threads
// produce them and others upload them, a few ahead, so that loading batch n + 1 and tracing step n + 1 overlap with
// step n on the device.
//
// In profiles, workers are the threads `loader.N` with a span `cpu_loader.next` for each batch, uploads are on threads
// `transfer` (those of device 1 are `TPU:1 loader.N` and `TPU:1 transfer`), and Next is a span `WaitForBatch`. Metrics:
// LoaderBatchTime is the time to produce a batch, LoaderWaitTime that of Next.
#ifndef HLOKIT_TRACER_NN_DEVICE_LOADER_H_
#define HLOKIT_TRACER_NN_DEVICE_LOADER_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/core/thread_group.h"
#include "ir/types/literal.h"
#include "tracer/step/tracer.h"

namespace hlokit::lazy::nn {

struct DeviceLoaderOptions {
  int64_t batches_per_execution = 1;  // batches between two steps of the device
  int workers = 1;                    // threads that produce batches
  size_t loader_prefetch = 24;        // batches produced ahead of the program, uploaded ones included
  size_t device_prefetch = 8;         // batches uploaded ahead
  int transfer_threads = 1;
  int64_t batches = std::numeric_limits<int64_t>::max();  // if known, the source is not called for further ones
  // The time that a worker waits in addition for each batch: the cost of a modeled source. It takes no processor. Where
  // executions are deferred it is only the time of the batch in profiles.
  std::chrono::nanoseconds batch_cost{0};
};

class DeviceLoader {
 public:
  // Returns the arrays of batch `number`, from 0; nullopt if there are fewer; or an error, which ends the batches.
  // Called for each number once, in several threads if there are several workers, which take turns.
  using Source = std::function<absl::StatusOr<std::optional<std::vector<Literal>>>(int64_t number)>;

  DeviceLoader(Tracer* tracer, DeviceState* device, Source source, const DeviceLoaderOptions& options = {});
  // Stops the threads.
  ~DeviceLoader();
  DeviceLoader(const DeviceLoader&) = delete;
  DeviceLoader& operator=(const DeviceLoader&) = delete;

  // Returns the next batch on the device, in the source's order; nullopt after the last. Before each batch but the
  // first, and at the end, marks a step of the device (every batches_per_execution batches). Waits for the batch, never
  // for the device. Returns an error of the source at its position, that of a step at once.
  absl::StatusOr<std::optional<Tensors>> Next(const std::source_location& location = std::source_location::current());

 private:
  // Returns the name of a thread in profiles, in which threads of one name share a line.
  std::string ThreadName(std::string_view name) const;
  void Load(int worker);
  void Transfer();
  // Runs the loop of a thread: an exception, such as that there is no memory, ends the batches with an error.
  void Guarded(absl::FunctionRef<void()> loop);
  void FailLocked(absl::Status status);
  // Points of a batch that threads wait for, in profiles.
  enum class BatchPoint { kMade, kSent, kTaken };
  int64_t FlowOf(int64_t number, BatchPoint point) const;

  Tracer* const tracer_;
  DeviceState* const device_;
  const Source source_;
  const DeviceLoaderOptions options_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::map<int64_t, absl::StatusOr<std::vector<Literal>>> made_;  // by number
  std::map<int64_t, absl::StatusOr<Tensors>> uploaded_;           // by number
  int64_t next_upload_ = 0, next_given_ = 0;                      // numbers
  const int64_t start_flow_;
  int64_t end_;          // number of batches, an error's included, as far as known
  bool ended_ = false;   // the end was returned, and its step marked
  absl::Status status_;  // why the threads cannot go on
  ThreadGroup threads_;
};

}  // namespace hlokit::lazy::nn

#endif  // HLOKIT_TRACER_NN_DEVICE_LOADER_H_
