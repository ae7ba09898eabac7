// SPDX-License-Identifier: Apache-2.0
#include "interp/runtime/client/held_executions.h"

#include <cstddef>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace hlokit::runtime {

HeldExecutions::Execution::Execution(absl::Span<const std::shared_ptr<Buffer>> arguments,
                                     absl::Span<const int64_t> given,
                                     absl::Span<const std::shared_ptr<Buffer>> results) {
  std::vector<bool> taken(arguments.size());
  for (int64_t i : given) taken[static_cast<size_t>(i)] = true;
  for (size_t i = 0; i < arguments.size(); ++i) (taken[i] ? takes : reads).push_back(arguments[i].get());
  for (const std::shared_ptr<Buffer>& result : results) makes.push_back(result.get());
}

void HeldExecutions::Hold(Execution execution) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!holds_) return execution.start();
  for (Buffer* result : execution.makes) result->MadeBy(this);
  executions_.push_back(std::move(execution));
}

// Marks what makes the buffer, and whatever must run before that.
void HeldExecutions::MarkNeeded(const Buffer& buffer) {
  absl::flat_hash_map<const Buffer*, size_t> makers;
  absl::flat_hash_map<const Buffer*, std::vector<size_t>> readers;
  for (size_t i = 0; i < executions_.size(); ++i) {
    for (const Buffer* b : executions_[i].makes) makers[b] = i;
    for (const Buffer* b : executions_[i].reads) readers[b].push_back(i);
  }
  std::vector<size_t> left;
  const auto need = [&](size_t i) {
    if (std::exchange(executions_[i].needed, true)) return;
    left.push_back(i);
  };
  const auto need_maker = [&](const Buffer* b) {
    if (const auto it = makers.find(b); it != makers.end()) need(it->second);
  };
  need_maker(&buffer);
  while (!left.empty()) {
    const Execution& e = executions_[left.back()];
    left.pop_back();
    for (const Buffer* b : e.reads) need_maker(b);
    for (const Buffer* b : e.takes) {
      need_maker(b);
      if (const auto it = readers.find(b); it != readers.end()) {
        for (size_t reader : it->second) need(reader);  // all began before the buffer was given away
      }
    }
  }
}

void HeldExecutions::Make(const Buffer& buffer) {
  if (!selective_) return StartAll();
  std::lock_guard<std::mutex> lock(mutex_);
  MarkNeeded(buffer);
  for (Execution& e : executions_) {
    if (e.needed) e.start();
  }
  std::erase_if(executions_, [](const Execution& e) { return e.needed; });
}

void HeldExecutions::StartAll() {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Execution& e : executions_) e.start();
  executions_.clear();
  if (!selective_) holds_ = false;
}

}  // namespace hlokit::runtime
