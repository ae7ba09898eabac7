// SPDX-License-Identifier: Apache-2.0
// Client of the runtime: devices with queues, compilation, execution, transfers.
//
// Execution is asynchronous: Execute returns pending buffers at once, and a device runs its queue in order. Errors are
// returned to readers of a buffer and by Device::Synchronize.
#ifndef HLOKIT_RUNTIME_CLIENT_CLIENT_H_
#define HLOKIT_RUNTIME_CLIENT_CLIENT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "interp/interface/engine.h"
#include "interp/program/compile.h"
#include "io/cache/persistent_cache.h"
#include "io/metrics/metrics.h"
#include "ir/digest/digest.h"
#include "ir/graph/module.h"
#include "runtime/client/block_free_list.h"
#include "runtime/client/deferred_executions.h"
#include "runtime/client/device_buffer.h"
#include "runtime/client/rendezvous.h"

namespace hlokit::runtime {

struct ClientOptions {
  int num_devices = 1;
  std::string platform = "CPU";
  // Pass pipeline of compilation in the syntax of hlo-opt --passes; empty: none; nullopt: that of the engine.
  std::optional<std::string> pipeline;
  interp::EvaluatorOptions evaluator;
  interp::EngineKind engine = interp::EngineKind::kExact;
  // How long a device waits for the others at a collective.
  double collective_timeout_seconds = 60;
  // Runs a program only once one of its results is needed; Device::Synchronize does not wait for other programs.
  bool defer_executions = false;
  // Keeps each program as it was before the pipeline (Executable::lowered), for compilers of other targets.
  bool keep_lowered = false;
  // Called once for each program that is prepared, on the thread that does it: for reports.
  std::function<void(const Module&, const interp::Engine&)> on_prepared;

  // Returns the pipeline.
  std::string PipelineText() const { return pipeline.value_or(std::string(interp::RowOf(engine).framework_passes)); }
  // Frameworks partition programs before they compile them.
  interp::CompileOptions compile_options() const;
};

// The devices that run a program together, each one partition of one replica.
struct DeviceAssignment {
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  // Ordinals: of partition p of replica r, devices[r * num_partitions + p]. Empty: of one replica and partition, which
  // any device runs. Negative: a device of another process.
  std::vector<int> devices;
  // The processes that have these devices; null if this one has all.
  std::shared_ptr<interp::World> world;
};

// Host side of infeed, outfeed, send and recv of one executable.
class ExecutableHostIo : public interp::HostIo {
 public:
  // Called before each run, one at a time: of one device, at `position` in the assignment, or, if that is not set, of
  // all devices, whose positions Receive and Send get.
  virtual void BeginRun(std::optional<size_t> position) = 0;
  // Returns true if runs of single devices may overlap, since a callback of one may wait for that of another. BeginRun
  // is then called on the thread of each run.
  virtual bool MayOverlap() const { return false; }
  // Held by a thread that compiles the program again, for a run that overlaps others; null: nothing is.
  virtual std::shared_mutex* compile_mutex() const { return nullptr; }
};

// A compiled program. A deserialized one, and one of a client that defers executions, is prepared at its first use
// beyond the handle, on a device's thread: loading a stored program does not block.
class Executable {
 public:
  // Prepares a deserialized program: to run once, or, with collectives, for all devices together. Returns an error if
  // the program is invalid.
  absl::Status Prepare();
  // Requires: Prepare returned OK. Other programs from Compile are prepared.
  const Module& module() const { return program_ != nullptr ? program_->module() : *pending_.module; }
  // Returns the program before the pipeline; null unless the client keeps it. Devices that share a program share it.
  const std::shared_ptr<const Module>& lowered() const { return lowered_; }
  void set_lowered(std::shared_ptr<const Module> lowered);
  // Sets the time that the next run is expected to take, which runs update.
  void set_expected_ns(int64_t ns) { expected_ns_.store(ns, std::memory_order_release); }
  // Seconds of CPU time that compiling took here; 0 for programs that were loaded.
  double compile_seconds() const { return compile_seconds_; }
  // Shapes of the parameters, and of the elements of the root tuple.
  const std::vector<Shape>& parameter_shapes() const { return program_->engine().argument_shapes(); }
  const std::vector<Shape>& result_shapes() const { return program_->engine().result_shapes(); }
  // Returns the statistics of the last run.
  const interp::RunStatistics& statistics() const { return program_->statistics(); }
  // Returns true if runs are expected to take less time than starting another thread's work: earlier ones did, and
  // they do not wait for others.
  bool IsShort() const {
    // A run has set it, after Prepare.
    return expected_ns_.load(std::memory_order_acquire) <= kMaxShortRunNs && !collective_ && host_io_ == nullptr;
  }

