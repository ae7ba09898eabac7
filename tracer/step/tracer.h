// SPDX-License-Identifier: Apache-2.0
// A tracing session: devices, their pending graphs, steps, caches and metrics. Tensors must not outlive it.
//
//   Tracer tracer;
//   DeviceGuard guard(tracer.device(0));
//   Tensor x = tracer.FromLiteral(std::move(literal)), y = Relu(x) + 1;
//   tracer.MarkStep();
//
// Any number of threads may trace at once.
#ifndef HLOKIT_TRACER_STEP_TRACER_H_
#define HLOKIT_TRACER_STEP_TRACER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/cache/persistent_cache.h"
#include "io/metrics/metrics.h"
#include "ir/types/literal.h"
#include "runtime/client/client.h"
#include "tracer/graph/graph.h"
#include "tracer/graph/graph_fwd.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"
#include "tracer/step/debug_analysis.h"
#include "tracer/step/execution_log.h"
#include "tracer/step/host_rendezvous.h"

namespace hlokit::lazy {

struct TracerOptions {
  runtime::ClientOptions client;
  // Records scopes and source lines on nodes and in HLO metadata.
  bool debug = false;
  // All numbers are parameters, also 0, 1 and -1; all numbers are constants.
  bool no_special_scalars = false;
  bool all_scalars_special = false;
  // Data-parallel replicas, of which this process runs those of its devices; others are assumed to run alike.
  int64_t replicas = 1;
  // Allows full steps to reuse the buffers of tensors that they overwrite.
  bool donate = true;
  int64_t cache_entries = 2048;
  // Explains every compilation: the nearest known program and the first difference.
  bool explain_recompiles = false;
  // Persistent compilation cache in a directory; an empty name: none.
  runtime::PersistentCacheOptions persistent_cache;
  // File to which every executed graph is appended, as text, dot or hlo; empty: none.
  std::string save_graphs_file;
  std::string save_graphs_format = "text";
  // `dump hlo` and save_graphs show modules after the passes.
  bool dump_optimized = false;
  // Programs with at least this many parameters take them as one tuple.
  int64_t parameter_wrapping_threshold = 3200;
  // Steps wait for their execution.
  bool sync_wait = false;
  // Logs each step marker.
  bool step_log = false;
  // Records every execution.
  bool log_executions = false;
  // Analyses to print: of compilations (1 and more) and of executions (2 and more); 0 and less: none.
  int debug_level = -1;
  int debug_max_frames = 8;
  // Prints recommendations from the metrics after every step.
  bool auto_analysis = false;
  // Pending nodes at the first warning, and at which recording is an error: also where they take about all bytes that
  // client.evaluator.limits allows. The time that those limits allow covers recording too.
  int64_t warn_pending_nodes = 100000;
  int64_t max_pending_nodes = int64_t{1} << 24;
  runtime::MetricsOptions metrics;
  // File to which the metrics are appended after every step, or STDOUT or STDERR; empty: none.
  std::string metrics_file;
  // Receives analyses and warnings, whole lines; the default writes to standard error.
  std::function<void(std::string_view)> report;
};

class Tracer {
 public:
  explicit Tracer(const TracerOptions& options = {});
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  const TracerOptions& options() const { return options_; }
  DeviceState* device(int ordinal = 0) const { return devices_[ordinal].get(); }
  size_t device_count() const { return devices_.size(); }
  runtime::Metrics& metrics() { return metrics_; }
  runtime::Client& client() { return *client_; }
  SharedPrograms& shared_programs() { return *shared_programs_; }
  // Returns null if there is none.
  runtime::PersistentCache* persistent_cache() { return persistent_cache_.get(); }

  // Returns a tensor with this value on the current device, uploaded at once.
  Tensor FromLiteral(Literal value);
  // Returns a tensor of `shape`, of the current device, that takes no memory until something reads it: `fill` then sets
  // its elements from zeros, perhaps in another thread.
  Tensor FromGenerator(Shape shape, std::function<void(Literal*)> fill);
  // Computes the pending nodes of the device. Tensors then hold values, or pending buffers: execution is asynchronous.
  absl::Status MarkStep(DeviceState* device = nullptr, bool wait = false,
                        const std::source_location& location = std::source_location::current());
  // Waits for all executions of the device, or, if null, of all devices. Returns the first error of an execution, or of
  // recording.
  absl::Status Wait(DeviceState* device = nullptr);
  // Errors of recording are by device: a thread sets, reads and clears those of its current device; a thread without
  // one sets that of the first device, and reads and clears those of all. Returns the first error of recording since
  // the last call of ClearStatus.
  absl::Status status() const;
  void ClearStatus();
  void SetError(absl::Status status);

  // Returns the explanations of compilations since the last call, with explain_recompiles.
  std::vector<std::string> TakeExplanations();
  void AddExplanation(std::string text);

  // Returns the execution records, kept with log_executions and by analyses.
  ExecutionLog& execution_log() { return execution_log_; }
  // Prints a warning for the user.
  void Warn(std::string_view text);

  // Declares that the program of the device has ended, after what it recorded was started: devices that wait for it, at
  // a collective or in host_rendezvous(), get an ABORTED error with this text at once.
  void Leave(DeviceState* device, const std::string& why);
  // Lets all devices take part again. Requires: no thread waits in host_rendezvous().
  void NextSession();

  // Where the threads of the devices meet (ops/collective.h).
  HostRendezvous& host_rendezvous() { return *host_rendezvous_; }

  // Returns an error if the time is over that client.evaluator.limits allows since they, or else this tracer, began.
  absl::Status CheckTime() const;

  // Increments the counter of an op.
  void CountOp(Op op) {
    ++runtime::host_work.ops;
    op_counts_[static_cast<size_t>(op)].fetch_add(1, std::memory_order_relaxed);
  }
  // Updates the counters of ops and of creations in metrics().
  void PublishCounters();

 private:
  // Runs the work due after a step marker: analyses, the metrics file.
  absl::Status AfterStep();
  // Returns the errors that this thread sets, reads and clears. Requires: status_mutex_.
  absl::Span<absl::Status> ThreadStatuses() const;

  TracerOptions options_;
  runtime::Metrics metrics_;
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::unique_ptr<runtime::Client> client_;
  std::unique_ptr<runtime::PersistentCache> persistent_cache_;
  std::unique_ptr<SharedPrograms> shared_programs_;
  std::vector<std::unique_ptr<DeviceState>> devices_;
  std::unique_ptr<HostRendezvous> host_rendezvous_;
  std::unique_ptr<std::atomic<int64_t>[]> op_counts_;
  mutable std::mutex status_mutex_;
  mutable std::vector<absl::Status> statuses_;  // of recording, by device
  std::vector<std::string> explanations_;
  ExecutionLog execution_log_;
  AutoAnalysis auto_analysis_;  // guarded by status_mutex_
  std::atomic<int64_t> steps_{0};
};

// Returns the device of tensors that this thread creates without tensor arguments.
DeviceState* CurrentDevice();
class DeviceGuard {
 public:
  explicit DeviceGuard(DeviceState* device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  DeviceState* previous_;
};

}  // namespace hlokit::lazy

#endif  // HLOKIT_TRACER_STEP_TRACER_H_
