// SPDX-License-Identifier: Apache-2.0
// ^C while a program runs: without the interpreter's lock no Python runs that would see it.
#ifndef HLOKIT_PYTHON_BINDING_INTERRUPT_H_
#define HLOKIT_PYTHON_BINDING_INTERRUPT_H_

#include <pybind11/pybind11.h>

#include <atomic>

#include "tracer/step/tracer.h"

namespace hlokit::python {

// Ends executions of all sessions while it is true. Never destroyed.
std::atomic<bool>& CancelExecutions();

// In the main thread, a section that ^C ends: it cancels executions, and then calls Python's handler as always. In
// other threads nothing. Made with the interpreter's lock, which is released for its time.
class InterruptibleSection {
 public:
  InterruptibleSection();
  ~InterruptibleSection();
  InterruptibleSection(const InterruptibleSection&) = delete;
  InterruptibleSection& operator=(const InterruptibleSection&) = delete;

 private:
  const bool installed_;
  const pybind11::gil_scoped_release release_;
};

// If ^C ended a section of this thread, waits for what the session still runs, drops the errors that this gave, and
// throws what Python's handler raises, KeyboardInterrupt. Called with the interpreter's lock.
void CheckInterrupt(lazy::Tracer& session);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_INTERRUPT_H_
