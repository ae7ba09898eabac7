// SPDX-License-Identifier: Apache-2.0
// Executions that wait until somebody needs a value that they make. Whoever wants to know which programs a step runs,
// and not what they compute, never runs them.
//
// A value needs the execution that makes it, those that make its arguments, and, before a buffer is given away, those
// that still read it. Programs of several devices meet at their collectives: the first value that is needed of one of
// several devices sets all of them going, and from then on nothing is held.
#ifndef HLOKIT_INTERP_RUNTIME_CLIENT_DEFERRED_EXECUTIONS_H_
#define HLOKIT_INTERP_RUNTIME_CLIENT_DEFERRED_EXECUTIONS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "interp/runtime/client/device_buffer.h"

namespace hlokit::runtime {

class DeferredExecutions : public DeferredProducer {
 public:
  struct PendingExecution {
    // `given` are numbers of arguments. `start` is yet to be set; it keeps the buffers alive.
    PendingExecution(absl::Span<const std::shared_ptr<DeviceBuffer>> arguments, absl::Span<const int64_t> given,
                     absl::Span<const std::shared_ptr<DeviceBuffer>> results);
    std::vector<const DeviceBuffer*> inputs, donated_inputs;
    std::vector<DeviceBuffer*> outputs;
    std::function<void()> start;
    bool needed = false;
  };

  // With `selective`, what a value does not need stays held.
  explicit DeferredExecutions(bool selective) : selective_(selective) {}

  void Defer(PendingExecution execution);
  // Starts what the buffer needs, in the order in which it was held.
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

#endif  // HLOKIT_INTERP_RUNTIME_CLIENT_DEFERRED_EXECUTIONS_H_
