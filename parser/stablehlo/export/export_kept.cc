// SPDX-License-Identifier: Apache-2.0
// What StableHLO has no place for, kept in attributes of hlokit so that reading gives the same module again.
#include <algorithm>

#include "ir/core/str_cat.h"
#include "ir/ops/opcode.h"
#include "ir/ops/opcode_set.h"
#include "ir/text/attribute_text.h"
#include "ir/text/printer.h"
#include "parser/stablehlo/export/exporter.h"
#include "parser/stablehlo/kept_attributes.h"

namespace hlokit::stablehlo {

using mlir::NodeId;
using mlir::NodeKind;
using mlir::OpKind;

namespace {

// Adds the elements that no get-tuple-element takes, numbered from `first`.
void AddUntaken(Instruction tuple, int64_t first, std::vector<int64_t>* omitted) {
  std::vector<uint8_t> taken(static_cast<size_t>(tuple.shape().tuple_size()), 0);
  for (Instruction user : tuple.users()) {
    if (user.opcode() != Opcode::kGetTupleElement) continue;
    const int64_t index = user.int_attr(Attr::kIndex);
    if (index >= 0 && index < static_cast<int64_t>(taken.size())) taken[static_cast<size_t>(index)] = 1;
  }
  for (size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] == 0) omitted->push_back(first + static_cast<int64_t>(i));
  }
}

}  // namespace

void Exporter::AddOmitted(Instruction instruction, Attributes* discardable) {
  if (!IsUnpacked(instruction.shape()) || options_.as_xla) return;
  const int64_t count = instruction.shape().tuple_size();
  Ints omitted;
  AddUntaken(instruction, 0, &omitted);
  if (instruction.opcode() == Opcode::kWhile) {
    AddUntaken(instruction.computation_attr(Attr::kBody).parameter(0), count, &omitted);
    AddUntaken(instruction.computation_attr(Attr::kCondition).parameter(0), 2 * count, &omitted);
  }
  if (!omitted.empty()) discardable->push_back({kOmittedElements, IntegerArray(omitted)});
}

void Exporter::AddKept(Instruction instruction, absl::Span<const Attr> attrs, Attributes* discardable, bool opcode) {
  if (options_.as_xla) return;
  Attributes kept;
  for (Attr attr : attrs) {
    const std::optional<uint32_t> payload = instruction.payload(attr);
    if (!payload) continue;
    std::string text;
    {
      TextWriter out(&text);
      PrintAttrValue(out, module_, {attr, *payload});
    }
    kept.push_back({ToString(attr), n().String(text)});
  }
  if (!kept.empty()) discardable->push_back({kAttributes, Dictionary(kept)});
  if (opcode) discardable->push_back({kOpcode, n().String(instruction.opcode_text())});
}

Exporter::Attributes Exporter::WithNamed(Instruction instruction, OpKind kind, Attributes attributes) {
  const mlir::OpDefinition& definition = mlir::DefinitionOf(kind);
  for (const AttrSpec& spec : InfoOf(instruction.opcode()).attributes) {
    const Attr attr = spec.attr;
    if (FormOf(attr) != AttributeForm::kNamed || definition.FindAttribute(ToString(attr)) == nullptr) continue;
    const auto same = [&](const NamedAttribute& given) { return given.name == ToString(attr); };
    if (std::any_of(attributes.begin(), attributes.end(), same)) continue;
    const PayloadKind payload = InfoOf(InfoOf(attr).type).payload;
    // A bool has a value also where HLO omits it.
    if (payload != PayloadKind::kBool && !instruction.has(attr)) continue;
    switch (payload) {
      case PayloadKind::kBool:
        attributes.push_back({ToString(attr), n().Bool(instruction.bool_attr(attr))});
        break;
      case PayloadKind::kInt64:
        attributes.push_back({ToString(attr), I64(instruction.int_attr(attr))});
        break;
      case PayloadKind::kString:
        attributes.push_back({ToString(attr), n().String(instruction.string_attr(attr))});
        break;
      case PayloadKind::kList:
        attributes.push_back({ToString(attr), Dims(instruction.list_attr(attr))});
        break;
      case PayloadKind::kEnum:
      case PayloadKind::kFloat:
      case PayloadKind::kComputation:
      case PayloadKind::kShape:
      case PayloadKind::kLiteral:
      case PayloadKind::kMetadata:
        break;  // no plain values
    }
  }
  return attributes;
}