 private:
  friend class Client;
  static constexpr int64_t kMaxShortRunNs = 50'000;

  absl::Status PrepareLocked();
  // Runs the program on a device, or, with collectives, on all.
  absl::StatusOr<std::vector<Literal>> Run(absl::Span<const Literal* const> arguments,
                                           interp::DonatedArguments* donation, size_t ordinal);
  // Returns a program for a run that overlaps others, which keeps it for the next one.
  absl::StatusOr<std::unique_ptr<interp::Executable>> TakeSpare();
  void KeepSpare(std::unique_ptr<interp::Executable> spare);
  void RecordRunTime(int64_t ns);
  // Makes one program of those with which the devices of this one entered a collective.
  absl::StatusOr<std::shared_ptr<CombinedProgram>> Combine(absl::Span<const Module* const> programs) const;
  // Returns the rendezvous of the devices of a program with collectives, `all` unless it has an assignment, and the
  // number of the device there. Requires: the device runs the program.
  std::pair<Rendezvous*, size_t> RendezvousFor(size_t ordinal, Rendezvous* all) const;
  // Returns the number of the device among all that run the program.
  size_t PositionOf(size_t ordinal) const;

  interp::EvaluatorOptions options_;
  interp::CompileOptions compile_;
  std::function<void(const Module&, const interp::Engine&)> on_prepared_;
  std::shared_ptr<ExecutableHostIo> host_io_;
  SerializedExecutable stored_;                  // until Prepare
  interp::LoweredProgram pending_;               // until Prepare, if it was not stored
  std::unique_ptr<interp::Executable> program_;  // from Prepare on
  std::shared_ptr<const Module> lowered_;
  bool lowered_collective_ = false;  // `lowered_` has collectives
  double compile_seconds_ = 0;
  size_t devices_ = 1;       // of the client
  bool collective_ = false;  // prepared for several devices, which run it together
  // Set: the devices that run it, and their rendezvous, which all programs with the same devices share but those with
  // transfers from and to the host. Otherwise they are all devices of the client.
  std::optional<DeviceAssignment> assignment_;
  std::shared_ptr<Rendezvous> rendezvous_;
  Digest digest_;        // set if collective_
  uint64_t number_ = 0;  // see interp::World::ProgramOf; of a program of several processes
  absl::Status status_;  // result of Prepare
  std::atomic<bool> prepared_{false};
  std::mutex mutex_;  // serializes runs of program_
  std::mutex spares_mutex_;
  std::vector<std::unique_ptr<interp::Executable>> spares_;  // copies of program_ that do not run
  // Of a run; before the first one, too long.
  std::atomic<int64_t> expected_ns_{std::numeric_limits<int64_t>::max()};
};

class Device {
 public:
  Device(int ordinal, std::string platform);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  int ordinal() const { return ordinal_; }
  std::string name() const { return platform_ + ":" + std::to_string(ordinal_); }
  // Returns a pending buffer for a result of an execution on this device.
  std::shared_ptr<DeviceBuffer> CreatePendingBuffer() const {
    return std::allocate_shared<DeviceBuffer>(FreeListAllocator<DeviceBuffer>(), deallocator_);
  }
  // Returns a buffer with a value; `context` owns its shape.
  std::shared_ptr<DeviceBuffer> CreateBuffer(Literal value, std::shared_ptr<Context> context) const {
    return std::make_shared<DeviceBuffer>(std::move(value), std::move(context), deallocator_);
  }
  // Returns a buffer whose value is generated when it is first read.
  std::shared_ptr<DeviceBuffer> CreateBuffer(DeviceBuffer::Generator generator,
                                             std::shared_ptr<Context> context) const {
    return std::make_shared<DeviceBuffer>(std::move(generator), std::move(context), deallocator_);
  }
  // Runs `work` after all earlier work of the queue, on the device's thread.
  void Enqueue(std::function<absl::Status()> work);
  // Runs `work` on this thread if the queue is empty. Returns false if it is not.
  bool TryRunHere(const std::function<absl::Status()>& work);
  // Waits until the queue is empty. Returns the first error since the last call.
  absl::Status Synchronize();

 private:
  void Loop();

  const int ordinal_;
  const std::string platform_;
  std::shared_ptr<DeferredDeallocator> deallocator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<absl::Status()>> queue_;
  bool busy_ = false;  // work is in progress, on the device's thread or a caller's
  bool stop_ = false;
  int waiting_ = 0;  // in Synchronize
  absl::Status status_;
  std::thread thread_;  // started by the first Enqueue
};

// The thread that runs a program.
enum class ExecuteThread { kDevice, kCallerIfShort };

class Client {
 public:
  Client(const ClientOptions& options, Metrics* metrics);

