// SPDX-License-Identifier: Apache-2.0
#include "tracer/step/tracer.h"

#include <cstdio>
#include <cstring>
#include <utility>

#include "ir/core/str_cat.h"
#include "runtime/observe/profiler.h"
#include "tracer/graph/schema.h"
#include "tracer/observe/save_graphs.h"
#include "tracer/step/device_state.h"
#include "tracer/step/executor.h"
#include "tracer/step/shared_programs.h"

namespace hlokit::lazy {
namespace {

thread_local DeviceState* current_device = nullptr;

}  // namespace

DeviceState* CurrentDevice() { return current_device; }
DeviceGuard::DeviceGuard(DeviceState* device) : previous_(std::exchange(current_device, device)) {}
DeviceGuard::~DeviceGuard() { current_device = previous_; }

namespace {

// Returns the program's current line, for spans of profiles.
std::string CurrentSourceLine() {
  const SourceFrame* const frame = CurrentFrame();
  if (frame != nullptr) return StrCat(frame->file, ":", frame->line);
  if (call_site.location.line() == 0) return std::string();
  const SourceFrame located = FrameOf(call_site.location);
  return StrCat(located.file, ":", located.line);
}

}  // namespace

Tracer::Tracer(const TracerOptions& options)
    : options_(options), metrics_(options.metrics), op_counts_(std::make_unique<std::atomic<int64_t>[]>(kOpCount)) {
  runtime::Profiler::SetSourceProvider(&CurrentSourceLine);
  client_ = std::make_unique<runtime::Client>(options_.client, &metrics_);
  if (!options_.persistent_cache.location.empty()) {
    persistent_cache_ = std::make_unique<runtime::PersistentCache>(options_.persistent_cache, &metrics_);
  }
  shared_programs_ = std::make_unique<SharedPrograms>(static_cast<size_t>(options_.cache_entries));
  for (const std::unique_ptr<runtime::Device>& device : client_->devices()) {
    devices_.push_back(std::make_unique<DeviceState>(this, device.get()));
  }
  statuses_.resize(devices_.size());
  host_rendezvous_ = std::make_unique<HostRendezvous>(devices_.size(), options_.client.collective_timeout_seconds,
                                                      options_.client.evaluator.cancel);
}

Tracer::~Tracer() {
  for (const std::unique_ptr<DeviceState>& device : devices_) (void)device->device()->Synchronize();
}

Tensor Tracer::FromLiteral(Literal value) {
  DeviceState* state = current_device != nullptr ? current_device : device();
  const runtime::TimedSection timed(&metrics_, "TensorToData");
  DeviceLock lock(state->mutex());
  const Shape shape = state->shapes().Array(value.shape().element_type(), value.shape().dims());
  // Interns the shape on the device, so that the value does not depend on its source's context.
  Literal own = Literal::Zeros(shape);
  if (own.size_bytes() != 0) std::memcpy(own.data(), value.data(), own.size_bytes());
  return state->NewTensor(client_->TransferToDevice(state->device(), std::move(own), state->shared_context()), shape);
}

Tensor Tracer::FromGenerator(Shape shape, std::function<void(Literal*)> fill) {
  DeviceState* state = current_device != nullptr ? current_device : device();
  const runtime::TimedSection timed(&metrics_, "TensorToData");
  DeviceLock lock(state->mutex());
  auto generate = [shape, fill = std::move(fill)] {
    Literal value = Literal::Zeros(shape);
    fill(&value);
    return value;
  };
  return state->NewTensor(
      client_->TransferWhenRead(state->device(), shape, std::move(generate), state->shared_context()), shape);
}

absl::Status Tracer::CheckTime() const {
  const interp::Limits& limits = options_.client.evaluator.limits;
  if (!limits.IsOutOfTime(begin_)) return absl::OkStatus();
  return absl::DeadlineExceededError(limits.OutOfTimeMessage("the program"));
}

absl::Status Tracer::MarkStep(DeviceState* device_state, bool wait, const std::source_location& location) {
  DeviceState& state = device_state != nullptr     ? *device_state
                       : current_device != nullptr ? *current_device
                                                   : *device();
  const ScopedSourceLocation site(location);
  if (absl::Status s = status(); !s.ok()) return s;
  if (absl::Status s = CheckTime(); !s.ok()) return s;
  runtime::TraceMe trace("StepMarker");
  trace.Add("step_num", state.steps);
  if (options_.step_log) Warn("torch_xla.torch_xla::sync");
  {
    DeviceLock lock(state.mutex());
    state.SetCollectiveToken(Tensor());  // not a result of the step
  }
  absl::Status synced = SyncLiveTensors(state, CurrentSyncReason(SyncReason::kStep), wait || options_.sync_wait);
  metrics_.Add("MarkStep");
  {
    DeviceLock lock(state.mutex());
    ++state.steps;
    state.NextStepSeed();
  }
  absl::Status analysed = AfterStep();
  absl::Status scopes = ResetScopes();
  if (!synced.ok()) return synced;
  return analysed.ok() ? scopes : analysed;
}

absl::Status Tracer::AfterStep() {
  const int64_t step = ++steps_;
  if (options_.auto_analysis) {
    std::vector<std::string> lines;
    {
      std::lock_guard<std::mutex> lock(status_mutex_);
      lines = auto_analysis_.AfterStep(metrics_, execution_log_, step);
    }
    for (const std::string& line : lines) Warn(line);
  }
  if (options_.metrics_file.empty()) return absl::OkStatus();
  PublishCounters();
  const std::string text = StrCat("[MetricsData; step=", step, "]\n", metrics_.Report(), "\n");
  if (options_.metrics_file == "STDOUT" || options_.metrics_file == "STDERR") {
    std::fputs(text.c_str(), options_.metrics_file == "STDOUT" ? stdout : stderr);
    return absl::OkStatus();
  }
  return AppendToFile(options_.metrics_file, text);
}

void Tracer::Warn(std::string_view text) {
  if (options_.report) return options_.report(text);
  const std::string line = StrCat(text, "\n");
  std::fputs(line.c_str(), stderr);
}

void Tracer::Leave(DeviceState* device, const std::string& why) {
  client_->Leave(device->device(), why);
  host_rendezvous_->Leave(static_cast<size_t>(device->device()->ordinal()), why);
}

void Tracer::NextSession() {
  client_->NextSession();
  host_rendezvous_->NextSession();
  // That of a collective that failed would pass its error on to the next one.
  for (const std::unique_ptr<DeviceState>& device : devices_) {
    DeviceLock lock(device->mutex());
    device->SetCollectiveToken(Tensor());
  }
}

absl::Status Tracer::Wait(DeviceState* only) {
  absl::Status first = status();
  for (const std::unique_ptr<DeviceState>& device : devices_) {
    if (only != nullptr && only != device.get()) continue;
    absl::Status s = device->device()->Synchronize();
    if (first.ok()) first = std::move(s);
  }
  return first;
}

absl::Span<absl::Status> Tracer::ThreadStatuses() const {
  const absl::Span<absl::Status> all = absl::MakeSpan(statuses_);
  if (current_device == nullptr || current_device->tracer() != this) return all;
  return all.subspan(static_cast<size_t>(current_device->device()->ordinal()), 1);
}

absl::Status Tracer::status() const {
  std::lock_guard<std::mutex> lock(status_mutex_);
  for (const absl::Status& status : ThreadStatuses()) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Tracer::ClearStatus() {
  std::lock_guard<std::mutex> lock(status_mutex_);
  for (absl::Status& status : ThreadStatuses()) status = absl::OkStatus();
}

void Tracer::SetError(absl::Status status) {
  std::lock_guard<std::mutex> lock(status_mutex_);
  absl::Status& first = ThreadStatuses()[0];
  if (first.ok()) first = std::move(status);
}

std::vector<std::string> Tracer::TakeExplanations() {
  std::lock_guard<std::mutex> lock(status_mutex_);
  return std::exchange(explanations_, {});
}

void Tracer::AddExplanation(std::string text) {
  constexpr size_t kMaxExplanations = 1024;  // nobody may ask for them
  std::lock_guard<std::mutex> lock(status_mutex_);
  if (explanations_.size() == kMaxExplanations) explanations_.erase(explanations_.begin());
  explanations_.push_back(std::move(text));
}

void Tracer::PublishCounters() {
  for (size_t i = 0; i < kOpCount; ++i) {
    const int64_t n = op_counts_[i].exchange(0, std::memory_order_relaxed);
    if (n == 0) continue;
    std::string name = SchemaOf(static_cast<Op>(i)).name;
    if (const size_t colons = name.find("::"); colons != std::string::npos) name = name.substr(colons + 2);
    metrics_.Add(StrCat("xla::", name), n);
  }
  int64_t created = 0, live = 0;
  for (const std::unique_ptr<DeviceState>& device : devices_) {
    // Without the mutex: a thread that records on one device must not wait for another device.
    created += device->created_count();
    live += device->live_count();
  }
  metrics_.Set("CreateXlaTensor", created);
  metrics_.Set("DestroyXlaTensor", created - live);
}

}  // namespace hlokit::lazy
