// SPDX-License-Identifier: Apache-2.0
// What Python objects hold: a module with its lock, and handles of computations and instructions in it.
//
// A handle keeps its module alive and checks, at each use, that what it refers to still exists: ids of erased objects
// are never given to others. Work without the interpreter's lock, a pass or a run, marks the context as in use: other
// threads that touch the module then get an error instead of a race.
#ifndef HLOKIT_PYTHON_BINDING_HANDLES_H_
#define HLOKIT_PYTHON_BINDING_HANDLES_H_

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ir/core/diagnostic.h"
#include "ir/core/source_buffer.h"
#include "ir/graph/module.h"
#include "parser/core/foreign_parts.h"

namespace hlokit::python {

// State of a context, which modules with common contents share.
struct ContextUse {
  std::string work;  // "a pipeline": what runs without the interpreter's lock; "" for nothing

  // Throws BusyError while work runs.
  void Check() const {
    if (!work.empty()) ThrowBusy();
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
  Module& edit() {
    use_->Check();
    return *module_;
  }
  const std::shared_ptr<const SourceBuffer>& source() const { return source_; }
  const std::shared_ptr<ContextUse>& use() const { return use_; }
  // Replaces the contents by those after a pass over a clone of this module, or of one before it. Ids that this module
  // had are not given to others.
  void Replace(std::unique_ptr<Module> module);

 private:
  std::unique_ptr<Module> module_;
  std::shared_ptr<const SourceBuffer> source_;
  std::shared_ptr<ContextUse> use_;
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
  PyThreadState* thread_;
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
// Returns the root. Throws EditError if the computation has none yet.
Instruction RootOf(Computation computation);
inline ComputationHandle Handle(const ModulePtr& state, Computation c) { return {state, c.id()}; }

// Throw errors of the package: `type` is a class of hlokit/_errors.py.
[[noreturn]] void Throw(const char* type, const std::string& message);
[[noreturn]] void Throw(const char* type, const absl::Status& status);
// With the list `diagnostics`; the message shows them with their lines.
[[noreturn]] void Throw(const char* type, const DiagnosticSink& sink, const SourceBuffer& source);

template <typename T>
T ValueOrThrow(absl::StatusOr<T> value, const char* type) {
  if (!value.ok()) Throw(type, value.status());
  return *std::move(value);
}

// Returns the handle of an instruction of this module; throws ValueError for one of another.
InstructionId IdIn(const ModulePtr& state, const InstructionHandle& instruction);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_HANDLES_H_
