// SPDX-License-Identifier: Apache-2.0
#include "runtime/client/client.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <shared_mutex>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "interp/processes/world.h"
#include "interp/program/program_passes.h"
#include "ir/core/saturating.h"
#include "ir/core/str_cat.h"
#include "ir/digest/fingerprint.h"
#include "ir/sharding/unpartitioned.h"
#include "ir/text/printer.h"
#include "ir/verify/verifier.h"
#include "parser/formats/parser.h"
#include "runtime/client/first_error.h"
#include "runtime/client/program_signature.h"
#include "runtime/observe/profiler.h"

namespace hlokit::runtime {
namespace {

bool HasInstruction(const Module& module, bool (*is)(Instruction)) {
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (is(i)) return true;
    }
  }
  return false;
}

bool HasCollectives(const Module& module) {
  return HasInstruction(module, [](Instruction i) { return HasTrait(i.opcode(), kCollective); });
}

bool ReadsDeviceIds(const Module& module) {
  return HasInstruction(module, [](Instruction i) { return HasTrait(i.opcode(), kDeviceId); });
}

// Returns a pointer that owns nothing.
std::shared_ptr<interp::World> Borrowed(interp::World* world) {
  return std::shared_ptr<interp::World>(std::shared_ptr<interp::World>(), world);
}

}  // namespace

Client::Client(const ClientOptions& options, Metrics* metrics)
    : options_(options),
      metrics_(metrics),
      rendezvous_(static_cast<size_t>(std::max(options.num_devices, 1)), options.collective_timeout_seconds,
                  options.evaluator.cancel, Borrowed(options.evaluator.world)) {
  for (int i = 0; i < options_.num_devices; ++i) devices_.push_back(std::make_unique<Device>(i, options_.platform));
  if (options_.defer_executions)
    deferred_ = std::make_unique<DeferredExecutions>(/*selective=*/options_.num_devices == 1);
}

std::shared_ptr<Rendezvous> Client::RendezvousOf(const DeviceAssignment& assignment, bool own) {
  const std::vector<int>& devices = assignment.devices;
  const auto create = [&] {
    const auto here = std::count_if(devices.begin(), devices.end(), [](int d) { return d >= 0; });
    return std::make_shared<Rendezvous>(static_cast<size_t>(here), options_.collective_timeout_seconds,
                                        options_.evaluator.cancel, assignment.world);
  };
  if (own) return create();
  std::lock_guard<std::mutex> lock(rendezvous_mutex_);
  std::shared_ptr<Rendezvous>& found = rendezvous_of_[{devices, assignment.world.get()}];
  if (found == nullptr) found = create();
  return found;
}

interp::CompileOptions ClientOptions::compile_options() const {
  interp::CompileOptions compile;
  compile.engine = engine;
  compile.verification = interp::Verification::kVerify;
  compile.partition = false;
  compile.passes = PipelineText();
  return compile;
}

absl::Status Client::Optimize(Module& module) const {
  return interp::RunPasses(options_.PipelineText(), nullptr, &module);
}

