// SPDX-License-Identifier: Apache-2.0
#include "python/binding/edit.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "ir/core/str_cat.h"
#include "ir/core/suggest.h"
#include "ir/graph/entry_signature.h"
#include "ir/inference/shape_inference.h"
#include "parser/hlo/attribute_value.h"
#include "parser/text/scan.h"
#include "python/binding/values.h"

namespace hlokit::python {

namespace py = pybind11;

namespace {

std::string Quoted(Instruction i) { return StrCat("`", i.name(), "`"); }

// Returns true if `target` is `start`, or one of the operands of its operands. Linear in the computation.
bool DependsOn(Instruction start, Instruction target) {
  std::vector<Instruction> stack = {start};
  absl::flat_hash_set<uint32_t> seen = {start.id().value};
  while (!stack.empty()) {
    const Instruction i = stack.back();
    stack.pop_back();
    if (i == target) return true;
    for (const Instruction operand : i.operands()) {
      if (seen.insert(operand.id().value).second) stack.push_back(operand);
    }
    for (const Instruction before : i.control_predecessors()) {
      if (seen.insert(before.id().value).second) stack.push_back(before);
    }
  }
  return false;
}

// Returns the error of the instruction by itself: its shape against operands and attributes.
absl::Status Check(Instruction i) {
  if (HasTrait(i.opcode(), kLeaf)) return absl::OkStatus();
  std::vector<Shape> operands;
  return CheckShape(RequestFor(i, &operands));
}

void ThrowEdit(Instruction at, std::string_view message) {
  Throw("EditError", StrCat(Quoted(at), ": ", std::string(message)));
}

// Returns the HLO text of a Python value: of lists in braces.
std::string ValueText(const py::handle& value, int depth = 0) {
  constexpr int kMaxDepth = 16;  // attributes nest twice
  if (depth > kMaxDepth) throw py::value_error("the value is nested too deeply");
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
  if (py::isinstance<py::str>(value)) return value.cast<std::string>();
  if (py::isinstance<py::tuple>(value) && py::hasattr(value, "text")) return py::str(value.attr("text"));
  if (py::isinstance<py::dict>(value)) {
    std::string text = "{";
    for (const auto& [key, entry] : value.cast<py::dict>()) {
      text += StrCat(text.size() > 1 ? "," : "", std::string(py::str(key)), "=");
      const std::string content = py::str(entry);
      std::string quoted = "\"";
      for (const char c : content) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string{c};
      text += quoted + "\"";
    }
    return text + "}";
  }
  if (py::isinstance<py::tuple>(value) || py::isinstance<py::list>(value)) {
    std::string text = "{";
    for (const py::handle entry : value) StrAppend(&text, text.size() > 1 ? "," : "", ValueText(entry, depth + 1));
    return text + "}";
  }
  return py::str(value);
}

// Returns the text of a window, a padding or slices that Python gives as tuples of numbers.
std::optional<std::string> DimensionsText(AttrType type, const py::object& value) {
  if (py::isinstance<py::str>(value) || !py::isinstance<py::sequence>(value)) return std::nullopt;
  std::vector<std::vector<int64_t>> dims;
  try {
    dims = value.cast<std::vector<std::vector<int64_t>>>();
  } catch (const py::cast_error&) {
    return std::nullopt;
  }
  const size_t fields = type == AttrType::kWindow ? 7 : 3;
  for (const std::vector<int64_t>& d : dims) {
    if (d.size() > fields || d.empty()) return std::nullopt;
  }
  const auto joined = [&](std::string_view separator, auto&& text) {
    std::string result;
    for (const std::vector<int64_t>& d : dims) StrAppend(&result, result.empty() ? "" : separator, text(d));
    return result;
  };
  const auto field = [](const std::vector<int64_t>& d, size_t k, int64_t absent) {
    return k < d.size() ? d[k] : absent;
  };
  if (type == AttrType::kPadding) {
    return joined("x", [&](const auto& d) { return StrCat(d[0], "_", field(d, 1, 0), "_", field(d, 2, 0)); });
  }
  if (type == AttrType::kSliceRanges) {
    return StrCat(
        "{",
        joined(", ", [&](const auto& d) { return StrCat("[", d[0], ":", field(d, 1, 0), ":", field(d, 2, 1), "]"); }),
        "}");
  }
  if (type != AttrType::kWindow) return std::nullopt;
  const auto list = [&](size_t k, int64_t absent) {
    return joined("x", [&](const auto& d) { return StrCat(field(d, k, absent)); });
  };
  return StrCat("{size=", list(0, 1), " stride=", list(1, 1),
                " pad=", joined("x", [&](const auto& d) { return StrCat(field(d, 2, 0), "_", field(d, 3, 0)); }),
                " lhs_dilate=", list(4, 1), " rhs_dilate=", list(5, 1), " rhs_reversal=", list(6, 0), "}");
}

// Returns the text of a value for the parser of the attribute's type.
std::string AttributeText(Attr attr, const py::object& value) {
  const AttrType type = InfoOf(attr).type;
  if (const std::optional<std::string> text = DimensionsText(type, value)) return *text;
  const std::string text = ValueText(value);
  const bool quoted = type == AttrType::kString || (type == AttrType::kStringOrJson && !text.starts_with('{'));
  if (!quoted) return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string{c};
  }
  return result + "\"";
}

}  // namespace

