// SPDX-License-Identifier: Apache-2.0
// Building modules: hlokit.module() and hlokit.Builder.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/builder/builder.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/graph/entry_signature.h"
#include "parser/formats/parser.h"
#include "python/binding/bindings.h"
#include "python/binding/edit.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

// Where instructions are added: at the end of a computation, or before an instruction of it.
struct InsertionPoint {
  ModulePtr state;
  ComputationId computation;
  std::optional<InstructionId> before;
};

Opcode OpcodeOf(std::string name) {
  for (char& c : name) c = c == '_' ? '-' : c;
  while (name.ends_with('-')) name.pop_back();  // and_, not_, while_: words of Python
  if (const std::optional<Opcode> opcode = OpcodeFromText(name)) return *opcode;
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kOpcodeCount; ++i) names.push_back(ToString(static_cast<Opcode>(i)));
  Throw("EditError", StrCat("unknown opcode `", name, "`", DidYouMeanSuffix(name, names)));
}

Shape ShapeOf(Module& module, const py::object& shape) {
  if (shape.is_none()) return Shape();
  const std::string text = py::str(shape);
  return ValueOrThrow(ParseShapeText(text, &module.context()), "EditError");
}

Builder BuilderAt(const InsertionPoint& p) {
  Module& module = p.state->edit();
  if (p.computation.value >= module.computation_id_bound() || module.record(p.computation).erased)
    Throw("DeadHandleError", "the computation was erased");
  if (!p.before) return Builder(&module, p.computation);
  if (!IsAlive(module, *p.before)) {
    Throw("DeadHandleError", "the instruction at the insertion point was erased");
  }
  return Builder(&module, *p.before);
}

InstructionHandle Added(const InsertionPoint& p, absl::StatusOr<InstructionId> id) {
  return {p.state, ValueOrThrow(std::move(id), "EditError")};
}

InstructionHandle Add(const InsertionPoint& p, const std::string& opcode_name,
                      const std::vector<InstructionHandle>& operands, const py::object& shape,
                      const std::optional<std::string>& name, const py::dict& attributes) {
  Builder builder = BuilderAt(p);
  const Opcode opcode = OpcodeOf(opcode_name);
  std::vector<InstructionId> ids;
  for (const InstructionHandle& operand : operands) {
    ids.push_back(IdIn(p.state, operand));
    if (operand.get().parent().id() != builder.computation()) {
      Throw("EditError", StrCat("`", operand.get().name(), "` is in another computation"));
    }
  }
  std::vector<AttrValue> attrs;
  for (const auto& [key, value] : attributes) {
    attrs.push_back(AttributeFromPython(p.state, opcode, py::str(key), py::reinterpret_borrow<py::object>(value)));
  }
  if (name) {
    CheckName(*name);
    builder.WithName(*name);
  }
  return Added(p, builder.Add(opcode, ids, attrs, ShapeOf(builder.module(), shape)));
}

InstructionHandle Parameter(const InsertionPoint& p, const py::object& shape, const std::optional<std::string>& name) {
  Builder builder = BuilderAt(p);
  if (name) CheckName(*name);
  CheckHasNoCallers(builder.module().computation(p.computation), "what is added");
  const int64_t number = builder.module().computation(p.computation).parameter_count();
  InstructionHandle added = Added(p, builder.Parameter(number, ShapeOf(builder.module(), shape), name.value_or("")));
  const Computation computation = builder.module().computation(p.computation);
  if (computation.is_entry() && computation.record().root.valid()) RefreshEntrySignature(builder.module());
  return added;
}

// Python's numbers are f32, s32 and c64, as in the frameworks.
ElementType TypeOfNumbers(ElementType type) {
  if (type == ElementType::kF64) return ElementType::kF32;
  if (type == ElementType::kS64) return ElementType::kS32;
  return type == ElementType::kC128 ? ElementType::kC64 : type;
}