absl::StatusOr<std::shared_ptr<Executable>> Client::Compile(std::unique_ptr<Module> module,
                                                            std::optional<DeviceAssignment> assignment,
                                                            std::shared_ptr<ExecutableHostIo> host_io) {
  TimedSection timed(metrics_, "CompileTime");
  const TraceMe trace("PjRtComputationClient::Compile");
  metrics_->Add("CreateCompileHandles");
  auto executable = std::make_shared<Executable>();
  executable->assignment_ = std::move(assignment);
  if (executable->assignment_ && executable->assignment_->devices.size() > 1) {
    executable->rendezvous_ = RendezvousOf(*executable->assignment_, /*own=*/host_io != nullptr);
  }
  if (options_.keep_lowered) executable->set_lowered(std::make_shared<const Module>(module->Clone()));
  const int64_t begun = ReadThreadCounters().cpu_ns;
  executable->options_ = options_.evaluator;
  executable->compile_ = options_.compile_options();
  // A whole program with shardings is that of a virtual device: it runs as one program for each partition, on parts of
  // the arguments.
  if (!executable->assignment_ && !options_.defer_executions && AwaitsPartitioning(*module)) {
    executable->compile_.partition = true;
    executable->options_.num_partitions = module->header().num_partitions;
  }
  // The devices are those of the program, and limits are those of a run.
  interp::EvaluatorOptions lowering;
  lowering.num_replicas = module->header().replica_count;
  lowering.num_partitions = module->header().num_partitions;
  DiagnosticSink sink;
  absl::StatusOr<interp::LoweredProgram> lowered =
      interp::Lower(std::move(module), executable->compile_, lowering, &sink);
  if (!lowered.ok()) return lowered.status();
  executable->pending_ = *std::move(lowered);
  executable->on_prepared_ = options_.on_prepared;
  if (host_io != nullptr) executable->options_.host_io = host_io.get();
  executable->host_io_ = std::move(host_io);
  executable->devices_ = devices_.size();
  // A program that is not needed may be larger than memory.
  if (!options_.defer_executions) {
    if (absl::Status s = executable->Prepare(); !s.ok()) return s;
  }
  executable->compile_seconds_ = static_cast<double>(ReadThreadCounters().cpu_ns - begun) * 1e-9;
  Profiler::RecordCompilation(executable);
  return executable;
}

std::string Client::Serialize(const Executable& executable) const {
  PrintOptions options = PrintOptions::Lossless();
  options.print_metadata = false;  // no reader when the program runs
  options.print_stack_frames = false;
  options.print_operand_index_annotation_interval_set = false;
  return ToString(executable.module(), options);
}

std::shared_ptr<Executable> Client::DeserializeExecutable(SerializedExecutable program) const {
  auto executable = std::make_shared<Executable>();
  executable->options_ = options_.evaluator;
  executable->compile_ = options_.compile_options();
  executable->on_prepared_ = options_.on_prepared;
  executable->stored_ = std::move(program);
  executable->devices_ = devices_.size();
  return executable;
}

absl::StatusOr<std::shared_ptr<Executable>> Client::LoadExecutable(std::string_view program,
                                                                   absl::Span<const Shape> parameters,
                                                                   absl::Span<const Shape> results) const {
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(program);
  if (!module.ok()) return module.status();
  DiagnosticSink sink;
  VerifyModule(**module, VerifierOptions(), &sink);
  if (sink.has_errors()) return FirstError(sink, "invalid program", /*is_invalid=*/true);
  if (absl::Status status = CheckSignature(**module, parameters, results); !status.ok()) return status;
  std::shared_ptr<Executable> executable = DeserializeExecutable(SerializedExecutable());
  executable->pending_ = interp::LoweredProgram::Of(*std::move(module));
  return executable;
}

void Executable::set_lowered(std::shared_ptr<const Module> lowered) {
  lowered_collective_ = lowered != nullptr && HasCollectives(*lowered);
  lowered_ = std::move(lowered);
}

absl::Status Executable::Prepare() {
  // Without a lock, which runs hold: one that may overlap another must not wait for it to learn that it may begin.
  if (prepared_.load(std::memory_order_acquire) && host_io_ != nullptr && host_io_->MayOverlap()) return status_;
  const std::lock_guard<std::mutex> lock(mutex_);
  absl::Status status = PrepareLocked();
  prepared_.store(true, std::memory_order_release);
  return status;
}

