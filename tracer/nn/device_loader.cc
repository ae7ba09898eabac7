// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/device_loader.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "io/metrics/metrics.h"
#include "ir/core/str_cat.h"
#include "runtime/observe/profiler.h"
#include "tracer/graph/scope.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::nn {

DeviceLoader::DeviceLoader(Tracer* tracer, DeviceState* device, Source source, const DeviceLoaderOptions& options)
    : tracer_(tracer),
      device_(device),
      source_(std::move(source)),
      options_(options),
      start_flow_(runtime::TraceMe::NewFlow()),
      end_(options.batches) {
  {
    runtime::TraceMe start("StartLoader");
    start.Produces(start_flow_);
  }
  bool started = true;
  for (int i = 0; i < std::max(options_.workers, 1); ++i)
    started = started && threads_.Start([this, i] { Guarded([&] { Load(i); }); });
  for (int i = 0; i < std::max(options_.transfer_threads, 1); ++i) {
    started = started && threads_.Start([this] { Guarded([&] { Transfer(); }); });
  }
  if (started) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  FailLocked(absl::ResourceExhaustedError("cannot start the threads of a data loader"));
}

void DeviceLoader::FailLocked(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
  stop_ = true;
  changed_.notify_all();
}

void DeviceLoader::Guarded(absl::FunctionRef<void()> loop) {
  try {
    loop();
  } catch (const std::exception& e) {
    const std::lock_guard<std::mutex> lock(mutex_);
    FailLocked(absl::ResourceExhaustedError(StrCat("data loader: ", e.what())));
  }
}

DeviceLoader::~DeviceLoader() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
}

int64_t DeviceLoader::FlowOf(int64_t number, BatchPoint point) const {
  return start_flow_ << 40 | number << 2 | static_cast<int64_t>(point);
}

std::string DeviceLoader::ThreadName(std::string_view name) const {
  const int ordinal = device_->device()->ordinal();
  return ordinal == 0 ? std::string(name) : StrCat("TPU:", ordinal, " ", name);
}

void DeviceLoader::Load(int worker) {
  runtime::Profiler::SetThreadName(ThreadName(StrCat("loader.", worker)));
  const int64_t ahead = static_cast<int64_t>(std::max<size_t>(options_.loader_prefetch, 1));
  const bool waits = !tracer_->client().options().defer_executions;
  std::unique_lock<std::mutex> lock(mutex_);
  for (int64_t number = worker;; number += std::max(options_.workers, 1)) {
    changed_.wait(lock, [&] { return stop_ || number >= end_ || number < next_given_ + ahead; });
    if (stop_ || number >= end_) return;
    lock.unlock();
    absl::StatusOr<std::optional<std::vector<Literal>>> batch = std::optional<std::vector<Literal>>();
    {
      runtime::TraceMe span("cpu_loader.next");
      span.Consumes(number < ahead ? start_flow_ : FlowOf(number - ahead, BatchPoint::kTaken));
      span.Produces(FlowOf(number, BatchPoint::kMade));
      span.Add("prefetch", ahead);
      if (options_.batch_cost.count() > 0) span.SetCost(options_.batch_cost.count());
      const runtime::TimedSection timed(&tracer_->metrics(), "LoaderBatchTime");
      batch = source_(number);
      lock.lock();
      if (batch.ok() && *batch && waits) changed_.wait_for(lock, options_.batch_cost, [&] { return stop_; });
    }
    if (!batch.ok()) {
      made_.emplace(number, batch.status());
      end_ = std::min(end_, number + 1);
    } else if (*batch) {
      made_.emplace(number, **std::move(batch));
    } else {
      end_ = std::min(end_, number);
    }
    changed_.notify_all();
  }
}

void DeviceLoader::Transfer() {
  runtime::Profiler::SetThreadName(ThreadName("transfer"));
  const int64_t ahead = static_cast<int64_t>(std::max<size_t>(options_.device_prefetch, 1));
  const DeviceGuard guard(device_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    // Uploads start in order and may finish in another.
    changed_.wait(lock, [&] {
      return stop_ || next_upload_ >= end_ || (made_.contains(next_upload_) && next_upload_ < next_given_ + ahead);
    });
    if (stop_ || next_upload_ >= end_) return;
    auto made = made_.extract(next_upload_++);
    changed_.notify_all();
    lock.unlock();
    absl::StatusOr<Tensors> batch = Tensors();
    if (made.mapped().ok()) {
      runtime::TraceMe span("cpu_data_to_xla_device");
      span.Consumes(FlowOf(made.key(), BatchPoint::kMade));
      if (made.key() >= ahead) span.Consumes(FlowOf(made.key() - ahead, BatchPoint::kTaken));
      span.Produces(FlowOf(made.key(), BatchPoint::kSent));
      for (Literal& array : *made.mapped()) batch->push_back(tracer_->FromLiteral(std::move(array)));
    } else {
      batch = made.mapped().status();
    }
    lock.lock();
    uploaded_.emplace(made.key(), std::move(batch));
    changed_.notify_all();
  }
}

absl::StatusOr<std::optional<Tensors>> DeviceLoader::Next(const std::source_location& location) {
  const ScopedSourceLocation site(location);
  std::unique_lock<std::mutex> lock(mutex_);
  const int64_t number = next_given_;
  if (ended_) return std::optional<Tensors>();
  const bool step = number > 0 && number % std::max<int64_t>(options_.batches_per_execution, 1) == 0;
  const auto mark_step = [&] {
    lock.unlock();
    const ScopedSyncReason cause(SyncReason::kLoaderStep);
    absl::Status status = tracer_->MarkStep(device_);
    lock.lock();
    return status;
  };
  if (step) {
    if (absl::Status status = mark_step(); !status.ok()) return status;
  }
  if (number < end_) {
    runtime::TraceMe span("WaitForBatch");
    span.Consumes(FlowOf(number, BatchPoint::kSent));
    span.Produces(FlowOf(number, BatchPoint::kTaken));
    const runtime::TimedSection timed(&tracer_->metrics(), "LoaderWaitTime");
    changed_.wait(lock, [&] { return uploaded_.contains(number) || number >= end_ || !status_.ok(); });
  }
  if (!status_.ok()) {
    ended_ = true;
    return status_;
  }
  const auto it = uploaded_.find(number);
  if (it == uploaded_.end()) {
    ended_ = true;
    if (number > 0 && !step) {
      if (absl::Status status = mark_step(); !status.ok()) return status;
    }
    return std::optional<Tensors>();
  }
  absl::StatusOr<Tensors> batch = std::move(it->second);
  uploaded_.erase(it);
  ++next_given_;
  changed_.notify_all();
  if (!batch.ok()) {
    ended_ = true;
    return batch.status();
  }
  return std::optional<Tensors>(*std::move(batch));
}

}  // namespace hlokit::lazy::nn
