// SPDX-License-Identifier: Apache-2.0
// What Python objects hold: a module with its lock, and handles of computations and instructions in it.
//
// A handle keeps its module alive and checks, at each use, that what it refers to still exists: ids of erased objects
// are never given to others. Work without the interpreter's lock, a pass or a run, marks the context as in use: other
// threads that touch the module then get an error instead of a race.
#ifndef HLOKIT_PYTHON_BINDING_HANDLES_H_
#define HLOKIT_PYTHON_BINDING_HANDLES_H_

#include <pybind11/pybind11.h>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "parser/text/foreign_parts.h"

namespace hlokit::python {

// State of a context, which modules with common contents share.
struct ContextUse {
  std::string work;        // "a pipeline": what runs without the interpreter's lock; "" for nothing
  std::thread::id caller;  // the thread of that work, while it calls Python

  // Throws BusyError while work runs, unless it calls this.
  void Check() const {
    if (!work.empty() && std::this_thread::get_id() != caller) ThrowBusy();
  }

 private:
  [[noreturn]] void ThrowBusy() const;
};

// The module behind Python's `hlokit.Module`.
class ModuleState {
 public:
  ModuleState(std::unique_ptr<Module> module, std::shared_ptr<const SourceBuffer> source,
              std::shared_ptr<ContextUse> use = std::make_shared<ContextUse>())
      : module_(std::move(module)), source_(std::move(source)), use_(std::move(use)) {}

  // Throw BusyError while work runs in another thread.
  const Module& read() const {
    use_->Check();
    return *module_;
  }
  // Throws EditError while a computation has no root: what is being built.
  const Module& complete() const;
  // Throws VerifyError, or EditError where it is not complete. Verifies where it was edited since the last time.
  const Module& valid() const;
  // It was verified as it is.
  void set_verified() const { verified_ = edits_; }
  // Also throws EditError for the module of an Executable.
  Module& edit() {
    use_->Check();
    if (frozen_) ThrowFrozen();
    ++edits_;
    return *module_;
  }
  // For the work of a WorkScope.
  Module* work_module() { return module_.get(); }
  // Number of calls of edit().
  int64_t edits() const { return edits_; }
  const std::shared_ptr<const SourceBuffer>& source() const { return source_; }
  const std::shared_ptr<ContextUse>& use() const { return use_; }
  void Freeze() { frozen_ = true; }
  // Replaces the contents by those after passes over a clone of this module, in place: references to it stay valid. Ids
  // that this module had are not given to others.
  void Replace(std::unique_ptr<Module> module);
  // Uses up the ids that `other`, once a clone of this module, has given to new instructions and computations.
  void ReserveIds(const Module& other);
  // For a pass in Python: handles refer to the clone that the pipeline works on, and afterwards to the module again.
  void Exchange(std::unique_ptr<Module>* module) { module_.swap(*module); }

 private:
  [[noreturn]] void ThrowFrozen() const;

  std::unique_ptr<Module> module_;
  std::shared_ptr<const SourceBuffer> source_;
  std::shared_ptr<ContextUse> use_;
  bool frozen_ = false;
  int64_t edits_ = 0;
  mutable int64_t verified_ = -1;  // number of edits when it was valid
};
using ModulePtr = std::shared_ptr<ModuleState>;

// Marks the context of a module as in use, and releases the interpreter's lock, during its lifetime.
class WorkScope {
 public:
  WorkScope(const ModulePtr& state, std::string work) : WorkScope(state->use(), std::move(work)) {}
  // Throws BusyError where other work runs.
  WorkScope(std::shared_ptr<ContextUse> use, std::string work);
  ~WorkScope();
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

 private:
  std::shared_ptr<ContextUse> use_;
  ContextUse outer_;  // of a caller of this thread: work within a pass in Python
  PyThreadState* thread_;
};

// Takes the interpreter's lock within a WorkScope, to call Python, which may use the module.
class CallScope {
 public:
  explicit CallScope(std::shared_ptr<ContextUse> use) : use_(std::move(use)), outer_(use_->caller) {
    use_->caller = std::this_thread::get_id();
  }
  ~CallScope() { use_->caller = outer_; }
  CallScope(const CallScope&) = delete;
  CallScope& operator=(const CallScope&) = delete;

 private:
  const pybind11::gil_scoped_acquire lock_;
  std::shared_ptr<ContextUse> use_;
  std::thread::id outer_;
};

// Returns false for what was erased, and what a module does not have, such as the root of an empty computation.
inline bool IsAlive(const Module& module, InstructionId id) {
  return id.value < module.instruction_id_bound() && module.record(id).parent.valid();
}

struct ComputationHandle {
  ModulePtr state;
  ComputationId id;

  // Throws DeadHandleError if it was erased.
  Computation get() const;
  friend bool operator==(const ComputationHandle& a, const ComputationHandle& b) {
    return a.state == b.state && a.id == b.id;
  }
};

struct InstructionHandle {
  ModulePtr state;
  InstructionId id;

  bool is_dead() const { return !IsAlive(state->read(), id); }
  // Throws DeadHandleError if it was erased.
  Instruction get() const {
    const Module& module = state->read();
    if (!IsAlive(module, id)) ThrowDead();
    return Instruction(&module, id);
  }
  friend bool operator==(const InstructionHandle& a, const InstructionHandle& b) {
    return a.state == b.state && a.id == b.id;
  }

 private:
  [[noreturn]] void ThrowDead() const;
};

inline InstructionHandle Handle(const ModulePtr& state, Instruction i) { return {state, i.id()}; }
// Throws VerifyError with all violations of HLO's rules.
void Verify(const ModuleState& state);
// Returns the root. Throws EditError if the computation has none yet.
Instruction RootOf(Computation computation);
inline ComputationHandle Handle(const ModulePtr& state, Computation c) { return {state, c.id()}; }

// Throw errors of the package: `type` is a class of hlokit/_errors.py.
[[noreturn]] void Throw(const char* type, const std::string& message);
[[noreturn]] void Throw(const char* type, const absl::Status& status);
// With the list `diagnostics`; the message shows them with their lines.
[[noreturn]] void Throw(const char* type, const DiagnosticSink& sink, const SourceBuffer& source);

// For functions of Python's C interface, which C++ exceptions must not leave: sets Python's error, and returns null.
PyObject* SetError(std::exception& exception);

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value, const char* type) {
  if (!value.ok()) Throw(type, value.status());
  return *std::move(value);
}

// Returns the handle of an instruction of this module; throws ValueError for one of another.
InstructionId IdIn(const ModulePtr& state, const InstructionHandle& instruction);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_HANDLES_H_
