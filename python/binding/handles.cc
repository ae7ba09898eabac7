// SPDX-License-Identifier: Apache-2.0
#include "python/binding/handles.h"

#include <new>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/graph/traversal.h"
#include "ir/verify/verifier.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

void Throw(const char* type, const std::string& message) {
  const py::object error = py::module_::import("hlokit._errors").attr(type);
  PyErr_SetObject(error.ptr(), error(ToStr(message)).ptr());
  throw py::error_already_set();
}

void Throw(const char* type, const absl::Status& status) { Throw(type, std::string(status.message())); }

void Throw(const char* type, const DiagnosticSink& sink, const SourceBuffer& source) {
  const py::object errors = py::module_::import("hlokit._errors");
  const py::object error = errors.attr("with_diagnostics")(errors.attr(type), ToStr(RenderText(sink, source)),
                                                           ToStr(RenderJson(sink, source)));
  PyErr_SetObject(py::type::of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

PyObject* SetError(std::exception& exception) {
  if (auto* const error = dynamic_cast<py::error_already_set*>(&exception)) {
    error->restore();
  } else if (dynamic_cast<std::bad_alloc*>(&exception) != nullptr) {
    PyErr_NoMemory();
  } else {
    PyErr_SetString(PyExc_RuntimeError, exception.what());
  }
  return nullptr;
}

void ContextUse::ThrowBusy() const {
  Throw("BusyError", StrCat("the module is in use: ", work, " runs in another thread"));
}

void InstructionHandle::ThrowDead() const { Throw("DeadHandleError", "the instruction was erased"); }

Instruction RootOf(Computation computation) {
  if (!computation.record().root.valid()) {
    Throw("EditError", StrCat("the computation `", computation.name(), "` has no root: set_root sets it"));
  }
  return computation.root();
}

const Module& ModuleState::complete() const {
  const Module& module = read();
  for (const Computation c : module.computations()) RootOf(c);
  return module;
}

namespace {

// Returns true if operands and control predecessors come before their users.
bool IsInOrder(Computation computation) {
  absl::flat_hash_set<uint32_t> seen;
  const auto known = [&seen](Instruction i) { return seen.contains(i.id().value); };
  for (const Instruction i : computation.instructions()) {
    for (const Instruction operand : i.operands()) {
      if (!known(operand)) return false;
    }
    for (const Instruction before : i.control_predecessors()) {
      if (!known(before)) return false;
    }
    seen.insert(i.id().value);
  }
  return true;
}

}  // namespace

const Module& ModuleState::valid() const {
  complete();
  if (verified_ == edits_) return *module_;
  Verify(*this);
  // Edits may give an instruction an operand that comes later. Of a schedule that is an error of the verifier.
  for (const Computation c : module_->computations()) {
    if (IsInOrder(c)) continue;
    for (const InstructionId id : PostOrder(c)) module_->MoveBefore(id, InstructionId());
  }
  return *module_;
}

void Verify(const ModuleState& state) {
  const Module& module = state.read();
  DiagnosticSink sink;
  VerifyModule(module, {}, &sink);
  const SourceBuffer none("<module>", "");
  if (sink.has_errors()) Throw("VerifyError", sink, state.source() == nullptr ? none : *state.source());
  state.set_verified();
}

void ModuleState::ThrowFrozen() const {
  Throw("EditError", "the module of an Executable does not change: clone() gives a copy that can be edited");
}

namespace {

// Ids of instructions and computations that are erased at once are used up.
void UseUpIds(size_t instructions, size_t computations, Module* module) {
  while (module->instruction_id_bound() < instructions || module->computation_id_bound() < computations) {
    const ComputationId scratch = module->AddComputation(module->UniqueComputationName("scratch"));
    while (module->instruction_id_bound() < instructions) {
      module->AddInstruction(scratch, Opcode::kAfterAll, module->context().shapes.Token(), StringId(), {});
    }
    module->EraseComputation(scratch);
  }
}

}  // namespace

void ModuleState::Replace(std::unique_ptr<Module> module) {
  UseUpIds(module_->instruction_id_bound(), module_->computation_id_bound(), module.get());
  *module_ = std::move(*module);
  ++edits_;
}

void ModuleState::ReserveIds(const Module& other) {
  UseUpIds(other.instruction_id_bound(), other.computation_id_bound(), module_.get());
}

Computation ComputationHandle::get() const {
  const Module& module = state->read();
  if (id.value >= module.computation_id_bound() || module.record(id).erased)
    Throw("DeadHandleError", "the computation was erased");
  return Computation(&module, id);
}

WorkScope::WorkScope(std::shared_ptr<ContextUse> use, std::string work) : use_(std::move(use)) {
  use_->Check();
  outer_ = std::exchange(*use_, {std::move(work), {}});
  thread_ = PyEval_SaveThread();
}

WorkScope::~WorkScope() {
  PyEval_RestoreThread(thread_);
  *use_ = std::move(outer_);
}

InstructionId IdIn(const ModulePtr& state, const InstructionHandle& instruction) {
  if (instruction.state != state) throw py::value_error("the instruction belongs to another module");
  return instruction.get().id();
}

}  // namespace hlokit::python
