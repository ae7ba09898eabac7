// SPDX-License-Identifier: Apache-2.0
#include "runtime/client/deferred_executions.h"

#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace hlokit::runtime {

DeferredExecutions::PendingExecution::PendingExecution(absl::Span<const std::shared_ptr<DeviceBuffer>> arguments,
                                                       absl::Span<const int64_t> given,
                                                       absl::Span<const std::shared_ptr<DeviceBuffer>> results) {
  std::vector<bool> taken(arguments.size());
  for (int64_t i : given) taken[static_cast<size_t>(i)] = true;
  for (size_t i = 0; i < arguments.size(); ++i) (taken[i] ? donated_inputs : inputs).push_back(arguments[i].get());
  for (const std::shared_ptr<DeviceBuffer>& result : results) outputs.push_back(result.get());
}

void DeferredExecutions::Defer(PendingExecution execution) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!deferring_) return execution.start();
  for (DeviceBuffer* result : execution.outputs) result->SetProducer(this);
  executions_.push_back(std::move(execution));
}

// Marks the producer of the buffer, and all executions that must run before it.
void DeferredExecutions::MarkNeeded(const DeviceBuffer& buffer) {
  absl::flat_hash_map<const DeviceBuffer*, size_t> producers;
  absl::flat_hash_map<const DeviceBuffer*, std::vector<size_t>> readers;
  for (size_t i = 0; i < executions_.size(); ++i) {
    for (const DeviceBuffer* b : executions_[i].outputs) producers[b] = i;
    for (const DeviceBuffer* b : executions_[i].inputs) readers[b].push_back(i);
  }
  std::vector<size_t> left;
  const auto need = [&](size_t i) {
    if (std::exchange(executions_[i].needed, true)) return;
    left.push_back(i);
  };
  const auto need_producer = [&](const DeviceBuffer* b) {
    if (const auto it = producers.find(b); it != producers.end()) need(it->second);
  };
  need_producer(&buffer);
  while (!left.empty()) {
    const PendingExecution& e = executions_[left.back()];
    left.pop_back();
    for (const DeviceBuffer* b : e.inputs) need_producer(b);
    for (const DeviceBuffer* b : e.donated_inputs) {
      need_producer(b);
      if (const auto it = readers.find(b); it != readers.end()) {
        for (size_t reader : it->second) need(reader);  // their uses began before the donation
      }
    }
  }
}

void DeferredExecutions::Produce(const DeviceBuffer& buffer) {
  if (!selective_) return StartAll();
  std::lock_guard<std::mutex> lock(mutex_);
  MarkNeeded(buffer);
  for (PendingExecution& e : executions_) {
    if (e.needed) e.start();
  }
  std::erase_if(executions_, [](const PendingExecution& e) { return e.needed; });
}

void DeferredExecutions::StartAll() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (PendingExecution& e : executions_) e.start();
  executions_.clear();
  if (!selective_) deferring_ = false;
}

}  // namespace hlokit::runtime