  const ClientOptions& options() const { return options_; }
  absl::Span<const std::unique_ptr<Device>> devices() const { return devices_; }

  // Runs the compilation pipeline over the module.
  absl::Status Optimize(Module& module) const;
  // Verifies, optimizes and prepares the module: for the devices of the assignment, or, if there is none, for all
  // devices of the client as replicas. `host_io`: of the program's transfers from and to the host, if it has some.
  absl::StatusOr<std::shared_ptr<Executable>> Compile(std::unique_ptr<Module> module,
                                                      std::optional<DeviceAssignment> assignment = std::nullopt,
                                                      std::shared_ptr<ExecutableHostIo> host_io = nullptr);
  // Serialize returns a compiled program as text. DeserializeExecutable returns at once;
  // Executable::Prepare parses.
  std::string Serialize(const Executable& executable) const;
  std::shared_ptr<Executable> DeserializeExecutable(SerializedExecutable program) const;
  // As DeserializeExecutable, of a program that someone else may have written: parses it at once. An error, if it does
  // not verify, or if its parameters and results have other types or dimensions than these.
  absl::StatusOr<std::shared_ptr<Executable>> LoadExecutable(std::string_view program,
                                                             absl::Span<const Shape> parameters,
                                                             absl::Span<const Shape> results) const;
  // Enqueues an execution. `results`: pending buffers, one for each result shape. `donated`: numbers of arguments whose
  // memory the program may reuse; their buffers are deleted for all other users. `done`: called when the
  // results have their values, or the error, on the thread that ran the program: the device's, or with kCallerIfShort
  // the caller's, which runs a short program whose arguments are available before Execute returns, if the device is
  // idle.
  void Execute(Device* device, std::shared_ptr<Executable> executable,
               std::vector<std::shared_ptr<DeviceBuffer>> arguments, std::vector<std::shared_ptr<DeviceBuffer>> results,
               absl::Span<const int64_t> donated = {}, std::function<void(const absl::Status&)> done = nullptr,
               ExecuteThread thread = ExecuteThread::kDevice);
  // Starts all deferred executions.
  void StartDeferred();
  // Declares that the device runs no program after those that it was given, until NextSession: programs with
  // collectives of other devices that wait for it end with an ABORTED error with this text.
  void Leave(Device* device, std::string why);
  // Lets all devices take part in collectives of programs that they are given from now on.
  void NextSession();
  // Transfers a value to a device; `context` owns its shape.
  std::shared_ptr<DeviceBuffer> TransferToDevice(Device* device, Literal value, std::shared_ptr<Context> context);
  // Returns a buffer of `shape`, of `context`, whose value is generated and transferred when something first reads it.
  std::shared_ptr<DeviceBuffer> TransferWhenRead(Device* device, Shape shape, std::function<Literal()> generate,
                                                 std::shared_ptr<Context> context);
  // Returns a copy of a value, whose shape lives as long as the buffer's context.
  absl::StatusOr<Literal> TransferFromDevice(std::shared_ptr<const DeviceBuffer> buffer) {
    return TransferFromDevice(BufferUse(std::move(buffer)));
  }
  absl::StatusOr<Literal> TransferFromDevice(const BufferUse& use);
  // The same without metrics: for values that the program does not read.
  static absl::StatusOr<Literal> ReadBuffer(const BufferUse& use);

 private:
  // Returns the rendezvous of programs with this assignment: threads that each compile a program for themselves have
  // executables of their own, and the devices synchronize in the order in which they are given programs. The last
  // device runs its executable for all; `own`: the program has host I/O, which belongs to one executable, and its
  // rendezvous is not shared.
  std::shared_ptr<Rendezvous> RendezvousOf(const DeviceAssignment& assignment, bool own);
  // Runs `work` on the device's thread after the programs that it was given.
  void RunAfterPrograms(Device* device, std::function<void()> work);
  // Generates the arguments that have no values yet. Returns RESOURCE_EXHAUSTED, and generates none, if they exceed the
  // limit on memory.
  absl::Status GenerateValues(absl::Span<const std::shared_ptr<DeviceBuffer>> arguments) const;

  const ClientOptions options_;
  Metrics* metrics_;
  Rendezvous rendezvous_;
  std::mutex rendezvous_mutex_;
  // By the devices of an assignment, and the processes that have them.
  std::map<std::pair<std::vector<int>, interp::World*>, std::shared_ptr<Rendezvous>> rendezvous_of_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::unique_ptr<DeferredExecutions> deferred_;  // null: executions are not deferred
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_CLIENT_H_
