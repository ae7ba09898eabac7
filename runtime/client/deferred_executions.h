// SPDX-License-Identifier: Apache-2.0
// Executions deferred until one of their results is needed. A caller that records programs without reading results
// never runs them.
//
// A value depends on its producer, on the producers of its arguments, and, for donated buffers, on earlier readers.
// Programs of several devices synchronize at collectives: with several devices the first value that is needed starts
// all executions and ends deferral.
#ifndef HLOKIT_RUNTIME_CLIENT_DEFERRED_EXECUTIONS_H_
#define HLOKIT_RUNTIME_CLIENT_DEFERRED_EXECUTIONS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "runtime/client/device_buffer.h"

namespace hlokit::runtime {

class DeferredExecutions : public DeferredProducer {
 public:
  struct PendingExecution {
    // `given`: numbers of donated arguments. `start` must be set afterwards; it keeps the buffers alive.
    PendingExecution(absl::Span<const std::shared_ptr<DeviceBuffer>> arguments, absl::Span<const int64_t> given,
                     absl::Span<const std::shared_ptr<DeviceBuffer>> results);
    std::vector<const DeviceBuffer*> inputs, donated_inputs;
    std::vector<DeviceBuffer*> outputs;
    std::function<void()> start;
    bool needed = false;
  };

  // `selective`: start only the executions that a value depends on.
  explicit DeferredExecutions(bool selective) : selective_(selective) {}

  void Defer(PendingExecution execution);
  // Starts the executions that the buffer depends on, in the order of deferral.
  void Produce(const DeviceBuffer& buffer) override;
  void StartAll();

 private:
  void MarkNeeded(const DeviceBuffer& buffer);

  const bool selective_;
  std::mutex mutex_;
  bool deferring_ = true;
  std::deque<PendingExecution> executions_;  // oldest first
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_RUNTIME_CLIENT_DEFERRED_EXECUTIONS_H_