absl::Status Executable::PrepareLocked() {
  if (program_ != nullptr || !status_.ok()) return status_;
  if (pending_.module == nullptr) {
    absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(stored_.text());
    if (!module.ok()) return status_ = module.status();
    pending_ = interp::LoweredProgram::Of(*std::move(module));
    stored_ = SerializedExecutable();
  }
  const Module& program = *pending_.module;
  const size_t processes = options_.world == nullptr ? 1 : static_cast<size_t>(options_.world->size());
  if (assignment_) {
    options_.world = nullptr;
    if (assignment_->devices.size() > 1 && (HasCollectives(program) || ReadsDeviceIds(program))) {
      collective_ = true;
      digest_ = Fingerprint(program);
      options_.num_replicas = assignment_->num_replicas;
      options_.num_partitions = assignment_->num_partitions;
      options_.world = assignment_->world.get();
      if (options_.world != nullptr) number_ = options_.world->ProgramOf(program);
    }
  } else if (devices_ * processes == 1 || !HasCollectives(program)) {
    options_.world = nullptr;
  } else {
    collective_ = true;
    digest_ = Fingerprint(program);
    options_.num_replicas = static_cast<int64_t>(devices_ * processes);
    if (options_.world != nullptr) number_ = options_.world->ProgramOf(program);
  }
  DiagnosticSink sink;
  program_ = interp::Compile(std::move(pending_), compile_, options_, &sink);
  if (program_ == nullptr) status_ = FirstError(sink, "cannot run the program");
  if (program_ != nullptr && on_prepared_) on_prepared_(program_->module(), program_->engine());
  return status_;
}

absl::StatusOr<std::unique_ptr<interp::Executable>> Executable::TakeSpare() {
  {
    std::lock_guard<std::mutex> lock(spares_mutex_);
    if (!spares_.empty()) {
      std::unique_ptr<interp::Executable> spare = std::move(spares_.back());
      spares_.pop_back();
      return spare;
    }
  }
  std::shared_lock<std::shared_mutex> lock;
  if (std::shared_mutex* const mutex = host_io_->compile_mutex(); mutex != nullptr) {
    lock = std::shared_lock<std::shared_mutex>(*mutex);
  }
  DiagnosticSink sink;
  std::unique_ptr<interp::Executable> spare =
      interp::Compile(interp::LoweredProgram::Of(program_->module()), compile_, options_, &sink);
  if (spare == nullptr) return FirstError(sink, "cannot run the program");
  return spare;
}

void Executable::KeepSpare(std::unique_ptr<interp::Executable> spare) {
  if (spare == nullptr) return;
  std::lock_guard<std::mutex> lock(spares_mutex_);
  spares_.push_back(std::move(spare));
}

absl::StatusOr<std::vector<Literal>> Executable::Run(absl::Span<const Literal* const> arguments,
                                                     interp::DonatedArguments* donation, size_t ordinal) {
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  const bool overlaps = !collective_ && host_io_ != nullptr && host_io_->MayOverlap() && !lock.try_lock();
  std::unique_ptr<interp::Executable> spare;
  if (overlaps) {
    absl::StatusOr<std::unique_ptr<interp::Executable>> taken = TakeSpare();
    if (!taken.ok()) return taken.status();
    spare = *std::move(taken);
  } else if (!lock.owns_lock()) {
    lock.lock();
  }
  if (host_io_ != nullptr) {
    host_io_->BeginRun(collective_ ? std::nullopt : std::optional<size_t>(PositionOf(ordinal)));
  }
  DiagnosticSink sink;
  const auto start = std::chrono::steady_clock::now();
  std::optional<std::vector<Literal>> computed;
  try {
    interp::Executable& program = spare != nullptr ? *spare : *program_;
    if (program.division() == nullptr) {
      computed = program.engine().RunPointers(arguments, &sink, donation);
    } else {
      std::vector<Literal> whole;
      whole.reserve(arguments.size());
      for (const Literal* const argument : arguments) whole.push_back(*argument);
      computed = program.Run(whole, &sink);
    }
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("execution failed: out of memory");
  }
  RecordRunTime(std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count());
  KeepSpare(std::move(spare));
  if (!computed) return FirstError(sink, "execution failed");
  return *std::move(computed);
}

