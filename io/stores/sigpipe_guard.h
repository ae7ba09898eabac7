// SPDX-License-Identifier: Apache-2.0
// Keeps a connection that the other side has closed from ending the program.
#ifndef HLOKIT_IO_STORES_SIGPIPE_GUARD_H_
#define HLOKIT_IO_STORES_SIGPIPE_GUARD_H_

#include <pthread.h>
#include <signal.h>
#include <time.h>

namespace hlokit {

// Blocks SIGPIPE in this thread, and discards one that was raised in the scope.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigset_t pending;
    sigemptyset(&set_);
    sigaddset(&set_, SIGPIPE);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &set_, &old_);
  }
  ~SigpipeGuard() {
    const timespec now = {};
    if (!was_pending_) {
      while (sigtimedwait(&set_, nullptr, &now) > 0) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t set_, old_;
  bool was_pending_ = false;
};

}  // namespace hlokit

#endif  // HLOKIT_IO_STORES_SIGPIPE_GUARD_H_