AttrValue AttributeFromPython(const ModulePtr& state, Opcode opcode, const std::string& name, const py::object& value) {
  Module& module = state->edit();
  std::optional<Attr> attr;
  std::vector<std::string_view> names;
  for (size_t k = 0; k < kAttrCount; ++k) {
    const Attr candidate = static_cast<Attr>(k);
    if (!IsCommon(candidate) && FindAttrSpec(opcode, candidate) == nullptr) continue;
    // Those without a name are not in the text; metadata have a method of their own.
    if (ToString(candidate).empty() || InfoOf(InfoOf(candidate).type).payload == PayloadKind::kMetadata) continue;
    names.push_back(ToString(candidate));
    if (names.back() == name) attr = candidate;
  }
  if (!attr && name == "metadata") Throw("EditError", "`metadata`: set_metadata sets its fields");
  if (!attr) {
    Throw("EditError", StrCat(ToString(opcode), " takes no attribute `", name, "`", DidYouMeanSuffix(name, names)));
  }
  const AttrTypeInfo& info = InfoOf(InfoOf(*attr).type);
  const auto id_of = [&state](const py::handle& handle) {
    if (!py::isinstance<ComputationHandle>(handle)) throw py::type_error("expected a Computation");
    const auto& c = handle.cast<const ComputationHandle&>();
    if (c.state != state) throw py::value_error("the computation belongs to another module");
    return c.get().id();
  };
  if (info.payload == PayloadKind::kComputation) return {*attr, id_of(value).value};
  if (info.elements == ElementKind::kComputation || info.elements == ElementKind::kInstruction) {
    std::vector<int64_t> ids;
    for (const py::handle entry : value) {
      ids.push_back(info.elements == ElementKind::kComputation
                        ? id_of(entry).value
                        : IdIn(state, entry.cast<const InstructionHandle&>()).value);
    }
    return {*attr, module.ListPayload(ids)};
  }
  const absl::StatusOr<uint32_t> payload = ParseAttributeValue(*attr, AttributeText(*attr, value), &module.context());
  if (!payload.ok()) Throw("EditError", StrCat(name, ": ", std::string(payload.status().message())));
  return {*attr, *payload};
}