// Remembers a long run for a while: programs with loops take what their arguments say.
void Executable::RecordRunTime(int64_t ns) {
  constexpr int64_t kMemory = 8;
  const int64_t before = expected_ns_.load(std::memory_order_relaxed);
  const bool first = before == std::numeric_limits<int64_t>::max();
  expected_ns_.store(first ? ns : std::max(ns, before - before / kMemory), std::memory_order_release);
}

absl::StatusOr<std::shared_ptr<CombinedProgram>> Executable::Combine(absl::Span<const Module* const> programs) const {
  if (options_.world != nullptr || host_io_ != nullptr) {
    return absl::FailedPreconditionError("devices entered a collective with different programs");
  }
  return CombinedProgram::Create(programs, compile_.engine, options_);
}

std::pair<Rendezvous*, size_t> Executable::RendezvousFor(size_t ordinal, Rendezvous* all) const {
  if (rendezvous_ == nullptr) return {all, ordinal};
  const std::vector<int>& devices = assignment_->devices;
  const auto at = std::find(devices.begin(), devices.end(), static_cast<int>(ordinal));
  const auto before = std::count_if(devices.begin(), at, [](int d) { return d >= 0; });
  return {rendezvous_.get(), static_cast<size_t>(before)};
}

size_t Executable::PositionOf(size_t ordinal) const {
  if (!assignment_ || assignment_->devices.empty()) return ordinal;
  const std::vector<int>& devices = assignment_->devices;
  return static_cast<size_t>(std::find(devices.begin(), devices.end(), static_cast<int>(ordinal)) - devices.begin());
}

namespace {

// The arguments of one execution: used and donated buffers.
class Arguments {
 public:
  // Begins the uses and donations. An error names the first invalid argument, in PJRT's words.
  absl::Status Begin(std::vector<std::shared_ptr<DeviceBuffer>> buffers, absl::Span<const int64_t> donated,
                     int replica) {
    buffers_ = std::move(buffers);
    given_.resize(buffers_.size());
    absl::flat_hash_set<const DeviceBuffer*> consumed;
    for (int64_t i : donated) {
      DeviceBuffer* const buffer = buffers_[static_cast<size_t>(i)].get();
      if (!consumed.insert(buffer).second) {
        return absl::InvalidArgumentError(
            StrCat("Attempt to donate the same buffer twice in Execute() (second use: "
                   "flattened argument ",
                   i, ", replica ", replica, ")."));
      }
      given_[static_cast<size_t>(i)] = true;
    }
    for (; begun_ < buffers_.size(); ++begun_) {
      DeviceBuffer& buffer = *buffers_[begun_];
      if (!given_[begun_] && consumed.contains(&buffer)) {
        return absl::InvalidArgumentError(
            StrCat("Attempt to use a buffer that was previously donated in the same call "
                   "to Execute() (second use: flattened argument ",
                   begun_, ", replica ", replica, ")."));
      }
      if (given_[begun_] ? !buffer.Donate() : !buffer.BeginUse()) {
        return absl::InvalidArgumentError(StrCat("Invalid buffer passed to Execute() as argument ", begun_,
                                                 " to replica ", replica, ": ",
                                                 std::string(DeviceBuffer::DeletedError().message())));
      }
    }
    return absl::OkStatus();
  }
  Arguments() = default;
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;
  ~Arguments() {
    for (size_t i = 0; i < begun_; ++i) {
      if (!given_[i]) buffers_[i]->EndUse();
    }
  }

