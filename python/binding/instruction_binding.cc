// SPDX-License-Identifier: Apache-2.0
// hlokit.Instruction: reading and editing.
#include <pybind11/stl.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/core/str_cat.h"
#include "ir/text/printer.h"
#include "python/binding/bindings.h"
#include "python/binding/edit.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

py::list Handles(const ModulePtr& state, const std::vector<Instruction>& instructions) {
  py::list result(instructions.size());
  for (size_t i = 0; i < instructions.size(); ++i) result[i] = py::cast(Handle(state, instructions[i]));
  return result;
}

// Returns the instructions within `depth` steps from `start` over operands or users, nearest first, without itself.
std::vector<Instruction> Neighborhood(Instruction start, std::optional<int64_t> depth, bool users) {
  std::vector<Instruction> found;
  absl::flat_hash_map<uint32_t, int64_t> distance = {{start.id().value, 0}};
  std::deque<Instruction> queue = {start};
  while (!queue.empty()) {
    const Instruction i = queue.front();
    queue.pop_front();
    const int64_t next = distance[i.id().value] + 1;
    if (depth && next > *depth) continue;
    const auto visit = [&](Instruction other) {
      if (!distance.emplace(other.id().value, next).second) return;
      found.push_back(other);
      queue.push_back(other);
    };
    if (users) {
      for (const Instruction user : i.users()) visit(user);
    } else {
      for (const Instruction operand : i.operands()) visit(operand);
    }
  }
  return found;
}

py::object LocationOf(const InstructionHandle& h) {
  const uint32_t offset = h.get().record().source_offset;
  if (h.state->source() == nullptr || offset == InstructionRecord::kNoSourceOffset) return py::none();
  const LineColumn at = LineColumnAt(h.state->source()->text(), offset);
  return Make("Location", h.state->source()->name(), at.line, at.column);
}

py::object LiteralOf(const InstructionHandle& h) {
  const Instruction i = h.get();
  if (i.opcode() != Opcode::kConstant) return py::none();
  return LiteralToPython(i.module().shared_context(), i.literal_id());
}

using Type = py::class_<InstructionHandle>;

// Its name, opcode and shape, and the instructions around it.
void BindOperands(Type& type) {
  type.def_property_readonly(
          "name", [](const InstructionHandle& h) { return ToStr(h.get().name()); }, "Its name, without %.")
      .def_property_readonly(
          "opcode", [](const InstructionHandle& h) { return ToStr(h.get().opcode_text()); },
          "Opcode as in HLO text: \"dot\", \"get-tuple-element\".")
      .def_property_readonly(
          "shape",
          [](const InstructionHandle& h) {
            const Instruction i = h.get();
            return ShapeValue{i.module().shared_context(), i.shape()};
          },
          "Type of its value.")
      .def_property_readonly(
          "operands",
          [](const InstructionHandle& h) {
            const Instruction i = h.get();
            py::tuple result(i.operand_count());
            for (int64_t k = 0; k < i.operand_count(); ++k) result[k] = py::cast(Handle(h.state, i.operand(k)));
            return result;
          },
          "The instructions whose values it reads, in order.")
      .def_property_readonly(
          "users", [](const InstructionHandle& h) { return Handles(h.state, h.get().users()); },
          "The distinct users, by first use.")
      .def_property_readonly(
          "control_predecessors",
          [](const InstructionHandle& h) { return Handles(h.state, h.get().control_predecessors()); },
          "Instructions that run before it, by control edges.")
      .def_property_readonly(
          "control_successors",
          [](const InstructionHandle& h) { return Handles(h.state, h.get().control_successors()); },
          "Instructions that run after it, by control edges.");
}

// What it says.
void BindAttributes(Type& type) {
  type.def_property_readonly(
          "attributes",
          [](const InstructionHandle& h) {
            const Instruction i = h.get();
            return AttributesToPython(h.state, i);
          },
          "Attributes by name, with typed values: numbers, tuples of dimensions, computations, classes such as "
          "Sharding.")
      .def(
          "attribute",
          [](const InstructionHandle& h, const std::string& name, py::object absent) {
            const Instruction i = h.get();
            for (const AttrValue value : i.attrs()) {
              if (ToString(value.attr) == name) return AttributeToPython(h.state, i, value);
            }
            return absent;
          },
          py::arg("name"), py::arg("default") = py::none(), "One attribute, or `default` where it is absent.")
      .def_property_readonly(
          "metadata",
          [](const InstructionHandle& h) {
            const Instruction i = h.get();
            return MetadataToPython(i.module(), i.metadata_id());
          },
          "Where it comes from: Metadata, with empty fields where it says nothing.")
      .def_property_readonly(
          "parameter_number",
          [](const InstructionHandle& h) -> py::object {
            const Instruction i = h.get();
            if (i.opcode() != Opcode::kParameter) return py::none();
            return py::int_(i.parameter_number());
          },
          "Number of a parameter; None for other opcodes.")
      .def_property_readonly("literal", &LiteralOf,
                             "Value of a constant as a read-only array without a copy, a tuple of arrays, or None: for "
                             "other opcodes and where the text elides the value.")
      .def_property_readonly(
          "called_computations",
          [](const InstructionHandle& h) {
            py::list result;
            h.get().ForEachCallee([&](Computation c) { result.append(py::cast(Handle(h.state, c))); });
            return result;
          },
          "Computations it calls: bodies, reducers, fused ones.");
}

