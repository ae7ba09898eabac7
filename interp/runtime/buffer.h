// One array on a device: there already, or promised by an execution that is under way.
#ifndef HLOKIT_INTERP_RUNTIME_BUFFER_H_
#define HLOKIT_INTERP_RUNTIME_BUFFER_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "interp/runtime/discarded_values.h"
#include "ir/context.h"
#include "ir/literal.h"

namespace hlokit::runtime {

class Buffer {
 public:
  // `discarded`, if not null, takes the value when the buffer goes.
  explicit Buffer(std::shared_ptr<DiscardedValues> discarded = nullptr) : discarded_(std::move(discarded)) {}
  // `context` owns the literal's shape.
  Buffer(Literal value, std::shared_ptr<Context> context, std::shared_ptr<DiscardedValues> discarded = nullptr)
      : discarded_(std::move(discarded)),
        state_(State::kReady),
        context_(std::move(context)),
        value_(std::move(value)) {}
  ~Buffer() {
    if (discarded_ == nullptr || state_ != State::kReady || value_.size_bytes() < DiscardedValues::kLeastBytes) return;
    discarded_->Add(std::move(value_), std::move(context_));
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Once, by whoever promised the value.
  void Fulfil(Literal value, std::shared_ptr<Context> context) {
    std::lock_guard<std::mutex> lock(mutex_);
    value_ = std::move(value);
    context_ = std::move(context);
    state_ = State::kReady;
    changed_.notify_all();
  }
  void Fail(absl::Status status) {
    std::lock_guard<std::mutex> lock(mutex_);
    status_ = std::move(status);
    state_ = State::kFailed;
    changed_.notify_all();
  }
  // Waits for the value, or for the error of what should have made it.
  absl::Status Wait() const {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return state_ != State::kPromised; });
    return status_;
  }
  // After Wait was OK. Values do not change.
  const Literal& literal() const { return value_; }
  const std::shared_ptr<Context>& context() const { return context_; }

  // Never given to an execution as room for its results.
  bool read_only = false;
  // For whoever numbers the parameters of a program: the place this buffer got in the numbering `mark`. Under that
  // user's lock.
  uint64_t mark = 0;
  uint32_t number = 0;

 private:
  enum class State { kPromised, kReady, kFailed };
  const std::shared_ptr<DiscardedValues> discarded_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  State state_ = State::kPromised;
  absl::Status status_;
  std::shared_ptr<Context> context_;
  Literal value_;
};

}  // namespace hlokit::runtime

#endif  // HLOKIT_INTERP_RUNTIME_BUFFER_H_