InstructionHandle Constant(const InsertionPoint& p, const py::object& value, const py::object& shape) {
  Builder builder = BuilderAt(p);
  GivenArray given = ArrayFromPython(value, "constant");
  if (!given.type) {
    throw py::type_error(StrCat("constant: HLO has no element type for ", std::string(py::str(given.array.dtype()))));
  }
  Shape type;
  if (shape.is_none()) {
    const absl::Span<const py::ssize_t> sizes(given.array.shape(), static_cast<size_t>(given.array.ndim()));
    const ElementType element = given.numbers ? TypeOfNumbers(*given.type) : *given.type;
    type = builder.shapes().Array(element, std::vector<int64_t>(sizes.begin(), sizes.end()));
  } else {
    type = ShapeOf(builder.module(), shape);
    if (!type.IsArray()) throw py::type_error("a constant is an array");
    const ElementType element = type.element_type();
    if (given.type != element && !IsRaw(given.array, element)) {
      given.array = ConvertNumbers(given.array, element, "constant");
      given.type = element;
    }
    given.array = py::module_::import("numpy").attr("broadcast_to")(given.array, ToTuple(type.dims()));
  }
  const py::array elements = ElementsOf(given, type.element_type(), type.dims(), "constant");
  const auto* const data = static_cast<const std::byte*>(elements.data());
  return Added(p, builder.Constant(Literal::Borrowed(type, const_cast<std::byte*>(data))));
}

ModulePtr NewModule(const std::string& name) {
  CheckName(name);
  auto module = std::make_unique<Module>();
  module->header().name = module->context().strings.Intern(name);
  const ComputationId entry = module->AddComputation(module->context().strings.Intern("main"));
  module->SetEntry(entry);
  return std::make_shared<ModuleState>(std::move(module), nullptr);
}

ComputationHandle AddComputation(const ModulePtr& state, const std::string& name) {
  CheckName(name);
  Module& module = state->edit();
  return {state, module.AddComputation(module.UniqueComputationName(std::string_view(name)))};
}

}  // namespace

void BindBuilder(py::module_& m) {
  py::class_<InsertionPoint>(m, "Builder", R"(Adds instructions to a computation: at its end, or before an instruction.

b.add("dot", x, y, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,)); an opcode is also a method: b.tanh(x). Shapes
are inferred where operands and attributes determine them; others take `shape=`. Operands that do not fit are EditError,
and nothing is added.)")
      .def(py::init([](const ComputationHandle& at) {
             at.get();
             return InsertionPoint{at.state, at.id, std::nullopt};
           }),
           py::arg("computation"))
      .def(py::init([](const InstructionHandle& before) {
             return InsertionPoint{before.state, before.get().parent().id(), before.id};
           }),
           py::arg("before"))
      .def_static(
          "after",
          [](const InstructionHandle& at) {
            const Computation computation = at.get().parent();
            InsertionPoint point{at.state, computation.id(), std::nullopt};
            bool passed = false;
            for (const Instruction i : computation.instructions()) {
              if (passed && !point.before) point.before = i.id();
              passed |= i == at.get();
            }
            return point;
          },
          py::arg("instruction"), "A builder that adds behind an instruction, in the order of the text.")
      .def("_add", &Add, py::arg("opcode"), py::arg("operands"), py::arg("shape"), py::arg("name"),
           py::arg("attributes"))
      .def("parameter", &Parameter, py::arg("shape"), py::arg("name") = py::none(),
           "Adds the next parameter, of a shape or its text: b.parameter(\"f32[2,3]\"). Raises EditError where "
           "instructions call the computation already.")
      .def("constant", &Constant, py::arg("value"), py::arg("shape") = py::none(),
           "Adds a constant: an array, or numbers, which are f32, s32 or c64 unless `shape` says otherwise; it may "
           "spread "
           "them to more elements. Raises ValueError for numbers that its type lacks, TypeError.")
      .def(
          "set_root",
          [](const InsertionPoint& p, const InstructionHandle& root) {
            SetRoot({p.state, p.computation}, root);
          },
          py::arg("root"), "As Computation.set_root of the computation.")
      .def_property_readonly(
          "computation",
          [](const InsertionPoint& p) {
            return ComputationHandle{p.state, p.computation};
          },
          "The computation it adds to.");
  m.def("module", &NewModule, py::arg("name") = "module",
        "A new module whose entry computation is empty: build it with Builder(m.entry) and set its root.");
  auto type = py::reinterpret_borrow<py::class_<ModuleState, ModulePtr>>(m.attr("Module"));
  type.def("add_computation", &AddComputation, py::arg("name"), "Adds an empty computation, for instructions to call.");
  m.def("_opcodes", [] {
    py::list result;
    for (size_t i = 0; i < kOpcodeCount; ++i) result.append(ToStr(ToString(static_cast<Opcode>(i))));
    return result;
  });
}

}  // namespace hlokit::python
