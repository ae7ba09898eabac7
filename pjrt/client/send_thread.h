// SPDX-License-Identifier: Apache-2.0
// A thread that sends arrays to other processes, one after the other. Senders must not do it themselves: one that
// receives would not read what the other process sends meanwhile, and both would wait.
#ifndef HLOKIT_PJRT_CLIENT_SEND_THREAD_H_
#define HLOKIT_PJRT_CLIENT_SEND_THREAD_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace hlokit::pjrt {

class SendThread {
 public:
  SendThread() = default;
  SendThread(const SendThread&) = delete;
  SendThread& operator=(const SendThread&) = delete;
  // Waits for what has been added.
  ~SendThread();

  // Calls `send` on the thread, which the first call starts.
  void Add(std::function<void()> send);

 private:
  void Loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> sends_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace hlokit::pjrt

#endif  // HLOKIT_PJRT_CLIENT_SEND_THREAD_H_
