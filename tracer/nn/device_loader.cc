// SPDX-License-Identifier: Apache-2.0
#include "tracer/nn/device_loader.h"

#include <algorithm>
#include <utility>

#include "tracer/graph/scope.h"
#include "tracer/step/device_state.h"

namespace hlokit::lazy::nn {

DeviceLoader::DeviceLoader(Tracer* tracer, DeviceState* device, Source source, const DeviceLoaderOptions& options)
    : tracer_(tracer), device_(device), source_(std::move(source)), options_(options) {
  threads_.emplace_back([this] { Load(); });
  for (int i = 0; i < std::max(options_.transfer_threads, 1); ++i) threads_.emplace_back([this] { Transfer(); });
}

DeviceLoader::~DeviceLoader() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void DeviceLoader::Load() {
  const size_t ahead = std::max<size_t>(options_.loader_prefetch, 1);
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || made_.size() < ahead; });
      if (stop_) return;
    }
    absl::StatusOr<std::optional<std::vector<Literal>>> batch = source_();
    std::lock_guard<std::mutex> lock(mutex_);
    const bool last = !batch.ok() || !*batch;
    if (!batch.ok()) {
      made_.emplace(next_made_++, batch.status());
    } else if (*batch) {
      made_.emplace(next_made_++, **std::move(batch));
    }
    made_all_ = last;
    changed_.notify_all();
    if (last) return;
  }
}

void DeviceLoader::Transfer() {
  const int64_t ahead = static_cast<int64_t>(std::max<size_t>(options_.device_prefetch, 1));
  const DeviceGuard guard(device_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    // Uploads start in order and may finish in another.
    changed_.wait(lock, [&] {
      return stop_ || (made_all_ && made_.empty()) || (!made_.empty() && next_upload_ < next_given_ + ahead);
    });
    if (stop_ || made_.empty()) return;
    auto made = made_.extract(made_.begin());
    ++next_upload_;
    changed_.notify_all();
    lock.unlock();
    absl::StatusOr<Tensors> batch = Tensors();
    if (made.mapped().ok()) {
      for (Literal& array : *made.mapped()) batch->push_back(tracer_->FromLiteral(std::move(array)));
    } else {
      batch = made.mapped().status();
    }
    lock.lock();
    uploaded_.emplace(made.key(), std::move(batch));
    changed_.notify_all();
  }
}

absl::StatusOr<std::optional<Tensors>> DeviceLoader::Next() {
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
  changed_.wait(lock, [&] { return uploaded_.contains(number) || (made_all_ && number >= next_made_); });
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