void ReplaceAllUses(const InstructionHandle& from, const InstructionHandle& to) {
  Module& module = from.state->edit();
  const Instruction old = from.get();
  IdIn(from.state, to);
  const Instruction other = to.get();
  if (old == other) return;
  if (old.parent() != other.parent()) ThrowEdit(other, StrCat("is in another computation than ", Quoted(old)));
  if (!Compatible(old.shape(), other.shape())) {
    ThrowEdit(other, StrCat("has the shape ", ToString(other.shape(), false), ", ", Quoted(old), " has ",
                            ToString(old.shape(), false)));
  }
  // Users of `old` that `other` depends on would depend on themselves.
  for (const Instruction user : old.users()) {
    if (user != other && DependsOn(other, user)) {
      ThrowEdit(other, StrCat("depends on ", Quoted(user), ", a user of ", Quoted(old)));
    }
  }
  module.ReplaceAllUses(old.id(), other.id());
}

void ReplaceOperand(const InstructionHandle& user, int64_t index, const InstructionHandle& operand) {
  Module& module = user.state->edit();
  const Instruction i = user.get();
  const InstructionId id = IdIn(user.state, operand);
  if (index < 0 || index >= i.operand_count()) throw py::index_error("operand index out of range");
  if (operand.get().parent() != i.parent()) ThrowEdit(i, "an operand is in the computation of its user");
  if (DependsOn(operand.get(), i)) ThrowEdit(i, StrCat(Quoted(operand.get()), " depends on it"));
  const InstructionId before = i.operand(index).id();
  module.ReplaceOperand(i.id(), index, id);
  if (const absl::Status status = Check(i); !status.ok()) {
    module.ReplaceOperand(i.id(), index, before);
    ThrowEdit(i, std::string(status.message()));
  }
}

void EraseInstruction(const InstructionHandle& handle) {
  Module& module = handle.state->edit();
  const Instruction i = handle.get();
  if (i.is_root()) ThrowEdit(i, "is the root of its computation");
  if (i.has_users()) ThrowEdit(i, StrCat("has users: ", Quoted(i.users()[0])));
  if (i.opcode() == Opcode::kParameter) {
    CheckHasNoCallers(i.parent(), Quoted(i));
    const bool entry = i.parent().is_entry();
    module.RemoveParameter(i.id());
    if (entry) RefreshEntrySignature(module);
    return;
  }
  module.Erase(i.id());
}

void SetAttribute(const InstructionHandle& handle, const std::string& name, const py::object& value) {
  Module& module = handle.state->edit();
  const Instruction i = handle.get();
  const std::vector<AttrValue> before(i.attrs().begin(), i.attrs().end());
  if (value.is_none()) {
    for (const AttrValue& a : before) {
      if (ToString(a.attr) != name) continue;
      const AttrSpec* spec = IsCommon(a.attr) ? nullptr : FindAttrSpec(i.opcode(), a.attr);
      if (spec != nullptr && spec->presence == AttrSpec::kRequired) {
        ThrowEdit(i, StrCat("`", name, "` is required for ", i.opcode_text()));
      }
      if (spec != nullptr && spec->presence == AttrSpec::kDefaulted) {
        module.SetAttr(i.id(), a.attr, spec->default_payload);
      } else {
        module.RemoveAttr(i.id(), a.attr);
      }
    }
  } else {
    const AttrValue set = AttributeFromPython(handle.state, i.opcode(), name, value);
    module.SetAttr(i.id(), set.attr, set.payload);
  }
  if (const absl::Status status = Check(i); !status.ok()) {
    module.SetAttrs(i.id(), before);
    ThrowEdit(i, std::string(status.message()));
  }
}

