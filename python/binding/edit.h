// SPDX-License-Identifier: Apache-2.0
// Edits of modules from Python. Each leaves a valid module valid, or raises EditError with the words of the verifier
// and changes nothing.
#ifndef HLOKIT_PYTHON_BINDING_EDIT_H_
#define HLOKIT_PYTHON_BINDING_EDIT_H_

#include <pybind11/pybind11.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "python/binding/handles.h"

namespace hlokit::python {

void ReplaceAllUses(const InstructionHandle& from, const InstructionHandle& to);
void ReplaceOperand(const InstructionHandle& user, int64_t index, const InstructionHandle& operand);
void EraseInstruction(const InstructionHandle& instruction);
void SetAttribute(const InstructionHandle& instruction, const std::string& name, const pybind11::object& value);
InstructionHandle CloneInstruction(const InstructionHandle& source,
                                   const std::optional<std::vector<InstructionHandle>>& operands,
                                   const std::optional<std::string>& name);
void MoveInstructionBefore(const InstructionHandle& instruction, const InstructionHandle& position);
void SetMetadata(const InstructionHandle& instruction, const std::optional<std::string>& op_name,
                 const std::optional<std::string>& op_type, const std::optional<std::string>& source_file,
                 std::optional<int64_t> source_line);
void SetRoot(const ComputationHandle& computation, const InstructionHandle& root);
// Throws EditError unless HLO text can have this name.
void CheckName(const std::string& name);
// Throws EditError if an instruction calls the computation: its parameters are those that callers pass.
void CheckHasNoCallers(Computation computation, const std::string& what);
void RenameInstruction(const InstructionHandle& instruction, const std::string& name);

// Returns the attribute `name` of an instruction of this opcode with a value, as `attributes` has it or as HLO text.
// Throws EditError if the opcode takes no such attribute or value.
AttrValue AttributeFromPython(const ModulePtr& state, Opcode opcode, const std::string& name,
                              const pybind11::object& value);

}  // namespace hlokit::python

#endif  // HLOKIT_PYTHON_BINDING_EDIT_H_
