// A tracing session: devices, their pending graphs, steps, caches and metrics. Tensors must not outlive it.
//
//   Tracer tracer;
//   DeviceGuard guard(tracer.device(0));
//   Tensor x = tracer.FromLiteral(...), y = Relu(x) + 1;
//   tracer.MarkStep();
//
// Any number of threads may trace at once.
#ifndef HLOKIT_TRACER_TRACER_H_
#define HLOKIT_TRACER_TRACER_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/runtime/client.h"
#include "interp/runtime/metrics.h"
#include "interp/runtime/persistent_cache.h"
#include "ir/literal.h"
#include "tracer/graph.h"
#include "tracer/tensor.h"
#include "tracer/value.h"

namespace hlokit::lazy {

class DeviceState;

struct TracerOptions {
  runtime::ClientOptions client;
  // Scopes and source lines on nodes and on the HLO made of them.
  bool debug = false;
  // All numbers are parameters, also 0, 1 and -1; all numbers are constants.
  bool no_special_scalars = false;
  bool all_scalars_special = false;
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
  absl::Status MarkStep(DeviceState* device = nullptr, bool wait = false);
  // Waits for what runs; the first error of a run, or of recording.
  absl::Status Wait();
  // The first error of recording since the last call of ClearStatus.
  absl::Status status() const;
  void ClearStatus();
  void SetError(absl::Status status);

  // What was found about compilations since the last call, with explain_recompiles.
  std::vector<std::string> TakeExplanations();
  void AddExplanation(std::string text);

  // Bumps the counter of an op's entry.
  void CountOp(Op op) { op_counts_[static_cast<size_t>(op)].fetch_add(1, std::memory_order_relaxed); }
  // The counters of ops and of creations, brought up to date in metrics().
  void PublishCounters();

 private:
  TracerOptions options_;
  runtime::Metrics metrics_;
  std::unique_ptr<runtime::Client> client_;
  std::unique_ptr<runtime::PersistentCache> persistent_cache_;
  std::vector<std::unique_ptr<DeviceState>> devices_;
  std::unique_ptr<std::atomic<int64_t>[]> op_counts_;
  mutable std::mutex status_mutex_;
  absl::Status status_;
  std::vector<std::string> explanations_;
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

#endif  // HLOKIT_TRACER_TRACER_H_
