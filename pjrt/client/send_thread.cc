// SPDX-License-Identifier: Apache-2.0
#include "pjrt/client/send_thread.h"

#include <utility>

namespace hlokit::pjrt {

SendThread::~SendThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SendThread::Add(std::function<void()> send) {
  const std::lock_guard<std::mutex> lock(mutex_);
  sends_.push_back(std::move(send));
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  changed_.notify_all();
}

void SendThread::Loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !sends_.empty(); });
    if (sends_.empty()) return;
    const std::function<void()> send = std::move(sends_.front());
    sends_.pop_front();
    lock.unlock();
    send();
    lock.lock();
  }
}

}  // namespace hlokit::pjrt
