// SPDX-License-Identifier: Apache-2.0
#include "python/binding/interrupt.h"

#include <unistd.h>

#include <csignal>

namespace hlokit::python {
namespace {

// Of the main thread, which alone installs the handler.
struct sigaction pythons_handler;
std::atomic<bool> interrupted{false};

void OnInterrupt(int signal) {
  CancelExecutions().store(true, std::memory_order_relaxed);
  interrupted.store(true, std::memory_order_relaxed);
  pythons_handler.sa_handler(signal);  // remembers the signal
}

bool InstallHandler() {
  if (gettid() != getpid()) return false;
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now) != 0) return false;
  const bool is_function = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN;
  if (!is_function || now.sa_handler == &OnInterrupt) return false;
  pythons_handler = now;
  struct sigaction ours = now;
  ours.sa_handler = &OnInterrupt;
  return sigaction(SIGINT, &ours, nullptr) == 0;
}

}  // namespace

std::atomic<bool>& CancelExecutions() {
  static auto* const cancel = new std::atomic<bool>(false);
  return *cancel;
}

InterruptibleSection::InterruptibleSection() : installed_(InstallHandler()) {}

InterruptibleSection::~InterruptibleSection() {
  if (installed_) sigaction(SIGINT, &pythons_handler, nullptr);
}

void CheckInterrupt(lazy::Tracer& session) {
  if (gettid() != getpid() || !interrupted.exchange(false)) return;
  {
    const pybind11::gil_scoped_release release;
    (void)session.Wait();
    session.ClearStatus();
  }
  CancelExecutions() = false;
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

}  // namespace hlokit::python
