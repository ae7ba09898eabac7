#include "interp/runtime/client.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "interp/runtime/profiler.h"
#include "ir/fingerprint.h"
#include "ir/printer.h"
#include "ir/str_cat.h"
#include "ir/verifier.h"
#include "parser/parser.h"
#include "passes/pipeline.h"

namespace hlokit::runtime {
namespace {

absl::Status FirstError(const DiagnosticSink& sink, std::string_view what) {
  for (const Diagnostic& d : sink.diagnostics()) {
    if (d.severity == Severity::kError) return absl::InternalError(StrCat(what, ": ", d.message));
  }
  return absl::InternalError(what.data());
}

bool HasCollectives(const Module& module) {
  for (const Computation c : module.computations()) {
    for (const Instruction i : c.instructions()) {
      if (HasTrait(i.opcode(), kCollective)) return true;
    }
  }
  return false;
}

}  // namespace

Device::~Device() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void Device::Enqueue(std::function<absl::Status()> work) {
  std::lock_guard<std::mutex> lock(mutex_);
  queue_.push_back(std::move(work));
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  changed_.notify_all();
}

absl::Status Device::Synchronize() {
  const Trace trace("WaitForDevice");
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  return std::exchange(status_, absl::OkStatus());
}

void Device::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::function<absl::Status()> work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    absl::Status status = work();
    work = nullptr;  // what it holds goes before anyone is told
    lock.lock();
    if (status_.ok()) status_ = std::move(status);
    busy_ = false;
    changed_.notify_all();
  }
}

Client::Client(const ClientOptions& options, Metrics* metrics)
    : options_(options),
      metrics_(metrics),
      rendezvous_(static_cast<size_t>(std::max(options.num_devices, 1)), options.collective_patience_seconds) {
  for (int i = 0; i < options_.num_devices; ++i) devices_.push_back(std::make_unique<Device>(i, options_.platform));
}

absl::Status Client::Prepare(Executable* executable, DiagnosticSink* sink) const {
  interp::EvaluatorOptions options = options_.evaluator;
  if (devices_.size() > 1 && HasCollectives(*executable->module_)) {
    executable->collective_ = true;
    executable->digest_ = Fingerprint(*executable->module_);
    options.num_replicas = static_cast<int64_t>(devices_.size());
  }
  executable->evaluator_ = interp::Evaluator::Prepare(*executable->module_, options, sink);
  return executable->evaluator_ == nullptr ? FirstError(*sink, "the program cannot be run") : absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Executable>> Client::Compile(std::unique_ptr<Module> module) {
  TimedSection timed(metrics_, "CompileTime");
  const Trace trace("PjRtComputationClient::Compile");
  metrics_->Add("CreateCompileHandles");
  auto executable = std::make_shared<Executable>();
  executable->module_ = std::move(module);
  DiagnosticSink sink;
  VerifyModule(*executable->module_, VerifierOptions(), &sink);
  if (sink.has_errors()) return FirstError(sink, "the program does not verify");
  absl::StatusOr<Pipeline> pipeline = Pipeline::Parse(options_.pipeline);
  if (!pipeline.ok()) return pipeline.status();
  if (absl::StatusOr<Pipeline::Result> run = pipeline->Run(*executable->module_); !run.ok()) return run.status();
  if (absl::Status status = Prepare(executable.get(), &sink); !status.ok()) return status;
  return executable;
}

std::string Client::Serialize(const Executable& executable) const {
  PrintOptions options;
  options.print_large_constants = true;
  return ToString(executable.module(), options);
}

absl::StatusOr<std::shared_ptr<Executable>> Client::Load(std::string_view program) {
  auto executable = std::make_shared<Executable>();
  absl::StatusOr<std::unique_ptr<Module>> module = ParseModuleText(program);
  if (!module.ok()) return module.status();
  executable->module_ = *std::move(module);
  DiagnosticSink sink;
  if (absl::Status status = Prepare(executable.get(), &sink); !status.ok()) return status;
  return executable;
}

void Client::Execute(Device* device, std::shared_ptr<Executable> executable,
                     std::vector<std::shared_ptr<Buffer>> arguments, std::vector<std::shared_ptr<Buffer>> results) {
  const Trace trace("PjRtComputationClient::ExecuteComputation");
  const std::shared_ptr<Executable> called = executable;
  metrics_->Add(executable->collective_ ? "ExecuteReplicated" : "ExecuteComputation");
  metrics_->Add("CreateDataHandles", static_cast<int64_t>(results.size()));
  device->Enqueue([this, ordinal = static_cast<size_t>(device->ordinal()), executable = std::move(executable),
                   arguments = std::move(arguments), results = std::move(results)]() -> absl::Status {
    std::optional<TimedSection> timed(std::in_place, metrics_,
                                      executable->collective_ ? "ExecuteReplicatedTime" : "ExecuteTime");
    const auto fail = [&](const absl::Status& status) {
      for (const std::shared_ptr<Buffer>& result : results) result->Fail(status);
      return status;
    };
    std::vector<const Literal*> values;
    for (const std::shared_ptr<Buffer>& argument : arguments) {
      if (absl::Status status = argument->Wait(); !status.ok()) {
        if (executable->collective_) rendezvous_.Decline(ordinal, status);
        return fail(status);
      }
      values.push_back(&argument->literal());
    }
    const auto run = [&](absl::Span<const Literal* const> given) -> absl::StatusOr<std::vector<Literal>> {
      DiagnosticSink sink;
      std::lock_guard<std::mutex> lock(executable->mutex_);
      std::optional<std::vector<Literal>> computed = executable->evaluator_->RunPointers(given, &sink);
      if (!computed) return FirstError(sink, "execution failed");
      return *std::move(computed);
    };
    absl::StatusOr<std::vector<Literal>> computed =
        executable->collective_ ? rendezvous_.Meet(ordinal, executable->digest_, run, values) : run(values);
    if (!computed.ok()) return fail(computed.status());
    if (computed->size() != results.size())
      return fail(absl::InternalError("a program with another number of results"));
    timed.reset();  // whoever waits for a result finds the time in the metrics
    for (size_t i = 0; i < results.size(); ++i) {
      results[i]->Fulfil(std::move((*computed)[i]), executable->module_->shared_context());
    }
    return absl::OkStatus();
  });
  Profiler::NoteExecution(called, device->ordinal());
}

std::shared_ptr<Buffer> Client::TransferToDevice(Literal value, std::shared_ptr<Context> context) {
  TimedSection timed(metrics_, "TransferToDeviceTime");
  const Trace trace("PjRtComputationClient::TransferToDevice");
  metrics_->AddSample("OutboundData", MetricKind::kBytes, static_cast<double>(value.size_bytes()));
  metrics_->Add("CreateDataHandles");
  return std::make_shared<Buffer>(std::move(value), std::move(context));
}

absl::StatusOr<Literal> Client::TransferFromDevice(const Buffer& buffer) {
  TimedSection timed(metrics_, "TransferFromDeviceTime");
  const Trace trace("PjRtComputationClient::TransferFromDevice");
  {
    const Trace wait("WaitForDevice");
    if (absl::Status status = buffer.Wait(); !status.ok()) return status;
  }
  metrics_->AddSample("InboundData", MetricKind::kBytes, static_cast<double>(buffer.literal().size_bytes()));
  return buffer.literal();
}

}  // namespace hlokit::runtime