  // Waits for all values. Also waits for the end of earlier uses of donated buffers unless the program runs `together`
  // with other devices, which may hold those uses while they wait for this one; the value is then read in place.
  absl::Status Wait(bool together) {
    taken_.resize(buffers_.size());
    contexts_.resize(buffers_.size());
    for (size_t i = 0; i < buffers_.size(); ++i) {
      DeviceBuffer& buffer = *buffers_[i];
      bool taken = given_[i];
      absl::Status status;
      if (!given_[i]) {
        status = buffer.WaitInUse();
      } else if (!together) {
        status = buffer.Take(&taken_[i], &contexts_[i]);
      } else {
        const absl::StatusOr<bool> unused = buffer.TryTake(&taken_[i], &contexts_[i]);
        status = unused.status();
        taken = unused.value_or(false);
      }
      if (!status.ok()) return status;
      values_.push_back(taken ? &taken_[i] : &buffer.literal());
      donation.donated.push_back(taken ? &taken_[i] : nullptr);
    }
    return absl::OkStatus();
  }
  // Returns true if Wait will not wait.
  bool IsReady() const {
    for (size_t i = 0; i < buffers_.size(); ++i) {
      if (given_[i] ? !buffers_[i]->IsReadyUnused() : !buffers_[i]->IsReady()) return false;
    }
    return true;
  }
  absl::Span<const std::shared_ptr<DeviceBuffer>> buffers() const { return buffers_; }
  const std::vector<const Literal*>& values() const { return values_; }
  // Returns the context of result `r` if it reuses the bytes of an argument, else null.
  std::shared_ptr<Context> ContextOf(size_t r) const {
    const int64_t from = r < donation.aliased_argument.size() ? donation.aliased_argument[r] : -1;
    return from < 0 ? nullptr : contexts_[static_cast<size_t>(from)];
  }
  interp::DonatedArguments donation;

 private:
  std::vector<std::shared_ptr<DeviceBuffer>> buffers_;
  std::vector<bool> given_;
  size_t begun_ = 0;
  std::vector<Literal> taken_;  // donated values
  std::vector<std::shared_ptr<Context>> contexts_;
  std::vector<const Literal*> values_;
};

// The results of an execution, for which others wait.
struct PendingResults {
  std::vector<std::shared_ptr<DeviceBuffer>> buffers;
  std::function<void(const absl::Status&)> done;  // may be null

  absl::Status Fail(const absl::Status& status) const {
    for (const std::shared_ptr<DeviceBuffer>& buffer : buffers) buffer->Fail(status);
    if (done != nullptr) done(status);
    return status;
  }
  absl::Status Set(Rendezvous::Results computed, const Arguments& arguments) const {
    for (size_t i = 0; i < buffers.size(); ++i) {
      std::shared_ptr<Context> context = arguments.ContextOf(i);
      if (context == nullptr) context = computed.context;
      buffers[i]->SetValue(std::move(computed.values[i]), std::move(context));
    }
    if (done != nullptr) done(absl::OkStatus());
    return absl::OkStatus();
  }
};

// No memory or no thread.
absl::Status ExhaustedError(const std::exception& e) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&e) != nullptr;
  return absl::ResourceExhaustedError(StrCat("execution failed: ", memory ? "out of memory" : e.what()));
}

}  // namespace

absl::Status Client::GenerateValues(absl::Span<const std::shared_ptr<DeviceBuffer>> arguments) const {
  int64_t bytes = 0;
  for (const std::shared_ptr<DeviceBuffer>& argument : arguments) {
    bytes = SaturatingAdd(bytes, argument->ungenerated_bytes());
  }
  if (bytes == 0) return absl::OkStatus();
  if (const interp::Limits& limits = options_.evaluator.limits; bytes > limits.max_bytes) {
    return absl::ResourceExhaustedError(
        StrCat("out of memory: the arguments of the program take ", bytes, " bytes; ", limits.BytesText()));
  }
  for (const std::shared_ptr<DeviceBuffer>& argument : arguments) argument->Generate();
  return absl::OkStatus();
}

