// SPDX-License-Identifier: Apache-2.0
// A tracing session: devices, their pending graphs, steps, caches and metrics. Tensors must not outlive it.
//
//   Tracer tracer;
//   DeviceGuard guard(tracer.device(0));
//   Tensor x = tracer.FromLiteral(...), y = Relu(x) + 1;
//   tracer.MarkStep();
//
// Any number of threads may trace at once.
#ifndef HLOKIT_TRACER_STEP_TRACER_H_
#define HLOKIT_TRACER_STEP_TRACER_H_

#include <atomic>
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
#include "interp/runtime/cache/persistent_cache.h"
#include "interp/runtime/client/client.h"
#include "interp/runtime/observe/metrics.h"
#include "ir/types/literal.h"
#include "tracer/graph/graph.h"
#include "tracer/graph/scope.h"
#include "tracer/graph/tensor.h"
#include "tracer/graph/value.h"
#include "tracer/step/debug_analysis.h"
#include "tracer/step/execution_log.h"

namespace hlokit::lazy {

class DeviceState;

struct TracerOptions {
  runtime::ClientOptions client;
  // Scopes and source lines on nodes and on the HLO made of them.
  bool debug = false;
  // All numbers are parameters, also 0, 1 and -1; all numbers are constants.
  bool no_special_scalars = false;
  bool all_scalars_special = false;
  // Replicas that train together, of which this process runs those of its devices; the others are taken to do the same.
  int64_t replicas = 1;
  // A full step may reuse the buffers of tensors that it overwrites.
  bool donate = true;
  int64_t cache_entries = 2048;
  // On every compilation, say which program known so far is nearest and what differs first.
  bool explain_recompiles = false;
  // Programs that outlive the process, in a folder; an empty name: none.
  runtime::PersistentCacheOptions persistent_cache;
  // File to which every graph that runs is appended, in the form text, dot or hlo; empty: none.
  std::string save_graphs_file;
  std::string save_graphs_format = "text";
  // Modules that `dump hlo` and save_graphs show are those after the passes.
  bool dump_optimized = false;
  // A program with this many parameters takes them as one tuple.
  int64_t parameter_wrapping_threshold = 3200;
  // Steps wait for their execution.
  bool sync_wait = false;
  // Each step says that it is marked.
  bool step_log = false;
  // Keeps a record of every execution.
  bool log_executions = false;
  // What is said of compilations (1 and more) and of executions (2 and more); 0 and less: nothing.
  int debug_level = -1;
  int debug_max_frames = 8;
  // Looks at the metrics after every step and says what is wrong with them.
  bool auto_analysis = false;
  // Pending nodes at which the first warning is due.
  int64_t warn_pending_nodes = 100000;
  runtime::MetricsOptions metrics;
  // File to which the metrics are appended after every step, or STDOUT or STDERR; empty: none.
  std::string metrics_file;
  // Takes analyses and warnings, whole lines; by default they are written to standard error.
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
  // Null when there is none.
  runtime::PersistentCache* persistent_cache() { return persistent_cache_.get(); }

  // A tensor with this value on the current device. The upload takes place at once.
  Tensor FromLiteral(Literal value);
  // Computes what is pending on the device; tensors then hold values (or places for them: execution goes on behind).
  absl::Status MarkStep(DeviceState* device = nullptr, bool wait = false,
                        const std::source_location& location = std::source_location::current());
  // Waits for what runs; the first error of a run, or of recording.
  absl::Status Wait();
  // The first error of recording since the last call of ClearStatus.
  absl::Status status() const;
  void ClearStatus();
  void SetError(absl::Status status);

  // What was found about compilations since the last call, with explain_recompiles.
  std::vector<std::string> TakeExplanations();
  void AddExplanation(std::string text);

  // Records of executions, kept with log_executions and by analyses.
  ExecutionLog& execution_log() { return execution_log_; }
  // Says something to whoever runs the program.
  void Warn(std::string_view text);

  // Bumps the counter of an op's entry.
  void CountOp(Op op) { op_counts_[static_cast<size_t>(op)].fetch_add(1, std::memory_order_relaxed); }
  // The counters of ops and of creations, brought up to date in metrics().
  void PublishCounters();

 private:
  // What is due when a step has been marked: analyses, the metrics file.
  absl::Status AfterStep();

  TracerOptions options_;
  runtime::Metrics metrics_;
  std::unique_ptr<runtime::Client> client_;
  std::unique_ptr<runtime::PersistentCache> persistent_cache_;
  std::vector<std::unique_ptr<DeviceState>> devices_;
  std::unique_ptr<std::atomic<int64_t>[]> op_counts_;
  mutable std::mutex status_mutex_;
  absl::Status status_;
  std::vector<std::string> explanations_;
  ExecutionLog execution_log_;
  AutoAnalysis auto_analysis_;  // under status_mutex_
  std::atomic<int64_t> steps_{0};
};

// The device on which this thread makes tensors that no other tensor's device decides.
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
