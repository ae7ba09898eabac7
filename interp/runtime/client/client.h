// SPDX-License-Identifier: Apache-2.0
// The client a program talks to: devices with queues, compilation, execution, transfers.
//
// Execution is asynchronous: Execute returns at once with promised buffers, and a device runs what it was given in
// order. An error reaches whoever waits for a buffer, and Device::Synchronize.
#ifndef HLOKIT_INTERP_RUNTIME_CLIENT_CLIENT_H_
#define HLOKIT_INTERP_RUNTIME_CLIENT_CLIENT_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/exact/evaluator.h"
#include "interp/runtime/cache/persistent_cache.h"
#include "interp/runtime/client/block_free_list.h"
#include "interp/runtime/client/deferred_executions.h"
#include "interp/runtime/client/device_buffer.h"
#include "interp/runtime/client/rendezvous.h"
#include "interp/runtime/observe/metrics.h"
#include "ir/digest/digest.h"
#include "ir/graph/module.h"

namespace hlokit::runtime {

struct ClientOptions {
  int num_devices = 1;
  std::string platform = "CPU";
  // Passes that compilation runs, as hlo-opt --passes takes them; empty: none.
  std::string pipeline = "default";
  interp::EvaluatorOptions evaluator;
  // How long a device waits at a collective for the others.
  double collective_timeout_seconds = 60;
  // Programs run when a value that they make is waited for, and only those that it needs; Device::Synchronize does not
  // wait for others.
  bool defer_executions = false;
};

// A compiled program. One that was loaded is made ready by whoever first needs more than the handle, on a device's
// thread in the run of things, so that finding a stored program does not wait for it.
class Executable {
 public:
  // Makes a loaded program ready: to run once, or, with collectives, for all devices together. An error says that it is
  // none of ours.
  absl::Status Prepare();
  // After Prepare was OK, as for any program that Compile made.
  const Module& module() const { return *module_; }
  // Shapes of what Execute takes and gives: parameters, and the elements of the root tuple.
  const std::vector<Shape>& parameter_shapes() const { return evaluator_->argument_shapes(); }
  const std::vector<Shape>& result_shapes() const { return evaluator_->result_shapes(); }
  // Of the last run.
  const interp::RunStatistics& statistics() const { return evaluator_->statistics(); }

 private:
  friend class Client;
  absl::Status PrepareLocked();

  interp::EvaluatorOptions options_;
  SerializedExecutable stored_;  // until it is made ready
  std::unique_ptr<Module> module_;
  std::unique_ptr<interp::Evaluator> evaluator_;
  size_t devices_ = 1;       // of the client
  bool collective_ = false;  // prepared for all of them, which run it together
  Digest digest_;            // of such a program
  absl::Status status_;      // of making it ready
  std::mutex mutex_;         // one run at a time
};

class Device {
 public:
  Device(int ordinal, std::string platform);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const { return ordinal_; }
  std::string name() const { return platform_ + ":" + std::to_string(ordinal_); }
  // A buffer for a value that an execution on this device will make.
  std::shared_ptr<DeviceBuffer> CreatePendingBuffer() const {
    return std::allocate_shared<DeviceBuffer>(FreeListAllocator<DeviceBuffer>(), deallocator_);
  }
  // A buffer that holds a value; `context` owns its shape.
  std::shared_ptr<DeviceBuffer> CreateBuffer(Literal value, std::shared_ptr<Context> context) const {
    return std::make_shared<DeviceBuffer>(std::move(value), std::move(context), deallocator_);
  }
  // Runs `work` after all that was given before.
  void Enqueue(std::function<absl::Status()> work);
  // Waits until the queue is empty; the first error since the last call.
  absl::Status Synchronize();

 private:
  void Loop();

  const int ordinal_;
  const std::string platform_;
  std::shared_ptr<DeferredDeallocator> deallocator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<absl::Status()>> queue_;
  bool busy_ = false;
  bool stop_ = false;
  absl::Status status_;
  std::thread thread_;  // started by the first Enqueue
};

class Client {
 public:
  Client(const ClientOptions& options, Metrics* metrics);

  const ClientOptions& options() const { return options_; }
  absl::Span<const std::unique_ptr<Device>> devices() const { return devices_; }

  // Runs the pipeline over the module, as compilation does.
  absl::Status Optimize(Module& module) const;
  // Verifies and optimizes the module and makes it ready to run.
  absl::StatusOr<std::shared_ptr<Executable>> Compile(std::unique_ptr<Module> module);
  // A compiled program as text, and back. Load takes no time; Executable::Prepare does.
  std::string Serialize(const Executable& executable) const;
  std::shared_ptr<Executable> DeserializeExecutable(SerializedExecutable program) const;
  // `results` are promised buffers, one for each result shape. `donated` are numbers of arguments that the program may
  // take over for its values and results: their buffers are gone from now on, whoever else holds them.
  void Execute(Device* device, std::shared_ptr<Executable> executable,
               std::vector<std::shared_ptr<DeviceBuffer>> arguments, std::vector<std::shared_ptr<DeviceBuffer>> results,
               absl::Span<const int64_t> donated = {});
  // Lets everything run that is held so far.
  void StartDeferred();
  // Takes a value to a device; `context` owns its shape.
  std::shared_ptr<DeviceBuffer> TransferToDevice(Device* device, Literal value, std::shared_ptr<Context> context);
  // A copy of a value; its shape lives as long as the buffer's context.
  absl::StatusOr<Literal> TransferFromDevice(std::shared_ptr<const DeviceBuffer> buffer) {
    return TransferFromDevice(BufferUse(std::move(buffer)));
  }
  absl::StatusOr<Literal> TransferFromDevice(const BufferUse& use);

 private:
  const ClientOptions options_;
  Metrics* metrics_;
  Rendezvous rendezvous_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<DeferredExecutions> deferred_;  // null: none are
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_CLIENT_CLIENT_H_