void Client::Execute(Device* device, std::shared_ptr<Executable> executable,
                     std::vector<std::shared_ptr<DeviceBuffer>> arguments,
                     std::vector<std::shared_ptr<DeviceBuffer>> results, absl::Span<const int64_t> donated,
                     std::function<void(const absl::Status&)> done, ExecuteThread thread) {
  const TraceMe trace("PjRtComputationClient::ExecuteComputation");
  const std::shared_ptr<Executable> called = executable;
  ++host_work.calls;
  host_work.buffers += static_cast<uint32_t>(arguments.size() + results.size());
  metrics_->Add("CreateDataHandles", static_cast<int64_t>(results.size()));
  auto taken = std::make_shared<Arguments>();
  std::optional<DeferredExecutions::PendingExecution> held;
  if (deferred_ != nullptr) held.emplace(arguments, donated, results);
  absl::Status begun = deferred_ != nullptr ? absl::OkStatus() : GenerateValues(arguments);
  if (begun.ok()) begun = taken->Begin(std::move(arguments), donated, device->ordinal());
  const bool here = thread == ExecuteThread::kCallerIfShort && deferred_ == nullptr && begun.ok() &&
                    executable->IsShort() && taken->IsReady();
  auto work = [this, ordinal = static_cast<size_t>(device->ordinal()), executable = std::move(executable),
               arguments = std::move(taken), results = PendingResults{std::move(results), std::move(done)},
               begun = std::move(begun)]() -> absl::Status {
    std::optional<TimedSection> timed;
    Rendezvous* rendezvous = nullptr;
    size_t position = 0;
    bool arrived = false;  // the round has what becomes of this device, whatever goes wrong once it has collectives
    const auto fail_together = [&](const absl::Status& status) {
      if (executable->collective_ && !arrived) {
        std::tie(rendezvous, position) = executable->RendezvousFor(ordinal, &rendezvous_);
        arrived = true;
        rendezvous->Abort(position, status);
      }
      return results.Fail(status);
    };
    const auto execute = [&]() -> absl::Status {
      if (absl::Status status = executable->Prepare(); !status.ok()) return fail_together(status);
      std::tie(rendezvous, position) = executable->RendezvousFor(ordinal, &rendezvous_);
      metrics_->Add(executable->collective_ ? "ExecuteReplicated" : "ExecuteComputation");
      timed.emplace(metrics_, executable->collective_ ? "ExecuteReplicatedTime" : "ExecuteTime");
      {
        const TimedSection unwrapping(metrics_, "UnwrapXlaData");
        absl::Status status = begun;
        if (deferred_ != nullptr && status.ok()) status = GenerateValues(arguments->buffers());
        if (status.ok()) status = arguments->Wait(executable->collective_);
        if (!status.ok()) return fail_together(status);
      }
      const auto run = [&](absl::Span<const Literal* const> given, interp::DonatedArguments* donation) {
        return executable->Run(given, donation, ordinal);
      };
      Rendezvous::Results computed;
      if (executable->collective_) {
        const Rendezvous::Program program = {
            executable->digest_, &executable->module(), run,
            [&](absl::Span<const Module* const> programs) { return executable->Combine(programs); },
            executable->number_};
        arrived = true;
        absl::StatusOr<Rendezvous::Results> values =
            rendezvous->ArriveAndWait(position, program, arguments->values(), &arguments->donation);
        if (!values.ok()) return results.Fail(values.status());
        computed = *std::move(values);
      } else {
        absl::StatusOr<std::vector<Literal>> values = run(arguments->values(), &arguments->donation);
        if (!values.ok()) return results.Fail(values.status());
        computed = {*std::move(values), executable->module().shared_context()};
      }
      if (computed.values.size() != results.buffers.size()) {
        return results.Fail(absl::InternalError("unexpected number of results"));
      }
      timed.reset();  // records the time before a reader of a result can see the metrics
      return results.Set(std::move(computed), *arguments);
    };
    try {
      return execute();
    } catch (const std::exception& e) {
      return fail_together(ExhaustedError(e));  // whoever waits for the results, or for this device, learns of it
    }
  };
  if (!held) {
    std::function<absl::Status()> queued = std::move(work);
    if (!here || !device->TryRunHere(queued)) device->Enqueue(std::move(queued));
  } else {
    held->start = [device, work = std::move(work)]() mutable { device->Enqueue(std::move(work)); };
    deferred_->Defer(*std::move(held));
  }
  const bool together = devices_.size() > 1 && (called->lowered_collective_ || called->collective_);
  Profiler::RecordExecution(called, device->ordinal(), together);
}