void Exporter::FindControlDependencies() {
  if (options_.as_xla) return;
  uint32_t count = 0;
  for (Computation computation : module_.computations()) {
    for (Instruction instruction : computation.instructions()) {
      for (int64_t predecessor : instruction.list_attr(Attr::kControlPredecessors)) {
        if (control_ids_.empty()) control_ids_.resize(module_.instruction_id_bound());
        uint32_t& id = control_ids_[static_cast<size_t>(predecessor)];
        if (id == 0) id = ++count;
      }
    }
  }
  ordered_.resize(control_ids_.size());
}

void Exporter::AddControlDependencies(Instruction instruction, Attributes* attributes) {
  if (control_ids_.empty()) return;
  ordered_[instruction.id().value] = 1;
  if (const uint32_t id = control_ids_[instruction.id().value]; id != 0) attributes->push_back({kControlId, I64(id)});
  Ints predecessors;
  for (int64_t predecessor : instruction.list_attr(Attr::kControlPredecessors)) {
    predecessors.push_back(control_ids_[static_cast<size_t>(predecessor)]);
  }
  if (!predecessors.empty()) attributes->push_back({kControlPredecessors, Dims(predecessors)});
}

void Exporter::ReportLostControlDependencies() {
  for (Computation computation : module_.computations()) {
    for (Instruction instruction : computation.instructions()) {
      const absl::Span<const int64_t> predecessors = instruction.list_attr(Attr::kControlPredecessors);
      const bool kept = !ordered_.empty() && ordered_[instruction.id().value] != 0 &&
                        std::all_of(predecessors.begin(), predecessors.end(),
                                    [&](int64_t id) { return ordered_[static_cast<size_t>(id)] != 0; });
      if (predecessors.empty() || kept) continue;
      sink_->Warning(DiagnosticKind::kUnsupported, RangeOf(instruction),
                     "StableHLO has no place for this control dependency: the order that it asks for is lost");
      return;
    }
  }
}

absl::Status Exporter::ExportAddDependency(Instruction instruction) {
  // Of a token or a tuple the order is lost.
  if (!instruction.shape().IsArray()) return ExportForwarded(instruction);
  return Define(instruction, OpKind::kMhloAddDependency, OperandsOf(instruction));
}

absl::Status Exporter::ExportStochasticConvert(Instruction instruction) {
  return Define(instruction, OpKind::kMhloStochasticConvert, OperandsOf(instruction));
}

bool Exporter::CapturesAlike(Instruction operand, Computation branch) {
  const Instruction parameter = branch.parameter(0);
  const std::vector<Instruction> users = parameter.users();
  if (!operand.shape().IsTuple()) return operand.opcode() != Opcode::kConstant && !users.empty();
  if (operand.opcode() != Opcode::kTuple || operand.operand_count() == 1) return false;
  std::vector<InstructionId> elements;
  for (Instruction element : operand.operands()) {
    const bool known = std::find(elements.begin(), elements.end(), element.id()) != elements.end();
    if (known || element.opcode() == Opcode::kConstant) return false;
    elements.push_back(element.id());
  }
  // Each element is taken once, and they are used in order, the results last.
  if (users.size() != elements.size()) return false;
  for (Instruction user : users) {
    if (user.opcode() != Opcode::kGetTupleElement) return false;
  }
  int64_t next = 0;
  std::vector<uint8_t> seen(elements.size(), 0);
  const auto use = [&](Instruction value) {
    if (value.opcode() != Opcode::kGetTupleElement || value.operand(0).id() != parameter.id()) return true;
    const auto index = static_cast<size_t>(value.int_attr(Attr::kIndex));
    if (index >= seen.size()) return false;
    if (seen[index] != 0) return true;
    seen[index] = 1;
    return static_cast<int64_t>(index) == next++;
  };
  const Instruction root = branch.root();
  for (Instruction instruction : branch.instructions()) {
    if (instruction.id() == root.id() && instruction.opcode() == Opcode::kTuple) continue;
    for (Instruction value : instruction.operands()) {
      if (instruction.opcode() == Opcode::kTuple && value.opcode() == Opcode::kGetTupleElement) return false;
      if (!use(value)) return false;
    }
    if (OpcodeSet{Opcode::kConditional, Opcode::kWhile}.Contains(instruction.opcode())) return false;
  }
  if (root.opcode() == Opcode::kTuple) {
    for (Instruction value : root.operands()) {
      if (!use(value)) return false;
    }
  } else if (!use(root)) {
    return false;
  }
  return next == static_cast<int64_t>(elements.size());
}

}  // namespace hlokit::stablehlo