InstructionHandle CloneInstruction(const InstructionHandle& handle,
                                   const std::optional<std::vector<InstructionHandle>>& operands,
                                   const std::optional<std::string>& name) {
  Module& module = handle.state->edit();
  const Instruction source = handle.get();
  if (source.opcode() == Opcode::kParameter) ThrowEdit(source, "is a parameter, which has no copies");
  std::vector<InstructionId> ids;
  if (operands) {
    for (const InstructionHandle& operand : *operands) {
      ids.push_back(IdIn(handle.state, operand));
      if (operand.get().parent() != source.parent()) ThrowEdit(source, "an operand is in another computation");
    }
    if (static_cast<int64_t>(ids.size()) != source.operand_count()) {
      ThrowEdit(source, StrCat("has ", source.operand_count(), " operands, ", ids.size(), " are given"));
    }
  } else {
    for (const Instruction operand : source.operands()) ids.push_back(operand.id());
  }
  std::vector<Shape> shapes;
  for (const InstructionId id : ids) shapes.push_back(module.instruction(id).shape());
  if (source.opcode() != Opcode::kConstant) {
    const absl::Status status = CheckShape({&module, source.opcode(), shapes, source.attrs(), source.shape()});
    if (!status.ok()) ThrowEdit(source, std::string(status.message()));
  }
  if (name) CheckName(*name);
  const StringId unique = module.UniqueInstructionName(name ? std::string_view(*name) : source.name());
  const InstructionId id = module.CloneInstruction(source.parent().id(), source.id(), unique, ids);
  return {handle.state, id};
}

void MoveInstructionBefore(const InstructionHandle& handle, const InstructionHandle& position) {
  Module& module = handle.state->edit();
  const Instruction i = handle.get();
  const InstructionId before = IdIn(handle.state, position);
  if (position.get().parent() != i.parent()) ThrowEdit(i, "is in another computation");
  if (before == i.id()) return;
  module.MoveBefore(i.id(), before);
}

void SetMetadata(const InstructionHandle& handle, const std::optional<std::string>& op_name,
                 const std::optional<std::string>& op_type, const std::optional<std::string>& source_file,
                 std::optional<int64_t> source_line) {
  Module& module = handle.state->edit();
  const Instruction i = handle.get();
  Context& context = module.context();
  Metadata metadata = i.metadata();
  if (op_name) metadata.op_name = context.strings.Intern(*op_name);
  if (op_type) metadata.op_type = context.strings.Intern(*op_type);
  if (source_file) metadata.source_file = context.strings.Intern(*source_file);
  if (source_line) metadata.source_line = *source_line;
  module.SetMetadata(i.id(), context.metadata.Intern(metadata));
}

void CheckName(const std::string& name) {
  const bool valid = !name.empty() && char_class::Is(name[0], char_class::kNameStart) &&
                     std::all_of(name.begin(), name.end(), char_class::IsName);
  if (!valid) {
    Throw("EditError", StrCat("`", name,
                              "` is no name: expected letters, digits, `_`, `.` and `-`, of which a letter or "
                              "`_` comes first"));
  }
}

void CheckHasNoCallers(Computation computation, const std::string& what) {
  for (const Computation c : computation.module().computations()) {
    for (const Instruction caller : c.instructions()) {
      bool calls = false;
      caller.ForEachCallee([&](Computation callee) { calls |= callee == computation; });
      if (calls) {
        Throw("EditError", StrCat(what, " is a parameter of a computation that ", Quoted(caller), " calls"));
      }
    }
  }
}

void SetRoot(const ComputationHandle& handle, const InstructionHandle& root) {
  Module& module = handle.state->edit();
  const InstructionId id = IdIn(handle.state, root);
  const Computation c = handle.get();
  if (root.get().parent() != c) Throw("EditError", "the root is an instruction of the computation");
  const bool callers_use = !c.is_entry() && c.record().root.valid();
  if (callers_use && !Compatible(root.get().shape(), c.root().shape())) {
    ThrowEdit(root.get(), "has another shape than the root, which callers use");
  }
  module.SetRoot(c.id(), id);
  if (c.is_entry()) RefreshEntrySignature(module);
}

void RenameInstruction(const InstructionHandle& handle, const std::string& name) {
  Module& module = handle.state->edit();
  const Instruction i = handle.get();
  if (i.name() == name) return;
  CheckName(name);
  module.SetName(i.id(), module.UniqueInstructionName(std::string_view(name)));
}

}  // namespace hlokit::python
