// SPDX-License-Identifier: Apache-2.0
#include "python/binding/handles.h"

#include "ir/core/str_cat.h"

namespace hlokit::python {

namespace py = pybind11;

void Throw(const char* type, const std::string& message) {
  const py::object error = py::module_::import("hlokit._errors").attr(type);
  PyErr_SetObject(error.ptr(), error(message).ptr());
  throw py::error_already_set();
}

void Throw(const char* type, const absl::Status& status) { Throw(type, std::string(status.message())); }

void Throw(const char* type, const DiagnosticSink& sink, const SourceBuffer& source) {
  const py::object errors = py::module_::import("hlokit._errors");
  const py::object error =
      errors.attr("with_diagnostics")(errors.attr(type), RenderText(sink, source), RenderJson(sink, source));
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

void ModuleState::ThrowBusy() const {
  Throw("BusyError", StrCat("the module is in use: ", use_->work, " runs in another thread"));
}

void InstructionHandle::ThrowDead() const { Throw("DeadHandleError", "the instruction was erased"); }

Computation ComputationHandle::get() const {
  const Module& module = state->read();
  if (module.record(id).erased) Throw("DeadHandleError", "the computation was erased");
  return Computation(&module, id);
}

WorkScope::WorkScope(const ModulePtr& state, std::string work) : use_(state->use()) {
  state->read();  // throws where other work runs
  use_->work = std::move(work);
  thread_ = PyEval_SaveThread();
}

WorkScope::~WorkScope() {
  PyEval_RestoreThread(thread_);
  use_->work.clear();
}

InstructionId IdIn(const ModulePtr& state, const InstructionHandle& instruction) {
  if (instruction.state != state) throw py::value_error("the instruction belongs to another module");
  return instruction.get().id();
}

}  // namespace hlokit::python
