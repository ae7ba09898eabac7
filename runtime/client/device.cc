// SPDX-License-Identifier: Apache-2.0
#include <cfenv>
#include <new>
#include <system_error>
#include <utility>

#include "ir/core/str_cat.h"
#include "runtime/client/client.h"
#include "runtime/observe/profiler.h"

namespace hlokit::runtime {
namespace {

// Rounding to nearest, denormal numbers as they are: whatever the program that uses this library has set.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() {
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&callers_); }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
  std::fenv_t callers_;
};

// Returns the status of work; if there is no memory for it, that.
absl::Status StatusOf(const std::function<absl::Status()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory");
  } catch (const std::system_error& e) {
    return absl::ResourceExhaustedError(e.what());
  }
}

}  // namespace

Device::Device(int ordinal, std::string platform)
    : ordinal_(ordinal),
      platform_(std::move(platform)),
      deallocator_(std::make_shared<DeferredDeallocator>([this] { changed_.notify_all(); })) {}

Device::~Device() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  deallocator_->Close();
}

void Device::Enqueue(std::function<absl::Status()> work) {
  std::lock_guard<std::mutex> lock(mutex_);
  // Before there is work that nobody would do.
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { Loop(); });
    } catch (const std::system_error& e) {
      throw std::system_error(e.code(), StrCat("cannot start the thread of device ", name()));
    }
  }
  queue_.push_back(std::move(work));
  changed_.notify_all();
}

bool Device::TryRunHere(const std::function<absl::Status()>& work) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (busy_ || !queue_.empty()) return false;
    busy_ = true;
  }
  absl::Status status;
  {
    const DefaultFloatEnvironment environment;
    status = StatusOf(work);
  }
  std::lock_guard<std::mutex> lock(mutex_);
  if (status_.ok()) status_ = std::move(status);
  busy_ = false;
  if (stop_ || !queue_.empty() || waiting_ > 0) changed_.notify_all();
  return true;
}

absl::Status Device::Synchronize() {
  const TraceMe trace("WaitForDevice");
  std::unique_lock<std::mutex> lock(mutex_);
  ++waiting_;
  changed_.wait(lock, [&] { return queue_.empty() && !busy_; });
  --waiting_;
  return std::exchange(status_, absl::OkStatus());
}

void Device::Loop() {
  const DefaultFloatEnvironment environment;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return (!busy_ && (stop_ || !queue_.empty())) || deallocator_->over_limit(); });
    lock.unlock();
    deallocator_->Free();
    lock.lock();
    if (busy_) continue;  // a caller's thread runs a program
    if (queue_.empty()) {
      if (stop_) return;
      continue;
    }
    std::function<absl::Status()> work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    absl::Status status = StatusOf(work);
    work = nullptr;  // releases its captures before anyone is notified
    lock.lock();
    if (status_.ok()) status_ = std::move(status);
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace hlokit::runtime
