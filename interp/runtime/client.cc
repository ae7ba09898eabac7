#include "interp/runtime/client.h"

#include <optional>
#include <utility>

#include "interp/runtime/profiler.h"
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

Client::Client(const ClientOptions& options, Metrics* metrics) : options_(options), metrics_(metrics) {
  for (int i = 0; i < options_.num_devices; ++i) devices_.push_back(std::make_unique<Device>(i, options_.platform));
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
  executable->evaluator_ = interp::Evaluator::Prepare(*executable->module_, options_.evaluator, &sink);
  if (executable->evaluator_ == nullptr) return FirstError(sink, "the program cannot be run");
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
  executable->evaluator_ = interp::Evaluator::Prepare(*executable->module_, options_.evaluator, &sink);
  if (executable->evaluator_ == nullptr) return FirstError(sink, "the program cannot be run");
  return executable;
}

void Client::Execute(Device* device, std::shared_ptr<Executable> executable,
                     std::vector<std::shared_ptr<Buffer>> arguments, std::vector<std::shared_ptr<Buffer>> results) {
  const Trace trace("PjRtComputationClient::ExecuteComputation");
  const std::shared_ptr<Executable> called = executable;
  metrics_->Add("ExecuteComputation");
  metrics_->Add("CreateDataHandles", static_cast<int64_t>(results.size()));
  device->Enqueue([this, executable = std::move(executable), arguments = std::move(arguments),
                   results = std::move(results)]() -> absl::Status {
    std::optional<TimedSection> timed(std::in_place, metrics_, "ExecuteTime");
    const auto fail = [&](const absl::Status& status) {
      for (const std::shared_ptr<Buffer>& result : results) result->Fail(status);
      return status;
    };
    std::vector<const Literal*> values;
    for (const std::shared_ptr<Buffer>& argument : arguments) {
      if (absl::Status status = argument->Wait(); !status.ok()) return fail(status);
      values.push_back(&argument->literal());
    }
    DiagnosticSink sink;
    std::lock_guard<std::mutex> lock(executable->mutex_);
    std::optional<std::vector<Literal>> computed = executable->evaluator_->RunPointers(values, &sink);
    if (!computed) return fail(FirstError(sink, "execution failed"));
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