void Client::StartDeferred() {
  if (deferred_ != nullptr) deferred_->StartAll();
}

void Client::RunAfterPrograms(Device* device, std::function<void()> work) {
  auto start = [device, work = std::move(work)] {
    const auto task = [work] { return work(), absl::OkStatus(); };
    try {
      device->Enqueue(task);
    } catch (const std::system_error&) {
      (void)task();  // a device without a thread has no programs to wait for
    }
  };
  if (deferred_ == nullptr) return start();
  DeferredExecutions::PendingExecution after({}, {}, {});
  after.start = std::move(start);
  deferred_->Defer(std::move(after));
}

void Client::Leave(Device* device, std::string why) {
  const auto ordinal = static_cast<size_t>(device->ordinal());
  RunAfterPrograms(device, [this, ordinal, why = std::move(why)] { rendezvous_.Leave(ordinal, why); });
}

void Client::NextSession() {
  for (const std::unique_ptr<Device>& device : devices_) {
    const auto ordinal = static_cast<size_t>(device->ordinal());
    RunAfterPrograms(device.get(), [this, ordinal] { rendezvous_.NextSession(ordinal); });
  }
}

std::shared_ptr<DeviceBuffer> Client::TransferToDevice(Device* device, Literal value,
                                                       std::shared_ptr<Context> context) {
  TimedSection timed(metrics_, "TransferToDeviceTime");
  const TraceMe trace("PjRtComputationClient::TransferToDevice");
  metrics_->AddSample("OutboundData", MetricKind::kBytes, static_cast<double>(value.size_bytes()));
  metrics_->Add("CreateDataHandles");
  ++host_work.transfers;
  host_work.sent_bytes += value.size_bytes();
  return device->CreateBuffer(std::move(value), std::move(context));
}

std::shared_ptr<DeviceBuffer> Client::TransferWhenRead(Device* device, Shape shape, std::function<Literal()> generate,
                                                       std::shared_ptr<Context> context) {
  metrics_->Add("CreateDataHandles");
  auto transfer = [this, shape, generate = std::move(generate)]() -> absl::StatusOr<Literal> {
    TimedSection timed(metrics_, "TransferToDeviceTime");
    // The reader's thread makes a value that the program has had since its set-up.
    const TraceMe tool(kToolSpan);
    metrics_->AddSample("OutboundData", MetricKind::kBytes, static_cast<double>(ByteSize(shape)));
    return generate();
  };
  return device->CreateBuffer({ByteSize(shape), std::move(transfer)}, std::move(context));
}

absl::StatusOr<Literal> Client::TransferFromDevice(const BufferUse& use) {
  TimedSection timed(metrics_, "TransferFromDeviceTime");
  const TraceMe trace("PjRtComputationClient::TransferFromDevice");
  absl::StatusOr<Literal> value = ReadBuffer(use);
  if (value.ok()) {
    ++host_work.fetches;
    host_work.fetched_bytes += value->size_bytes();
    metrics_->AddSample("InboundData", MetricKind::kBytes, static_cast<double>(value->size_bytes()));
  }
  return value;
}

absl::StatusOr<Literal> Client::ReadBuffer(const BufferUse& use) {
  {
    const TraceMe wait("WaitForDevice");
    if (use.get() == nullptr) return DeviceBuffer::DeletedError();
    if (absl::Status status = use.get()->WaitInUse(); !status.ok()) return status;
  }
  return use.get()->literal();
}

}  // namespace hlokit::runtime