// Where it is: in its module, in the text, in the graph.
void BindPlace(Type& type) {
  type.def_property_readonly(
          "parent", [](const InstructionHandle& h) { return Handle(h.state, h.get().parent()); },
          "The computation it is in.")
      .def_property_readonly(
          "module",
          [](const InstructionHandle& h) {
            h.get();
            return h.state;
          },
          "The module it is in.")
      .def_property_readonly(
          "is_root", [](const InstructionHandle& h) { return h.get().is_root(); },
          "Whether its computation returns its value.")
      .def_property_readonly("is_dead", &InstructionHandle::is_dead,
                             "Whether the instruction was erased. Never raises DeadHandleError.")
      .def_property_readonly("location", &LocationOf, "Place in the text the module was read from, or None.")
      .def(
          "upstream",
          [](const InstructionHandle& h, std::optional<int64_t> depth) {
            return Handles(h.state, Neighborhood(h.get(), depth, /*users=*/false));
          },
          py::arg("depth") = py::none(), "What it depends on, nearest first, at most `depth` steps away.")
      .def(
          "downstream",
          [](const InstructionHandle& h, std::optional<int64_t> depth) {
            return Handles(h.state, Neighborhood(h.get(), depth, /*users=*/true));
          },
          py::arg("depth") = py::none(), "What depends on it, nearest first, at most `depth` steps away.");
}

// Texts, equality.
void BindProtocols(Type& type) {
  type.def("__str__", [](const InstructionHandle& h) { return ToStr(ToString(h.get())); })
      .def("__repr__",
           [](const InstructionHandle& h) {
             if (h.is_dead()) return py::str("<erased Instruction>");
             return ToStr(StrCat("<Instruction ", ToString(h.get()), ">"));
           })
      .def("__eq__",
           [](const InstructionHandle& a, const py::object& b) {
             return py::isinstance<InstructionHandle>(b) && a == b.cast<const InstructionHandle&>();
           })
      .def("__hash__",
           [](const InstructionHandle& h) { return std::hash<const void*>()(h.state.get()) * 31 + h.id.value; });
}

// Changes.
void BindEditing(Type& type) {
  type.def("replace_all_uses_with", &ReplaceAllUses, py::arg("other"),
           "Makes every user of this instruction, and the root, use `other`. Raises EditError where that breaks the "
           "module.")
      .def("replace_operand", &ReplaceOperand, py::arg("index"), py::arg("operand"),
           "Replaces one operand. Raises EditError where the instruction does not take it.")
      .def("erase", &EraseInstruction, "Erases the instruction. Raises EditError while it has users or is the root.")
      .def("set_attribute", &SetAttribute, py::arg("name"), py::arg("value"),
           "Sets an attribute to a value as `attributes` has it, or to its HLO text; None removes it. Raises EditError "
           "where the instruction does not take it.")
      .def("clone", &CloneInstruction, py::arg("operands") = py::none(), py::arg("name") = py::none(),
           "Adds a copy behind this instruction, with other operands if they are given, and returns it. Raises "
           "EditError "
           "for operands that do not fit.")
      .def("move_before", &MoveInstructionBefore, py::arg("other"),
           "Moves it before another instruction of its computation in the order of the text.")
      .def("set_metadata", &SetMetadata, py::arg("op_name") = py::none(), py::arg("op_type") = py::none(),
           py::arg("source_file") = py::none(), py::arg("source_line") = py::none(),
           "Sets fields of the metadata; None keeps one. source_line counts from 1; 0 is unknown.")
      .def("rename", &RenameInstruction, py::arg("name"),
           "Sets the name; adds a number if another has it. Raises EditError for what is no name in HLO text.");
}

}  // namespace

void BindInstruction(py::module_& m) {
  Type type(m, "Instruction", R"(An instruction of a module.

A small handle: two of the same instruction are equal and hash alike. It keeps its module alive. After the instruction
was erased each use raises DeadHandleError.)");
  BindOperands(type);
  BindAttributes(type);
  BindPlace(type);
  BindProtocols(type);
  BindEditing(type);
}

}  // namespace hlokit::python
